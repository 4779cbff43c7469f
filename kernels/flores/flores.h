// What flores's three versions share: buffers, the loop, and the division on the host. Each
// iteration copies results to the host and the centroids to the device; solve_ms includes these
// copies.
//
// The study computes in two dimensions, in float, and stops when no point changes cluster or after
// 20 iterations. Its flag says that at least one point has changed, so min_changes can only be 0 or
// 1 here. The host computes the largest move anyway, so `tolerance` works too.
//
// The report does not say which points a thread takes. Here the points of a block are contiguous,
// and neighbouring threads take neighbouring points: thread t takes t, t + threads, t + 2 ×
// threads, …
//
// Fixed in all three: an empty cluster keeps its centroid. The report does not say what becomes of
// its division by zero.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/core/cuda.h"
#include "kernels/core/version.h"
#include "kernels/core/with_dim.h"

namespace lloyd::flores {

/// The nearest of k centroids to the point x, the lowest index on ties. Dim = 0 means `dim`
/// dimensions at run time.
template <int Dim>
__device__ int nearest(const float* x, const float* centroids, int k, int dim) {
  const int d = Dim > 0 ? Dim : dim;
  float best = INFINITY;
  int label = 0;
  for (int j = 0; j < k; ++j, centroids += d) {
    float distance = 0;
    for (int t = 0; t < d; ++t) {
      const float difference = x[t] - centroids[t];
      distance += difference * difference;
    }
    if (distance < best) {
      best = distance;
      label = j;
    }
  }
  return label;
}

/// Sets the label and, when the label is new, the flag. The flag is set atomically, as in the
/// study, but only by threads that do not see it set yet, so that few of them queue for it.
__device__ inline void set_label(std::int32_t* label, std::int32_t value, int* changed) {
  if (*label == value) return;
  *label = value;
  if (*static_cast<volatile int*>(changed) == 0) atomicCAS(changed, 0, 1);
}

class Flores : public Version {
 public:
  void prepare(const Problem& problem, Context& context) override;
  void run(Context& context) override;
  Solution fetch(Context& context) override;

 protected:
  /// Fills points_, once. This one copies them from the host, which draws generated points again:
  /// the study's total times include the generation, and so do setup_ms and end_to_end_ms. The
  /// study's rand() ran on one thread; this runs on all cores.
  virtual void place_points(Context& context);
  /// Computes labels_ and changed_ from points_ and centroids_. changed_ is zero before the call.
  virtual void assign(Context& context) = 0;
  /// Writes the sums and counts of the clusters to host_sums_ and host_counts_.
  virtual void sum(Context& context) = 0;

  std::int64_t points_per_block(const Context& context) const {
    return std::int64_t{context.tunables.threads_per_block} * context.tunables.samples_per_thread;
  }
  unsigned blocks(const Context& context) const {
    return static_cast<unsigned>((problem_.n + points_per_block(context) - 1) /
                                 points_per_block(context));
  }

  Problem problem_;
  cuda::Buffer<float> points_, centroids_;
  cuda::Buffer<std::int32_t> labels_;
  cuda::Buffer<int> changed_;
  std::vector<float> host_sums_;
  std::vector<std::int64_t> host_counts_;

 private:
  bool any_point_changed(Context& context) const;

  std::vector<float> host_centroids_, drawn_;
  int iterations_ = 0;
};

}  // namespace lloyd::flores
