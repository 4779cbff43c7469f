// Checks that each centroid is the mean of its points, within the error of floating-point sums.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "kernels/core/reference.h"
#include "kernels/core/version.h"

namespace lloyd {

/// Versions sum in fp64 if they compute in fp64, otherwise in fp32. No version sums in a narrower
/// type.
double sum_roundoff(Precision precision);

/// How far the mean of n values, summed in any order, may be from the exact mean, relative to
/// mean|x|: (min(n, 8·√n) + 2)·u. n·u always holds (Higham 2002, §4.2). 8·√n·u holds with
/// probability 1 − 2·exp(−32), 1 − 2.5e-14, if rounding errors are independent with mean 0 (Higham
/// & Mary 2019, SIAM J. Sci. Comput. 41(5), A2815, theorem 2.4 with λ = 8). Equal values break that
/// assumption: each addition within a power of two rounds the same way.
double mean_bound(Precision precision, std::int64_t count);

struct MeansVerdict {
  std::optional<std::string> wrong;  // the first coordinate that is not the mean, with the numbers
  double max_error = 0;              // largest |coordinate − float64 mean| / mean|x|
  /// True if some coordinate exceeded mean_bound() and a plain sum of its points, in their order,
  /// is off by more than 1%.
  bool vague = false;
};

/// Checks the means of the labels in `solution`, which must all be in range. `clusters` are the
/// sums for these labels. A coordinate beyond mean_bound() still passes if a plain sequential sum
/// of its points in the version's precision, which this function computes, is at some point at
/// least a quarter as wrong: for equal values every plain sum is. NaN is wrong. Empty clusters are
/// not checked. In a spherical problem the mean is scaled to length 1, and so is the bound; vague
/// are means so short that rounding decides their direction.
MeansVerdict check_means(const Problem& problem, const Solution& solution,
                         const ClusterSums& clusters);

}  // namespace lloyd
