// What biason's two versions share: buffers, the loop with its two stopping rules, and the parts of the three kernels
// that do not depend on where the data lie.
//
// The study begins with the assignment of the University of Valladolid (its sequential program is printed there), divides
// by the points of each cluster without asking whether there are any, and so loses an empty cluster to NaN. Here the
// cluster keeps its centroid. Its largest move starts from FLT_MIN, the smallest positive float, as if it were the most
// negative; here it starts from 0.
#pragma once

#include "kernels/biason/limits.h"
#include "kernels/core/cuda.h"
#include "kernels/core/version.h"

namespace lloyd::biason {

/// What the stopping rules ask of one iteration.
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

/// The nearest of k centroids to the point whose coordinates lie `stride` apart from x on, the lowest index on ties.
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

/// Moves centroid j to the mean of its points, if it has any. Returns its move (Euclidean).
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

/// Raises *address to `value`, where it is less: CUDA's atomicMax knows no floats. The swap is tried until it finds what it
/// assumed. The first assumption is a guess; the study reads the value for it, which races with the others' swaps.
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
  /// The problem's points to points_, in the version's layout.
  virtual void upload_points(cudaStream_t stream) = 0;
  /// From points_ and centroids_ to labels_ (−1 before the first time) and progress_->changes.
  virtual void assignment_step(cudaStream_t stream) = 0;
  /// From points_ and labels_ to sums_ and counts_, both zeroed beforehand.
  virtual void update_step_points(cudaStream_t stream) = 0;
  /// From sums_ and counts_ to centroids_ and progress_->largest_move.
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
