#include "experiments/run/inputs.h"

#include <algorithm>

#include "data/sources/seeding.h"
#include "experiments/measure/rounding.h"
#include "experiments/process/clock.h"
#include "kernels/core/batch.h"
#if LLOYD_CUDA
#include "kernels/core/cuda.h"
#endif

namespace lloyd {

Held held(const Point& point, const data::Sources& sources) {
  const data::Source source = point.source(sources);
  const bool as_is = point.batch == 1 && !source.unit_length;
  if (storage_precision(point.precision) == Precision::fp32)
    return as_is && source.mapped && data::lies_in_place(source, point.dim) ? Held::lent
                                                                            : Held::floats;
  const RegisteredVersion* version = find_version(point.version);
  const bool needs_no_floats = version != nullptr && version->info.reads_rows && point.batch == 1 &&
                               !data::measures_distances(point.init);
  if (!needs_no_floats) return Held::floats;
  return as_is && source.mapped ? Held::rows : Held::halves;
}

namespace {

#if LLOYD_CUDA
void draw_on_gpu_if_it_has_room(const data::Generator& generator, std::int64_t first,
                                std::span<float> out, int dim, int threads) {
  try {
    data::draw_on_gpu(generator, first, out, dim, threads);
  } catch (const cuda::OutOfMemory&) {  // the CPU draws the same bits
    data::draw_on_cpu(generator, first, out, dim, threads);
  }
}
#endif

// Only the process of a version on a GPU has one.
data::DrawRows& draw_for(const Job& job, const Point& point) {
#if LLOYD_CUDA
  const RegisteredVersion* version = find_version(point.version);
  if (job.device && version != nullptr && version->info.backend == Backend::cuda)
    return draw_on_gpu_if_it_has_room;
#else
  static_cast<void>(job);
  static_cast<void>(point);
#endif
  return data::draw_on_cpu;
}

}  // namespace

int bytes_held(Held held) {
  switch (held) {
    case Held::floats:
      return 4;
    case Held::halves:
      return 2;
    default:
      return 0;
  }
}

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

Inputs::Initial Inputs::draw(const Point& point, const PointRows& from) {
  const double start = now_ms();
  std::vector<float> drawn =
      data::initial_centroids(point.initial(job_.init), from, point.n, point.dim, point.k);
  return {std::move(drawn), now_ms() - start, "cpu"};
}

void Inputs::forget_others(const Point& point) {
  const auto wanted = std::make_pair(point.data, point.data_seed);
  if (wanted != drawn_) {
    data_.clear();
    halves_.clear();
    files_.clear();
    narrow_.clear();
    batches_.clear();
    batch_halves_.clear();
  }
  drawn_ = wanted;
}

std::int64_t Inputs::most_points(const Point& point) const {
  std::int64_t n = 0;
  for (const Point& other : job_.points)
    if (other.batch == 1 && other.data == point.data && other.dim == point.dim &&
        storage_precision(other.precision) == storage_precision(point.precision))
      n = std::max(n, other.n);
  return n;
}

std::span<const float> Inputs::points(const Point& point) {
  forget_others(point);
  if (point.batch > 1) return batch(point);
  const auto values = static_cast<std::size_t>(point.n) * static_cast<std::size_t>(point.dim);
  const Held where = held(point, job_.data);
  if (where == Held::lent) return file(point).in_place().first(values);
  if (where != Held::floats) return {};
  const Key key(point.dim, storage_precision(point.precision));
  auto at = data_.find(key);
  if (at == data_.end()) {
    data::Dataset drawn = data::load(point.source(job_.data), most_points(point), point.dim, 0,
                                     draw_for(job_, point));
    round_to_storage(point.precision, drawn.values(), point.dim, "point");
    at = data_.emplace(key, std::move(drawn)).first;
  }
  return std::as_const(at->second).values().first(values);
}

const PointRows* Inputs::rows(const Point& point) {
  forget_others(point);
  switch (held(point, job_.data)) {
    case Held::rows:
      return &file(point);
    case Held::halves:
      return &narrow(point);
    default:
      return nullptr;
  }
}

void Inputs::check_unchanged() const {
  for (const auto& each : files_) each.second.check_unchanged();
}

// A file is read once before it is used, so that all of its values are known to be good.
data::FileRows& Inputs::file(const Point& point) {
  const Key key(point.dim, storage_precision(point.precision));
  auto at = files_.find(key);
  if (at == files_.end()) {
    at = files_.try_emplace(key, point.source(job_.data), most_points(point), point.dim, key.second)
             .first;
    try {
      at->second.check([&](std::int64_t first, std::span<float> values) {
        round_to_storage(key.second, values, point.dim, "point", first);
      });
    } catch (...) {
      files_.erase(at);
      throw;
    }
  }
  at->second.check_unchanged();
  return at->second;
}

// Drawn and rounded a few at a time, so that floats take no memory.
const HalfRows& Inputs::narrow(const Point& point) {
  const Key key(point.dim, storage_precision(point.precision));
  if (const auto known = narrow_.find(key); known != narrow_.end()) return known->second.rows;
  const data::Source source = point.source(job_.data);
  const std::int64_t n = most_points(point);
  data::check_fits_memory(n, point.dim, bytes_held(Held::halves));
  const auto dim = static_cast<std::size_t>(point.dim), size = static_cast<std::size_t>(n) * dim;
  auto memory = std::make_unique_for_overwrite<std::uint16_t[]>(size);
  const std::span<std::uint16_t> halves(memory.get(), size);
  const auto keep = [&](std::int64_t first, std::span<float> values) {
    round_to_storage(key.second, values, point.dim, "point", first);
    to_halves(key.second, values,
              halves.subspan(static_cast<std::size_t>(first) * dim, values.size()));
  };
  if (source.file.empty() && !source.unit_length) {
    std::vector<float> values;
    // Threads that have rounded wait actively for a while, at the cost of those that bring the next
    // values from the GPU. So there are few steps.
    const std::int64_t step = 4 * points_at_once(point.dim);
    for (std::int64_t first = 0; first < n; first += step) {
      values.resize(static_cast<std::size_t>(std::min(step, n - first)) * dim);
      data::generate_rows(source, first, values, point.dim, 0, draw_for(job_, point));
      keep(first, values);
    }
  } else {
    data::Dataset all = data::load(source, n, point.dim, 0, draw_for(job_, point));
    keep(0, all.values());
  }
  return narrow_.try_emplace(key, Narrow{std::move(memory), HalfRows(halves, key.second)})
      .first->second.rows;
}

std::span<const std::uint16_t> Inputs::halves(const Point& point) {
  const Precision precision = storage_precision(point.precision);
  if (precision == Precision::fp32) return {};
  forget_others(point);
  const Held where = held(point, job_.data);
  if (where == Held::rows) return {};
  if (where == Held::halves)
    return narrow(point).halves().first(static_cast<std::size_t>(point.n) *
                                        static_cast<std::size_t>(point.dim));
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
      const data::Dataset one = data::load(point.alone(i).source(job_.data), point.n, point.dim, 0,
                                           draw_for(job_, point));
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
    const PointRows* const from_rows = rows(point);
    const std::span<const float> from = points(point);
    Initial drawn = from_rows != nullptr ? draw(point, *from_rows)
                                         : draw(point.alone(0), part_of(from, 0, point.batch));
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
