#include "kernels/core/lloyd_steps.h"
#include "kernels/core/random_values.h"
#include "kernels/flores/flores.h"

namespace lloyd::flores {

void Flores::prepare(const Problem& problem, Context& context) {
  problem_ = problem;
  const std::size_t cells = problem.centroids.size();
  points_ = cuda::Buffer<float>(static_cast<std::size_t>(problem.n) *
                                static_cast<std::size_t>(problem.dim));
  centroids_ = cuda::Buffer<float>(cells);
  labels_ = cuda::Buffer<std::int32_t>(static_cast<std::size_t>(problem.n));
  changed_ = cuda::Buffer<int>(1);
  host_centroids_.resize(cells);
  host_sums_.resize(cells);
  host_counts_.resize(static_cast<std::size_t>(problem.k));
  place_points(context);
  LLOYD_CUDA_CHECK(cudaStreamSynchronize(context.stream));
  drawn_ = {};
}

void Flores::place_points(Context& context) {
  std::span<const float> points = problem_.points;
  if (problem_.generator != nullptr) {
    const auto phase = context.phase("init");
    drawn_.resize(points.size());
    problem_.generator->draw(drawn_, problem_.dim);
    points = drawn_;
  }
  const auto phase = context.phase("transfer");
  points_.upload(points, context.stream);
}

void Flores::run(Context& context) {
  const cudaStream_t stream = context.stream;
  const Stop& stop = problem_.stop;
  host_centroids_.assign(problem_.centroids.begin(), problem_.centroids.end());
  // -1 is no cluster, so every point changes in the first iteration.
  LLOYD_CUDA_CHECK(cudaMemsetAsync(labels_.data(), 0xff, labels_.bytes(), stream));
  {
    const auto phase = context.phase("transfer");
    centroids_.upload(host_centroids_, stream);
  }
  for (iterations_ = 0; iterations_ < stop.iterations;) {
    const auto iteration = context.iteration(iterations_);
    {
      const auto phase = context.phase("assign");
      changed_.zero(stream);
      assign(context);
    }
    sum(context);
    double largest_move = 0;
    {
      const auto phase = context.phase("update");
      largest_move = cpu::move_centroids(host_centroids_, host_sums_, host_counts_, problem_.dim);
    }
    {
      const auto phase = context.phase("transfer");
      centroids_.upload(host_centroids_, stream);
    }
    ++iterations_;
    if (stop.tolerance > 0 && largest_move < stop.tolerance) break;
    if (stop.min_changes > 0 && !any_point_changed(context)) break;
  }
}

bool Flores::any_point_changed(Context& context) const {
  const auto phase = context.phase("converge");
  int changed = 0;
  changed_.download({&changed, 1}, context.stream);
  return changed != 0;
}

Solution Flores::fetch(Context& context) {
  Solution solution;
  solution.iterations = iterations_;
  solution.labels.resize(labels_.size());
  const auto phase = context.phase("transfer");
  labels_.download(solution.labels, context.stream);
  solution.centroids.assign(host_centroids_.begin(), host_centroids_.end());
  return solution;
}

}  // namespace lloyd::flores
