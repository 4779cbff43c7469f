// Whether points fit into memory.
#pragma once

#include <cstdint>
#include <optional>

namespace lloyd::data {

/// check_fits_memory() for a machine with `free_bytes` (nullopt: unknown, so only overflow is an
/// error). `value_bytes`: 4 of floats, 2 of values in 16 bits, 0 of what stays in a file.
void check_fits(std::int64_t n, int dim, std::optional<std::uint64_t> free_bytes,
                int value_bytes = 4);

}  // namespace lloyd::data
