#include "kernels/fast/lib/device_loop.h"

#include <bit>
#include <cmath>

#include "kernels/fast/lib/directions.h"

namespace lloyd::fast {

template <typename Real>
void DeviceLoopOf<Real>::allocate(const Problem& problem) {
  problem_ = problem;
  initial_ = cuda::Buffer<Real>(problem.centroids.size());
  centroids_ = cuda::Buffer<Real>(problem.centroids.size());
  if (problem.spherical) before_ = cuda::Buffer<Real>(problem.centroids.size());
  flags_ = cuda::Buffer<FlagsOf<Real>>(1);
}

template <typename Real>
cuda::Buffer<float> DeviceLoopOf<Real>::upload_points(Context& context) const {
  cuda::Buffer<float> points(static_cast<std::size_t>(problem_.batch * problem_.n * problem_.dim));
  const auto phase = context.phase("transfer");
  cuda::upload_points(problem_, points.data(), context.stream);
  return points;
}

template <typename Real>
void DeviceLoopOf<Real>::upload_initial(std::span<const float> centroids, Context& context) {
  const std::vector<Real> values(centroids.begin(), centroids.end());
  initial_.upload(values, context.stream);
  LLOYD_CUDA_CHECK(cudaStreamSynchronize(context.stream));  // before the vector ends
}

template <typename Real>
cuda::Buffer<float> DeviceLoopOf<Real>::upload_placed(Distance distance, Context& context) {
  cuda::Buffer<float> points = upload_points(context);
  place<float>(points, distance, context);
  placement_.centre(points, context.stream);
  return points;
}

template <typename Real>
void DeviceLoopOf<Real>::run(Context& context) {
  LLOYD_CUDA_CHECK(cudaMemcpyAsync(centroids_.data(), initial_.data(), initial_.bytes(),
                                   cudaMemcpyDeviceToDevice, context.stream));
  iterations_ = 0;
  begin(context);
  if (problem_.stop.iterations > 0 && !has_rule() && queue_all_iterations(context))
    iterations_ = problem_.stop.iterations;
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

template <typename Real>
void DeviceLoopOf<Real>::forget_centroids(Context& context) {
  if (!problem_.spherical) return;
  LLOYD_CUDA_CHECK(cudaMemsetAsync(centroids_.data(), 0xff, centroids_.bytes(), context.stream));
}

template <typename Real>
void DeviceLoopOf<Real>::scale_means(Context& context) {
  if (!problem_.spherical) return;
  fast::scale_means(centroids_.data(), before_.data(), std::int64_t{problem_.batch} * problem_.k,
                    problem_.dim, placement_.scale(), largest_move(), context.stream);
}

template <typename Real>
bool DeviceLoopOf<Real>::may_stop(Context& context) {
  const auto phase = context.phase("converge");
  if (has_min_changes()) count_changes(context);
  FlagsOf<Real> flags;
  flags_.download({&flags, 1}, context.stream);
  Real move = std::sqrt(std::bit_cast<Real>(flags.largest_move)) / placement_.scale();
  auto changed = static_cast<std::int64_t>(flags.changes);
  if (exchange_ != nullptr) {
    // All GPUs must decide alike, so they also agree on the move, which should be the same anyway.
    if (has_tolerance()) move = static_cast<Real>(exchange_->largest_of(double{move}));
    if (has_min_changes())
      changed = static_cast<std::int64_t>(exchange_->sum_of(static_cast<double>(changed)));
  }
  if (has_tolerance() && move < problem_.stop.tolerance) return true;
  return changed < problem_.stop.min_changes;
}

template <typename Real>
Solution DeviceLoopOf<Real>::fetch(Context& context) {
  Solution solution;
  solution.iterations = iterations_;
  const auto phase = context.phase("transfer");
  solution.labels = fetch_labels(context);
  solution.centroids = fetch_centroids(context);
  return solution;
}

template <typename Real>
std::vector<double> DeviceLoopOf<Real>::fetch_centroids(Context& context) {
  if constexpr (std::is_same_v<Real, float>) {
    return placement_.restored(centroids_, context);
  } else {
    std::vector<double> centroids = context.centroid_memory(centroids_.size());
    centroids_.download(centroids, context.stream);
    return centroids;
  }
}

template class DeviceLoopOf<float>;
template class DeviceLoopOf<double>;

}  // namespace lloyd::fast
