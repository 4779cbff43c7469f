// What MPI cannot express, because it counts in int.
#pragma once

#include <fmt/format.h>

#include <limits>

#include "kernels/core/limits.h"

namespace lloyd::cpu {

inline std::optional<std::string> beyond_mpi_counts(const Problem& problem, const Tunables&,
                                                    const DeviceLimits&) {
  constexpr std::int64_t kMost = std::numeric_limits<int>::max();
  const std::int64_t values = std::int64_t{problem.k} * problem.dim;
  if (problem.n > kMost)
    return fmt::format("needs messages of {} points, MPI counts to {}", with_commas(problem.n),
                       with_commas(kMost));
  if (values > kMost)
    return fmt::format("needs messages of {} values (k × dim), MPI counts to {}",
                       with_commas(values), with_commas(kMost));
  return std::nullopt;
}

}  // namespace lloyd::cpu
