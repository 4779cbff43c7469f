// How much memory this process can still have.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace lloyd::data {

/// The free bytes: the minimum of the kernel's MemAvailable and of what each control group (v1 and
/// v2) of this process leaves. Page cache that can be dropped counts as free. nullopt when the
/// system reports neither. `root` is the folder of proc and sys.
std::optional<std::uint64_t> free_memory(const std::filesystem::path& root = "/");

/// check_fits_memory() for a machine with `free_bytes` (nullopt: unknown, so only overflow is an
/// error).
void check_fits(std::int64_t n, int dim, std::optional<std::uint64_t> free_bytes);

}  // namespace lloyd::data
