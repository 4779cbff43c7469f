#include "data/sources/memory.h"

#include <fmt/format.h>

#include "data/sources/dataset.h"
#include "data/sources/text.h"
#include "kernels/core/free_memory.h"

namespace lloyd::data {

void check_fits(std::int64_t n, int dim, std::optional<std::uint64_t> free_bytes, int value_bytes) {
  if (n < 1 || dim < 1) {
    throw DataError(fmt::format("{} points × {} dimensions: both must be at least 1", n, dim));
  }
  std::int64_t bytes;
  const bool overflow = __builtin_mul_overflow(n, std::int64_t{dim} * value_bytes, &bytes);
  if (!overflow && (!free_bytes || static_cast<std::uint64_t>(bytes) <= *free_bytes)) return;
  const double needed = static_cast<double>(n) * dim * value_bytes;
  throw DataError(fmt::format("{} × {} {} need {}; {}", grouped(n), grouped(dim),
                              value_bytes == 4 ? "floats" : "values in 16 bits", bytes_text(needed),
                              free_bytes
                                  ? bytes_text(static_cast<double>(*free_bytes)) + " are free"
                                  : "more than a program can address"));
}

void check_fits_memory(std::int64_t n, int dim, int value_bytes) {
  check_fits(n, dim, free_memory(), value_bytes);
}

}  // namespace lloyd::data
