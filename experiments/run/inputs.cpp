#include "experiments/run/inputs.h"

#include <algorithm>

#include "data/sources/seeding.h"
#include "experiments/measure/rounding.h"
#include "experiments/measure/session.h"
#include "kernels/core/batch.h"
#if LLOYD_CUDA
#include "kernels/core/cuda.h"
#endif

namespace lloyd {

Inputs::Initial Inputs::draw(const Point& point, std::span<const float> from) {
  const auto timed = [&](const char* device, data::MakeNearest& make) {
    const double start = now_ms();
    std::vector<float> drawn = data::initial_centroids(point.initial(job_.init), from, point.n,
                                                       point.dim, point.k, 0, make);
    return Initial{std::move(drawn), now_ms() - start, device};
  };
#if LLOYD_CUDA
  const VersionInfo& version = find_version(point.version)->info;
  if (version.backend == Backend::cuda && data::measures_distances(point.init)) {
    try {
      return timed("gpu", data::make_cuda_nearest);
    } catch (const Unsupported&) {  // the points do not fit; the CPU draws the same centroids
    } catch (const cuda::OutOfMemory&) {
    }
  }
#endif
  return timed("cpu", data::make_cpu_nearest);
}

std::span<const float> Inputs::points(const Point& point) {
  const auto wanted = std::make_pair(point.data, point.data_seed);
  if (wanted != drawn_) {
    data_.clear();
    halves_.clear();
    batches_.clear();
    batch_halves_.clear();
  }
  drawn_ = wanted;
  if (point.batch > 1) return batch(point);
  const auto key = std::make_pair(point.dim, storage_precision(point.precision));
  auto at = data_.find(key);
  if (at == data_.end()) {
    std::int64_t n = 0;
    for (const Point& other : job_.points)
      if (other.batch == 1 && other.data == point.data &&
          std::make_pair(other.dim, storage_precision(other.precision)) == key)
        n = std::max(n, other.n);
    data::Dataset drawn = data::load(point.source(job_.data), n, point.dim);
    round_to_storage(point.precision, drawn.values(), point.dim, "point");
    at = data_.emplace(key, std::move(drawn)).first;
  }
  return std::as_const(at->second).values().first(static_cast<std::size_t>(point.n) * point.dim);
}

std::span<const std::uint16_t> Inputs::halves(const Point& point) {
  const Precision precision = storage_precision(point.precision);
  if (precision == Precision::fp32) return {};
  const std::span<const float> wanted = points(point);
  if (point.batch > 1) {
    const auto key = batch_key(point);
    auto at = batch_halves_.find(key);
    if (at == batch_halves_.end())
      at = batch_halves_.emplace(key, to_halves(precision, wanted)).first;
    return at->second;
  }
  const auto key = std::make_pair(point.dim, precision);
  auto at = halves_.find(key);
  if (at == halves_.end())
    at = halves_.emplace(key, to_halves(precision, std::as_const(data_.at(key)).values())).first;
  return std::span(std::as_const(at->second)).first(wanted.size());
}

Inputs::BatchKey Inputs::batch_key(const Point& point) {
  return {point.batch, point.n, point.dim, storage_precision(point.precision)};
}

std::span<const float> Inputs::batch(const Point& point) {
  const BatchKey key = batch_key(point);
  auto at = batches_.find(key);
  if (at == batches_.end()) {
    data::Dataset all(point.n * point.batch, point.dim);
    for (int i = 0; i < point.batch; ++i) {
      const data::Dataset one = data::load(point.alone(i).source(job_.data), point.n, point.dim);
      std::ranges::copy(one.values(), part_of(all.values(), i, point.batch).begin());
    }
    round_to_storage(point.precision, all.values(), point.dim, "point");
    at = batches_.emplace(key, std::move(all)).first;
  }
  return std::as_const(at->second).values();
}

const Inputs::Initial& Inputs::initial(const Point& point) {
  const auto key = std::make_pair(point.inputs(), storage_precision(point.precision));
  auto at = centroids_.find(key);
  if (at == centroids_.end()) {
    const std::span<const float> from = points(point);
    Initial drawn = draw(point.alone(0), part_of(from, 0, point.batch));
    for (int i = 1; i < point.batch; ++i) {
      const Initial next = draw(point.alone(i), part_of(from, i, point.batch));
      drawn.values.insert(drawn.values.end(), next.values.begin(), next.values.end());
      drawn.ms += next.ms;
    }
    round_to_storage(point.precision, drawn.values, point.dim, "initial centroid");
    at = centroids_.emplace(key, std::move(drawn)).first;
  }
  return at->second;
}

}  // namespace lloyd
