// Is each centroid the mean of its points, as far as floating-point sums allow?
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "kernels/core/reference.h"
#include "kernels/core/version.h"

namespace lloyd {

/// Sums run in fp32 unless the version computes in fp64; no version sums in less.
double sum_roundoff(Precision precision);

/// How far the mean of n values, summed in any order, may be from the exact one, relative to mean|x|:
/// (min(n, 8·√n) + 2)·u. n·u always holds (Higham 2002, §4.2). 8·√n·u holds with probability 1 − 2·exp(−32), 1 − 2.5e-14, for
/// rounding errors that are independent with mean 0 (Higham & Mary 2019, SIAM J. Sci. Comput. 41(5), A2815, theorem 2.4
/// with λ = 8). Equal values break that assumption: each addition within a power of two rounds the same way.
double mean_bound(Precision precision, std::int64_t count);

struct MeansVerdict {
  std::optional<std::string> wrong;  // the first coordinate that is no mean, with the numbers
  double max_error =
      0;  // largest |coordinate − float64 mean| / mean|x| of the cluster and coordinate
  /// Some coordinate was only as good as a plain sum, in the order of the points, is, and that one is off by more than 1%.
  bool vague = false;
};

/// Checks the means of `labels` (n, all in range; `clusters` are their sums). A coordinate beyond mean_bound() is still right
/// when a plain sequential sum of its points in the version's precision, made here, is at some point at least a quarter as
/// wrong: on equal values all plain sums are. NaN is wrong. An empty cluster is not looked at.
MeansVerdict check_means(const Problem& problem, const Solution& solution,
                         const ClusterSums& clusters);

}  // namespace lloyd
