// What biason's two versions share: buffers, the loop with its two stopping rules, and the parts of
// the three kernels that do not depend on the layout of the data.
//
// Fixed in both: the study starts from the assignment of the University of Valladolid, whose
// sequential program it prints. The study divides by the number of points of each cluster, so an
// empty cluster becomes NaN; here it keeps its centroid. The study's largest move starts from
// FLT_MIN as if that were the most negative float; it is the smallest positive one. Here the
// largest move starts from 0.
#pragma once

#include "kernels/biason/limits.h"
#include "kernels/core/cuda.h"
#include "kernels/core/version.h"

namespace lloyd::biason {

/// What the stopping rules need from one iteration.
struct Progress {
  int changes;         // points that changed cluster
  float largest_move;  // of a centroid, Euclidean
};

/// This thread's number in its block of 32 × 32.
__device__ inline int thread() { return threadIdx.y * kSide + threadIdx.x; }

/// This thread's point or centroid.
__device__ inline std::int64_t item() {
  return static_cast<std::int64_t>(blockIdx.x) * kThreads + thread();
}

/// The nearest of k centroids to a point, the lowest index on ties. The point's coordinates start
/// at x and are `stride` apart.
__device__ inline int nearest(const float* x, std::int64_t stride, const float* centroids, int k,
                              int dim) {
  float best = INFINITY;
  int label = 0;
  for (int j = 0; j < k; ++j) {
    float distance = 0;
    const float* coordinate = x;
    for (int t = 0; t < dim; ++t, coordinate += stride, ++centroids) {
      const float difference = *coordinate - *centroids;
      distance += difference * difference;
    }
    if (distance < best) {
      best = distance;
      label = j;
    }
  }
  return label;
}

/// Moves centroid j to the mean of its points, if it has any. Returns the Euclidean length of the
/// move.
__device__ inline float move_centroid(float* centroids, const float* sums, const int* counts,
                                      std::int64_t j, int dim) {
  const int count = counts[j];
  if (count == 0) return 0;
  float move = 0;
  for (std::int64_t c = j * dim; c < (j + 1) * dim; ++c) {
    const float mean = sums[c] / count;
    const float step = mean - centroids[c];
    move += step * step;
    centroids[c] = mean;
  }
  return sqrtf(move);
}

/// Raises *address to `value` if it is less, because CUDA's atomicMax does not take floats. The
/// swap is repeated until it finds the value that it assumed. The first assumption is a guess; the
/// study reads the value instead, which races with the swaps of other threads.
__device__ inline void custom_atomic_max(float* address, float value) {
  int* bits = reinterpret_cast<int*>(address);
  int seen = __float_as_int(0.0f), assumed;
  do {
    assumed = seen;
    seen = atomicCAS(bits, assumed, __float_as_int(fmaxf(value, __int_as_float(assumed))));
  } while (seen != assumed);
}

class Biason : public Version {
 public:
  void prepare(const Problem& problem, Context& context) override;
  void run(Context& context) override;
  Solution fetch(Context& context) override;

 protected:
  /// Copies the problem's points to points_, in the version's layout.
  virtual void upload_points(cudaStream_t stream) = 0;
  /// Computes labels_ (−1 before the first call) and progress_->changes from points_ and
  /// centroids_.
  virtual void assignment_step(cudaStream_t stream) = 0;
  /// Computes sums_ and counts_, which are zero before the call, from points_ and labels_.
  virtual void update_step_points(cudaStream_t stream) = 0;
  /// Computes centroids_ and progress_->largest_move from sums_ and counts_.
  virtual void update_step_centroids(cudaStream_t stream) = 0;

  static dim3 block() { return {kSide, kSide}; }
  unsigned point_blocks() const { return cuda::blocks_for(problem_.n, kThreads); }
  unsigned centroid_blocks() const { return cuda::blocks_for(problem_.k, kThreads); }

  Problem problem_;
  cuda::Buffer<float> points_, initial_, centroids_, sums_;
  cuda::Buffer<int> counts_;
  cuda::Buffer<std::int32_t> labels_;
  cuda::Buffer<Progress> progress_;

 private:
  int iterations_ = 0;
};

}  // namespace lloyd::biason
