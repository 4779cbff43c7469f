#include <algorithm>
#include <cmath>

#include "kernels/core/lloyd_steps.h"
#include "kernels/luigi/luigi.h"

namespace lloyd::luigi {

void Luigi::prepare(const Problem& problem, Context& context) {
  problem_ = problem;
  const std::size_t cells = problem.centroids.size();
  points_ = cuda::Buffer<float>(problem.points.size());
  initial_ = cuda::Buffer<float>(cells);
  centroids_ = cuda::Buffer<float>(cells);
  sums_ = cuda::Buffer<float>(cells);
  counts_ = cuda::Buffer<int>(static_cast<std::size_t>(problem.k));
  labels_ = cuda::Buffer<std::int32_t>(static_cast<std::size_t>(problem.n));
  const auto phase = context.phase("transfer");
  upload_points(context);
  initial_.upload(problem.centroids, context.stream);
  LLOYD_CUDA_CHECK(cudaStreamSynchronize(context.stream));
}

void Luigi::upload_points(Context& context) { points_.upload(problem_.points, context.stream); }

void Luigi::run(Context& context) {
  const cudaStream_t stream = context.stream;
  host_centroids_.assign(problem_.centroids.begin(), problem_.centroids.end());
  LLOYD_CUDA_CHECK(cudaMemcpyAsync(centroids_.data(), initial_.data(), initial_.bytes(),
                                   cudaMemcpyDeviceToDevice, stream));
  for (iterations_ = 0; iterations_ < problem_.stop.iterations;) {
    const auto iteration = context.iteration(iterations_);
    {
      const auto phase = context.phase("assign");
      sums_.zero(stream);
      counts_.zero(stream);
      assign(context);
    }
    const double largest_move = update(context);
    ++iterations_;
    if (problem_.stop.tolerance > 0 && largest_move < problem_.stop.tolerance) break;
  }
}

double Luigi::update(Context& context) {
  const cudaStream_t stream = context.stream;
  host_sums_.resize(sums_.size());
  host_counts_.resize(counts_.size());
  {
    const auto phase = context.phase("transfer");
    sums_.download(host_sums_, stream);
    counts_.download(host_counts_, stream);
  }
  double largest = 0;
  {
    const auto phase = context.phase("update");
    const int dim = problem_.dim;
    for (int j = 0; j < problem_.k; ++j) {
      if (host_counts_[static_cast<std::size_t>(j)] == 0) continue;
      float divisor = static_cast<float>(host_counts_[static_cast<std::size_t>(j)]);
      if (problem_.spherical) {  // the studies have none; see cpu::move_centroid()
        const auto d = static_cast<std::size_t>(dim);
        divisor =
            static_cast<float>(cpu::length(host_sums_.data() + static_cast<std::size_t>(j) * d, d));
        if (divisor == 0) continue;
      }
      double move = 0;
      for (int t = 0; t < dim; ++t) {
        const std::size_t c = static_cast<std::size_t>(j) * dim + t;
        const float mean = host_sums_[c] / divisor;
        const double step = static_cast<double>(mean) - host_centroids_[c];
        move += step * step;
        host_centroids_[c] = mean;
      }
      largest = std::max(largest, move);
    }
  }
  const auto phase = context.phase("transfer");
  centroids_.upload(host_centroids_, stream);
  return std::sqrt(largest);
}

Solution Luigi::fetch(Context& context) {
  Solution solution;
  solution.iterations = iterations_;
  std::vector<float> centroids(centroids_.size());
  const auto phase = context.phase("transfer");
  solution.labels = fetch_labels(context);
  centroids_.download(centroids, context.stream);
  solution.centroids.assign(centroids.begin(), centroids.end());
  return solution;
}

std::vector<std::int32_t> Luigi::fetch_labels(Context& context) {
  std::vector<std::int32_t> labels(labels_.size());
  labels_.download(labels, context.stream);
  return labels;
}

}  // namespace lloyd::luigi
