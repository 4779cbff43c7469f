// What luigi's four versions share: buffers, the loop, and the update on the host. A version has
// its kernel in its own file; what v4 shares with v3 or with fast_optin is in v3_kernel.cuh and
// v4.cuh.
//
// Fixed in all four: the original's kernels return before __syncthreads() in the threads past the
// last point, which is undefined in a block that is not full. Here those threads stay and only skip
// their point.
#pragma once

#include <vector>

#include "kernels/core/cuda.h"
#include "kernels/core/version.h"
#include "kernels/core/with_dim.h"

namespace lloyd::luigi {

/// The nearest of k centroids to the point x, the lowest index on ties. Dim = 0 means `dim`
/// dimensions at run time.
template <int Dim>
__device__ int nearest(const float* x, const float* centroids, int k, int dim) {
  const int d = Dim > 0 ? Dim : dim;
  float best = INFINITY;
  int label = 0;
  for (int j = 0; j < k; ++j) {
    float distance = 0;
    for (int t = 0; t < d; ++t) {
      const float difference = x[t] - centroids[j * d + t];
      distance += difference * difference;
    }
    if (distance < best) {
      best = distance;
      label = j;
    }
  }
  return label;
}

class Luigi : public Version {
 public:
  void prepare(const Problem& problem, Context& context) override;
  void run(Context& context) override;
  Solution fetch(Context& context) override;

 protected:
  /// Computes labels_, sums_ and counts_ from points_ and centroids_, on context.stream. sums_ and
  /// counts_ are zero before the call.
  virtual void assign(Context& context) = 0;
  /// Computes centroids_ from sums_ and counts_. Returns the largest move when the problem has a
  /// tolerance. This one runs on the host, as in the study's first three versions.
  virtual double update(Context& context);
  /// The study's own copies. fast_optin has faster ones.
  virtual void upload_points(Context& context);
  virtual std::vector<std::int32_t> fetch_labels(Context& context);

  int blocks(const Context& context) const {
    return static_cast<int>(cuda::blocks_for(problem_.n, context.tunables.threads_per_block));
  }

  Problem problem_;
  cuda::Buffer<float> points_, initial_, centroids_, sums_;
  cuda::Buffer<int> counts_;
  cuda::Buffer<std::int32_t> labels_;

 private:
  std::vector<float> host_centroids_, host_sums_;
  std::vector<int> host_counts_;
  int iterations_ = 0;
};

}  // namespace lloyd::luigi
