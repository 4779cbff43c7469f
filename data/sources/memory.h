// How much memory this process may still have.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace lloyd::data {

/// Bytes: the least of the kernel's MemAvailable and what each control group (v1 and v2) of this
/// process leaves, page cache that can be dropped counted as free; nullopt where the system tells
/// neither. `root` is where /proc and /sys are looked up.
std::optional<std::uint64_t> free_memory(const std::filesystem::path& root = "/");

/// check_fits_memory() for a machine with `free_bytes` (nullopt: unknown, so only overflow is an
/// error).
void check_fits(std::int64_t n, int dim, std::optional<std::uint64_t> free_bytes);

}  // namespace lloyd::data
