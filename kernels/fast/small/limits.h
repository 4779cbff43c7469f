// What the versions for few dimensions keep in registers, as the registry and their kernels both
// need it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "kernels/core/limits.h"

namespace lloyd::fast {

/// Coordinates of points that a thread holds: with the scores and the best of each point they fill
/// the 128 registers that 512 threads a block leave.
inline constexpr int kCoordinatesPerThread = 32;
inline constexpr int kMostThreads = 512;

/// `dim` is compiled in as the next power of two from 2 to 32; the coordinates past `dim` are
/// zeros.
inline int padded_dim(int dim) {
  int padded = 2;
  while (padded < dim) padded *= 2;
  return padded;
}

/// Centroids are read four at a time, and padded to whole groups of that many quads.
constexpr int quads_of(int k, int quads_per_group) {
  return (k + 4 * quads_per_group - 1) / (4 * quads_per_group) * quads_per_group;
}

/// Bytes of fill_table()'s table in shared memory: padded_dim values −2·c[t] and one ‖c‖² for each
/// centroid, in groups.
inline std::int64_t table_bytes(int dim, int quads) { return 16LL * (padded_dim(dim) + 1) * quads; }

/// Set when a thread has no registers for a point, or a block has too many threads.
inline std::optional<std::string> no_registers(const Problem& problem, const Tunables& tunables) {
  if (tunables.threads_per_block > kMostThreads)
    return "keeps points in registers: at most " + with_commas(kMostThreads) +
           " threads per block, not " + with_commas(tunables.threads_per_block);
  if (problem.dim <= kCoordinatesPerThread) return std::nullopt;
  return "keeps points in registers: at most " + with_commas(kCoordinatesPerThread) +
         " dimensions, not " + with_commas(problem.dim);
}

/// Set when the points of a batch's problems do not begin at a multiple of 16 bytes, although they
/// are read in such pieces (tile.cuh).
inline std::optional<std::string> not_aligned(const Problem& problem) {
  const bool in_pieces = problem.dim == padded_dim(problem.dim);
  if (problem.batch == 1 || !in_pieces || problem.n * problem.dim % 4 == 0) return std::nullopt;
  return "reads points of 2 to 32 dimensions in pieces of 16 bytes: a problem of a batch needs a "
         "multiple of 4 coordinates, not " +
         with_commas(problem.n * problem.dim);
}

}  // namespace lloyd::fast
