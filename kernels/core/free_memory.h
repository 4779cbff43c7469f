// How much memory this process can still have.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace lloyd {

/// The free bytes: the minimum of the kernel's MemAvailable and of what each control group (v1 and
/// v2) of this process leaves. Page cache that can be dropped counts as free. nullopt when the
/// system reports neither. `root` is the folder of proc and sys.
std::optional<std::uint64_t> free_memory(const std::filesystem::path& root = "/");

}  // namespace lloyd
