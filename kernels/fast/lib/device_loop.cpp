#include "kernels/fast/lib/device_loop.h"

#include <bit>
#include <cmath>

#include "kernels/fast/lib/directions.h"

namespace lloyd::fast {

void DeviceLoop::allocate(const Problem& problem) {
  problem_ = problem;
  initial_ = cuda::Buffer<float>(problem.centroids.size());
  centroids_ = cuda::Buffer<float>(problem.centroids.size());
  if (problem.spherical) before_ = cuda::Buffer<float>(problem.centroids.size());
  flags_ = cuda::Buffer<Flags>(1);
}

cuda::Buffer<float> DeviceLoop::upload_points(Context& context) const {
  cuda::Buffer<float> points(problem_.points.size());
  const auto phase = context.phase("transfer");
  cuda::upload_points(problem_, points.data(), context.stream);
  return points;
}

cuda::Buffer<float> DeviceLoop::upload_placed(Distance distance, Context& context) {
  cuda::Buffer<float> points = upload_points(context);
  place<float>(points, distance, context);
  placement_.centre(points, context.stream);
  return points;
}

void DeviceLoop::run(Context& context) {
  LLOYD_CUDA_CHECK(cudaMemcpyAsync(centroids_.data(), initial_.data(), initial_.bytes(),
                                   cudaMemcpyDeviceToDevice, context.stream));
  iterations_ = 0;
  begin(context);
  while (iterations_ < problem_.stop.iterations) {
    const auto iteration = context.iteration(iterations_);
    if (has_rule()) flags_.zero(context.stream);
    if (problem_.spherical)
      LLOYD_CUDA_CHECK(cudaMemcpyAsync(before_.data(), centroids_.data(), centroids_.bytes(),
                                       cudaMemcpyDeviceToDevice, context.stream));
    step(context);
    ++iterations_;
    if (has_rule() && may_stop(context)) break;
  }
}

void DeviceLoop::forget_centroids(Context& context) {
  if (!problem_.spherical) return;
  LLOYD_CUDA_CHECK(cudaMemsetAsync(centroids_.data(), 0xff, centroids_.bytes(), context.stream));
}

void DeviceLoop::scale_means(Context& context) {
  if (!problem_.spherical) return;
  fast::scale_means(centroids_.data(), before_.data(), std::int64_t{problem_.batch} * problem_.k,
                    problem_.dim, placement_.scale(), largest_move(), context.stream);
}

bool DeviceLoop::may_stop(Context& context) {
  const auto phase = context.phase("converge");
  if (has_min_changes()) count_changes(context);
  Flags flags;
  flags_.download({&flags, 1}, context.stream);
  float move = std::sqrt(std::bit_cast<float>(flags.largest_move)) / placement_.scale();
  auto changed = static_cast<std::int64_t>(flags.changes);
  if (exchange_ != nullptr) {
    // All GPUs must decide alike, so they also agree on the move, which should be the same anyway.
    if (has_tolerance()) move = static_cast<float>(exchange_->largest_of(double{move}));
    if (has_min_changes())
      changed = static_cast<std::int64_t>(exchange_->sum_of(static_cast<double>(changed)));
  }
  if (has_tolerance() && move < problem_.stop.tolerance) return true;
  return changed < problem_.stop.min_changes;
}

Solution DeviceLoop::fetch(Context& context) {
  Solution solution;
  solution.iterations = iterations_;
  const auto phase = context.phase("transfer");
  solution.labels = fetch_labels(context);
  solution.centroids = placement_.restored(fetch_centroids(context));
  return solution;
}

std::vector<float> DeviceLoop::fetch_centroids(Context& context) {
  std::vector<float> centroids(centroids_.size());
  centroids_.download(centroids, context.stream);
  return centroids;
}

}  // namespace lloyd::fast
