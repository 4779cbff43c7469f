// The oracle: float64, brute force, lowest index on ties. Every version is verified against it. It
// is never timed.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "kernels/core/version.h"

namespace lloyd {

/// Sums of the points of each cluster, in float64.
struct ClusterSums {
  std::vector<double> sums;           // k × dim
  std::vector<double> absolute_sums;  // k × dim: Σ|x|, to which rounding bounds are relative
  std::vector<std::int64_t> counts;   // k
};

/// The assignments of one run of Lloyd's algorithm. Labels and distances stay where they are
/// computed.
class Assignments {
 public:
  virtual ~Assignments() = default;
  struct Outcome {
    double inertia = 0;        // sum() of the squared distances
    std::int64_t changes = 0;  // labels that differ from those before; all in the first assignment
  };
  /// Assigns the points to the nearest of these centroids (k × dim). If `clusters` is not null, it
  /// receives what cluster_sums() gives, with the same bits.
  virtual Outcome assign(std::span<const double> centroids, ClusterSums* clusters) = 0;
};

class Reference {
 public:
  virtual ~Reference() = default;
  /// Computes, for each of the n points, the index of the nearest of the k centroids (k × dim,
  /// row-major) and the squared distance to it. Both are in float64 with one rounding per
  /// operation, and dimensions are summed in order, so the CPU and the GPU give identical bits.
  virtual void nearest(std::span<const double> centroids, int k, std::span<std::int32_t> labels,
                       std::span<double> distances) = 0;
  /// The labels of nearest(). Returns sum() of its distances.
  virtual double label(std::span<const double> centroids, int k, std::span<std::int32_t> labels);
  /// The assignments of a run of `problem`, whose points are those of the reference. Both must
  /// outlive the result.
  virtual std::unique_ptr<Assignments> assignments(const Problem& problem);
};

/// Uses as many threads as OpenMP takes (keep_openmp_within_cores()). `points` (n × dim, row-major)
/// must outlive the reference.
std::unique_ptr<Reference> make_cpu_reference(std::span<const float> points, std::int64_t n,
                                              int dim);
/// Uses the current CUDA device, with a copy of the points there.
std::unique_ptr<Reference> make_cuda_reference(std::span<const float> points, std::int64_t n,
                                               int dim);

/// Adds up in an order that depends only on the sizes (sum_order.h). The points need not be in
/// memory: the bits are the same. Throws std::out_of_range, with the point's number, when a label
/// is outside [0, k).
ClusterSums cluster_sums(const Problem& problem, std::span<const std::int32_t> labels);

/// How many of as many labels differ.
std::int64_t count_changes(std::span<const std::int32_t> a, std::span<const std::int32_t> b);

/// The squared distance of a point to a centroid, with the bits of Reference::nearest().
double squared_distance(std::span<const float> point, std::span<const double> centroid);

/// The sum of `values`. Its error does not depend on their number, and its order not on the
/// threads.
double sum(std::span<const double> values);

/// One iteration of a reference run.
struct ReferenceStep {
  double inertia = 0;        // to the centroids that the iteration started from
  double largest_move = 0;   // Euclidean, of a centroid
  std::int64_t changes = 0;  // points that changed cluster; all of them in the first iteration
};

/// Lloyd's algorithm in float64 from problem.centroids under problem.stop.
struct ReferenceRun {
  std::vector<double> centroids;     // k × dim, after the last update
  std::vector<std::int64_t> counts;  // k: points of each cluster in the last assignment
  double initial_inertia = 0;        // to the initial centroids
  double inertia = 0;                // to `centroids`
  int iterations = 0;
  std::vector<ReferenceStep> steps;  // one for each iteration
  std::int64_t next_changes = 0;     // points that one more assignment would move
};
ReferenceRun reference_solve(Reference& reference, const Problem& problem);

/// The same run with random errors, as a version of problem.precision might make them: each
/// iteration changes every distance and every mean by about the error of that precision. `seed`
/// determines the errors. Two correct answers may diverge after a near tie, and such runs show how
/// far.
///
/// Distances get their error by moving the centroid that the assignment sees. The error is relative
/// to D for a direct distance and to (‖x‖ + ‖c‖)² for an expanded one. It has two parts: 2u for the
/// rounding of the operands and the result in tf32, fp16 and bf16, and (4 + √dim)·2^-24 for the sum
/// ((4 + √dim)·2^-53 in fp64). The error of a mean is (√n_k + 2)·u·mean|x|, with u = 2^-24 (2^-53
/// in fp64). Both are several times what versions were seen to make, so if three runs do not
/// diverge, divergence is rare. `plain` is the run without errors.
ReferenceRun disturbed_solve(Reference& reference, const Problem& problem, Distance distance,
                             std::uint64_t seed, const ReferenceRun& plain);

/// The same run with the sums of a plain loop, which adds the points of each cluster one after
/// another, in their order, in fp32. Where one bit of a sum is about as much as the points of its
/// cluster differ, which takes 10^5 points or more, all additions may err in the same direction, in
/// each iteration. Such an error is beyond those of disturbed_solve(), whose signs are random.
ReferenceRun plain_sums_solve(Reference& reference, const Problem& problem);

}  // namespace lloyd
