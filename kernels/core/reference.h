// The oracle: float64, brute force, lowest index on ties. Every version is judged by it and it is never timed.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "kernels/core/version.h"

namespace lloyd {

class Reference {
 public:
  virtual ~Reference() = default;
  /// For each of the n points: the index of the nearest of the k centroids (k × dim, row-major) and the squared
  /// distance to it, both in float64 with one rounding per operation, dimensions summed in order. Identical bits on
  /// the CPU and the GPU.
  virtual void nearest(std::span<const double> centroids, int k, std::span<std::int32_t> labels,
                       std::span<double> distances) = 0;
};

/// On all cores. `points` (n × dim, row-major) must outlive it.
std::unique_ptr<Reference> make_cpu_reference(std::span<const float> points, std::int64_t n,
                                              int dim);
/// On the current CUDA device, with a copy of the points there.
std::unique_ptr<Reference> make_cuda_reference(std::span<const float> points, std::int64_t n,
                                               int dim);

/// Sums of the points of each cluster, in float64, in an order that depends on the sizes only.
struct ClusterSums {
  std::vector<double> sums;           // k × dim
  std::vector<double> absolute_sums;  // k × dim: Σ|x|, what rounding bounds are relative to
  std::vector<std::int64_t> counts;   // k
};
/// Labels outside [0, k) throw std::out_of_range, naming the point.
ClusterSums cluster_sums(std::span<const float> points, std::int64_t n, int dim, int k,
                         std::span<const std::int32_t> labels);

/// Σ of `values` with an error independent of their number and an order independent of the threads.
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

/// The same run with errors in it, as if a version of problem.precision had made it: in each iteration every distance is off
/// by about `labels` and every mean by about `means`, at random but determined by `seed`. Two right answers may part at a
/// near tie, and such runs show how far.
///
/// A distance is made wrong by moving the centroid that the assignment sees. Its error is relative to D for a direct
/// distance and to (‖x‖ + ‖c‖)² for an expanded one: 2u of the operands' and the result's rounding in tf32, fp16 and bf16, and
/// (4 + √dim)·2^-24 of the sum (u alone in fp64). A mean's error is (√n_k + 2)·u·mean|x|, u = 2^-24 (2^-53 in
/// fp64). Both are several times what versions were seen to do: three runs without a parting then say that partings are rare.
/// `plain` is the run without errors.
ReferenceRun disturbed_solve(Reference& reference, const Problem& problem, Distance distance,
                             std::uint64_t seed, const ReferenceRun& plain);

}  // namespace lloyd
