// What goldsborough's four versions share: the arrays, the loop, and the device functions for
// assignment and mean.
//
// The study keeps x and y in separate arrays. Here points, means and sums are stored dimension by
// dimension, which is the same for two dimensions and works for any number: coordinate t of point i
// is at t·n + i, of mean j at t·k + j.
//
// Fixed in all four: in the original an empty cluster's mean jumps to the origin, because its sum,
// 0, is divided by max(1, count). The original shuffles x and y separately, so no initial mean is a
// point. One block of k threads computes the means, which cannot be launched for k > 1024, and no
// launch is checked. The original's host waits after each kernel; here the order of the stream is
// enough.
// Added: the labels are stored (4 B per point), because every version returns them. With a
// tolerance, the largest move is kept and copied to the host in each iteration.
#pragma once

#include <cmath>
#include <vector>

#include "kernels/core/cuda.h"
#include "kernels/core/transpose.h"
#include "kernels/core/version.h"
#include "kernels/core/with_dim.h"

namespace lloyd::goldsborough {

/// The largest possible threads_per_block. As a launch bound it makes the compiler limit the
/// registers, so that a block of that size can be launched on every GPU.
inline constexpr int kMostThreads = 1024;

/// The nearest of k means to a point, the lowest index on ties. The point's coordinates start at
/// `point` and are n apart. Dim = 0 means `dim` dimensions at run time.
template <int Dim>
__device__ int nearest(const float* point, std::int64_t n, const float* means, int k, int dim) {
  const int d = Dim > 0 ? Dim : dim;
  float best = INFINITY;
  int label = 0;
  for (int j = 0; j < k; ++j) {
    float distance = 0;
    const float* x = point;
    const float* mean = means + j;
    for (int t = 0; t < d; ++t, x += n, mean += k) {
      const float difference = *x - *mean;
      distance += difference * difference;
    }
    if (distance < best) {
      best = distance;
      label = j;
    }
  }
  return label;
}

/// Moves a mean to sum / count, unless it has no point. The coordinates of the sum are `stride`
/// apart, those of the mean k. Where `largest_squared_move` is not null, an integer maximum keeps
/// the largest squared move: non-negative floats order like their bits.
template <int Dim>
__device__ void move_mean(const float* sum, std::int64_t stride, int count, float* mean, int k,
                          int dim, float* largest_squared_move) {
  if (count == 0) return;
  float move = 0;
  for (int t = 0; t < (Dim > 0 ? Dim : dim); ++t, sum += stride, mean += k) {
    const float next = *sum / count;
    const float step = next - *mean;
    move += step * step;
    *mean = next;
  }
  if (largest_squared_move != nullptr)
    atomicMax(reinterpret_cast<unsigned*>(largest_squared_move), __float_as_uint(move));
}

/// `Array` is device memory with the members of cuda::Buffer.
template <template <typename> class Array>
class Goldsborough : public Version {
 public:
  void prepare(const Problem& problem, Context& context) override {
    problem_ = problem;
    points_ = Array<float>(problem.points.size());
    initial_ = Array<float>(problem.centroids.size());
    means_ = Array<float>(problem.centroids.size());
    labels_ = Array<std::int32_t>(static_cast<std::size_t>(problem.n));
    if (problem.stop.tolerance > 0) largest_squared_move_ = Array<float>(1);
    const std::vector<float> points = transposed(problem.points, problem.n, problem.dim);
    const std::vector<float> initial = transposed(problem.centroids, problem.k, problem.dim);
    const auto phase = context.phase("transfer");
    points_.upload(points, context.stream);
    initial_.upload(initial, context.stream);
    LLOYD_CUDA_CHECK(cudaStreamSynchronize(context.stream));
  }

  void run(Context& context) override {
    const cudaStream_t stream = context.stream;
    const double tolerance = problem_.stop.tolerance;
    LLOYD_CUDA_CHECK(cudaMemcpyAsync(means_.data(), initial_.data(), initial_.bytes(),
                                     cudaMemcpyDeviceToDevice, stream));
    for (iterations_ = 0; iterations_ < problem_.stop.iterations;) {
      const auto iteration = context.iteration(iterations_);
      {
        const auto phase = context.phase("assign");
        assign(context);
      }
      {
        const auto phase = context.phase("update");
        if (tolerance > 0) largest_squared_move_.zero(stream);
        update(context);
      }
      ++iterations_;
      if (tolerance <= 0) continue;
      const auto phase = context.phase("converge");
      float squared = 0;
      largest_squared_move_.download({&squared, 1}, stream);
      if (std::sqrt(squared) < tolerance) break;
    }
  }

  Solution fetch(Context& context) override {
    Solution solution;
    solution.iterations = iterations_;
    solution.labels.resize(labels_.size());
    std::vector<float> means(means_.size());
    {
      const auto phase = context.phase("transfer");
      labels_.download(solution.labels, context.stream);
      means_.download(means, context.stream);
    }
    const std::vector<float> centroids = transposed(means, problem_.dim, problem_.k);
    solution.centroids.assign(centroids.begin(), centroids.end());
    return solution;
  }

 protected:
  /// Computes labels_, and the sums and counts that update() needs, from points_ and means_.
  virtual void assign(Context& context) = 0;
  /// Computes means_ and, where it is not empty, largest_squared_move_.
  virtual void update(Context& context) = 0;

  unsigned blocks(const Context& context) const {
    return cuda::blocks_for(problem_.n, context.tunables.threads_per_block);
  }

  Problem problem_;
  Array<float> points_, initial_, means_, largest_squared_move_;
  Array<std::int32_t> labels_;

 private:
  int iterations_ = 0;
};

}  // namespace lloyd::goldsborough
