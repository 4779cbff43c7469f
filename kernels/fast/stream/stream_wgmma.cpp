// stream_wgmma: fast_wgmma for points that do not fit on the device.
//
// Parent   fast_wgmma.
// What     Points stay on the host in 16 bits, or in a file. As many as `device_memory` allows are
//          placed on the device once; in each iteration the others pass through three chunks of
//          memory there. A kernel places each chunk, fast_wgmma's kernel labels it and adds it up,
//          and after the last one the centroids are moved. Copies run ahead, also into the next
//          iteration.
// Why      Up to K = 8,192 at dim 128 the products take less time than the link, so they hide
//          behind it. Points that fit cost no copies.
// Limits   Compute capability 9.0, up to 256 dimensions, n < 2^31. Labels (4 B a point), centroids
//          and their sums must fit beside a chunk. Centroids are fast_wgmma's up to rounding.
// Floor    The bytes that do not fit, at the rate of the link, or fast_wgmma's.
// More     step() is the iteration. wgmma/parts.cuh has its kernels, core/chunk_stream.h the copies
//          that run ahead, plan.h what stays. NOTES.md shows an iteration along time.
#include "kernels/fast/stream/stream_wgmma.h"

#include "kernels/core/limits.h"
#include "kernels/fast/stream/capacity.h"
#include "kernels/fast/wgmma/parts_sizes.h"

#if LLOYD_CUDA
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "kernels/core/chunk_stream.h"
#include "kernels/core/halves.h"
#include "kernels/core/point_rows.h"
#include "kernels/fast/lib/device_loop.h"
#include "kernels/fast/wgmma/parts.h"
#endif

namespace lloyd::fast {

namespace {

// The driver allocates in pages of 2 MiB: room for what 8 buffers leave of their last ones.
constexpr std::int64_t kPages = 8 * (std::int64_t{2} << 20);
constexpr std::int64_t kSample = 1024;  // points by which expanded distances are judged
constexpr std::size_t kReadAhead = 2;   // chunks: the system fetches one while threads read another

std::string too_large(const StreamSizes& sizes, std::int64_t capacity) {
  return "needs " + with_commas(least_capacity(sizes)) + " B on the device for " +
         with_commas(sizes.tile) + " points beside labels and centroids, and may take " +
         with_commas(std::max<std::int64_t>(capacity, 0)) + " B";
}

}  // namespace

StreamSizes stream_wgmma_sizes(const Problem& problem, const DeviceLimits& device) {
  const std::int64_t cells = std::int64_t{problem.k} * problem.dim;
  return {.n = problem.n,
          .given = std::int64_t{2} * problem.dim,
          .kept = std::int64_t{2} * padded_for_parts(problem.dim) + 4,
          .label = 4,
          .fixed = bytes_for_parts(problem.k, problem.dim) + 12 * cells +
                   4 * kSample * problem.dim + kPages,
          .tile = kPartPoints,
          .wave = std::max(device.multiprocessors, 1)};
}

namespace {

#if LLOYD_CUDA

class StreamWgmma : public DeviceLoop {
 public:
  /// `capacity`: in bytes; 0: as the tunable says.
  explicit StreamWgmma(std::int64_t capacity = 0, Exchange* exchange = nullptr)
      : DeviceLoop(exchange), capacity_(capacity) {}

  void prepare(const Problem& problem, Context& context) override {
    const cudaStream_t stream = context.stream;
    given_ = halves_of(problem);
    plan_ = planned(problem, context);
    allocate(problem);
    parts_ = make_wgmma_parts(problem, context.device, exchange_, stream);
    labels_ = cuda::Buffer<std::int32_t>(static_cast<std::size_t>(problem.n));
    allocate_places();
    {
      const auto phase = context.phase("transfer");
      place(stream);
      load_residents(stream);
    }
    std::vector<StreamPart> chunks;
    for (const StreamPart& part : plan_.parts)
      if (!part.resident) chunks.push_back(part);
    streamed_ = stream_of(std::move(chunks));
  }

 private:
  void begin(Context& context) override {
    LLOYD_CUDA_CHECK(cudaMemsetAsync(labels_.data(), 0xff, labels_.bytes(), context.stream));
    parts_->begin(centroids_.data(), context.stream);
    streamed_->start(problem_.stop.iterations, context.stream);
  }

  void step(Context& context) override {
    const cudaStream_t stream = context.stream;
    {
      const auto phase = context.phase("assign");
      for (std::size_t p = 0; p < plan_.parts.size(); ++p) {
        const StreamPart& part = plan_.parts[p];
        if (!part.resident) {
          const void* chunk = streamed_->next(stream);
          parts_->place(chunk, part.count, places_[p], 0, stream);
          streamed_->release(stream);
        }
        parts_->assign(places_[p], part.count, labels_.data() + part.first, changes(), stream);
      }
    }
    const auto phase = context.phase("update");
    parts_->move(centroids_.data(), largest_move(), stream);
  }

  std::vector<std::int32_t> fetch_labels(Context& context) override {
    streamed_->stop();  // a rule may have ended the loop early
    return cuda::download_labels(labels_, context);
  }

  // The points in 16 bits. Values of a 16-bit problem are exact in them. Empty if they are in a
  // file.
  std::span<const std::uint16_t> halves_of(const Problem& problem) {
    if (!problem.halves.empty() || problem.rows != nullptr) return problem.halves;
    own_halves_.reserve(problem.points.size());
    for (const float x : problem.points)
      own_halves_.push_back(problem.precision == Precision::fp16 ? fp16_bits(x) : bf16_bits(x));
    return own_halves_;
  }

  StreamPlan planned(const Problem& problem, const Context& context) const {
    const std::int64_t most = capacity_now(context.tunables, capacity_);
    const StreamSizes sizes = stream_wgmma_sizes(problem, context.device);
    if (auto plan = plan_stream(sizes, most)) return *std::move(plan);
    throw Unsupported(too_large(sizes, most));
  }

  cuda::ChunkStream::Chunk bytes_of(const StreamPart& part) const {
    const auto dim = static_cast<std::size_t>(problem_.dim);
    return std::as_bytes(given_.subspan(static_cast<std::size_t>(part.first) * dim,
                                        static_cast<std::size_t>(part.count) * dim));
  }

  // In each pass these chunks, in order.
  std::unique_ptr<cuda::ChunkStream> stream_of(std::vector<StreamPart> chunks) const {
    if (!given_.empty()) {
      std::vector<cuda::ChunkStream::Chunk> bytes;
      for (const StreamPart& chunk : chunks) bytes.push_back(bytes_of(chunk));
      return std::make_unique<cuda::ChunkStream>(bytes, kStreamSlots);
    }
    const std::int64_t dim = problem_.dim;
    std::vector<std::size_t> sizes;
    for (const StreamPart& chunk : chunks)
      sizes.push_back(static_cast<std::size_t>(chunk.count * dim) * sizeof(std::uint16_t));
    const auto fill = [rows = problem_.rows, chunks = std::move(chunks), dim](
                          std::size_t number, std::size_t first, std::span<std::byte> to) {
      if (first == 0) {
        const StreamPart& soon = chunks[(number + kReadAhead) % chunks.size()];
        rows->expect(soon.first * dim, soon.count * dim);
      }
      constexpr std::size_t kValue = sizeof(std::uint16_t);
      rows->read(chunks[number].first * dim + static_cast<std::int64_t>(first / kValue),
                 {reinterpret_cast<std::uint16_t*>(to.data()), to.size() / kValue});
    };
    return std::make_unique<cuda::ChunkStream>(std::move(sizes), fill, kStreamSlots);
  }

  // Cut into chunks that fit into slots.
  std::vector<StreamPart> chunks_of(const StreamPart& part) const {
    std::vector<StreamPart> chunks;
    for (std::int64_t at = 0; at < part.count; at += plan_.chunk)
      chunks.push_back({part.first + at, std::min(plan_.chunk, part.count - at), part.resident});
    return chunks;
  }

  // Calls visit(memory, chunk) for parts of the points while they pass through the device.
  template <typename Visit>
  void pass(const std::vector<StreamPart>& chunks, Visit&& visit, cudaStream_t stream) const {
    const std::unique_ptr<cuda::ChunkStream> all = stream_of(chunks);
    all->start(1, stream);
    for (const StreamPart& chunk : chunks) {
      visit(all->next(stream), chunk);
      all->release(stream);
    }
    LLOYD_CUDA_CHECK(cudaStreamSynchronize(stream));
  }

  void allocate_places() {
    const auto value = static_cast<std::size_t>(padded_for_parts(problem_.dim));
    const auto whole = [](std::int64_t count) {
      return (count + kPartPoints - 1) / kPartPoints * kPartPoints;
    };
    // Resident parts follow each other and are whole tiles, except for the last one. All streamed
    // ones share the place behind them.
    const std::int64_t resident = whole(plan_.resident);
    const std::int64_t shared = plan_.streamed(problem_.n) > 0 ? plan_.chunk : 0;
    const auto rows = static_cast<std::size_t>(resident + shared);
    points_ = cuda::Buffer<std::uint16_t>(rows * value);
    half_norms_ = cuda::Buffer<float>(rows);
    const auto add = [&](std::int64_t first, std::int64_t count) {
      return parts_->add({.points = points_.data() + static_cast<std::size_t>(first) * value,
                          .half_norms = half_norms_.data() + first,
                          .rows = count});
    };
    const int passing = shared > 0 ? add(resident, shared) : -1;
    for (const StreamPart& part : plan_.parts)
      places_.push_back(part.resident ? add(part.first, whole(part.count)) : passing);
  }

  // Decides how points are placed: all of them pass by once.
  void place(cudaStream_t stream) {
    Ranges ranges(problem_.dim, stream);
    pass(
        chunks_of({0, problem_.n, false}),
        [&](const void* memory, const StreamPart& chunk) {
          parts_->see(memory, chunk.count, ranges, stream);
        },
        stream);
    if (exchange_ != nullptr) ranges.combine(*exchange_, stream);
    const std::int64_t step = (problem_.n + kSample - 1) / kSample;
    std::vector<float> values, memory;
    for (std::int64_t i = 0; i < problem_.n; i += step) {
      const std::span<const float> point = points_of(problem_, i, 1, memory);
      values.insert(values.end(), point.begin(), point.end());
    }
    Problem sample = problem_;
    sample.n = std::ssize(values) / problem_.dim;
    cuda::Buffer<float> sampled(values.size());
    sampled.upload(values, stream);
    placement_ = parts_->placement(sample, sampled.data(), ranges, stream);
    placement_.upload_centroids(initial_, stream);
  }

  void load_residents(cudaStream_t stream) {
    std::vector<StreamPart> chunks;
    std::vector<std::size_t> parts;  // of each chunk
    for (std::size_t p = 0; p < plan_.parts.size(); ++p)
      if (plan_.parts[p].resident)
        for (const StreamPart& chunk : chunks_of(plan_.parts[p])) {
          chunks.push_back(chunk);
          parts.push_back(p);
        }
    std::size_t next = 0;
    pass(
        chunks,
        [&](const void* memory, const StreamPart& chunk) {
          const std::size_t p = parts[next++];
          parts_->place(memory, chunk.count, places_[p], chunk.first - plan_.parts[p].first,
                        stream);
        },
        stream);
  }

  std::int64_t capacity_;
  std::vector<std::uint16_t> own_halves_;
  std::span<const std::uint16_t> given_;  // n × dim, on the host; empty if they are in a file
  StreamPlan plan_;
  std::unique_ptr<WgmmaParts> parts_;
  cuda::Buffer<std::uint16_t> points_;  // placed
  cuda::Buffer<float> half_norms_;
  cuda::Buffer<std::int32_t> labels_;
  std::vector<int> places_;  // of each part of the plan
  std::unique_ptr<cuda::ChunkStream> streamed_;
};
#endif

LLOYD_CUDA_VERSION(
    StreamWgmma,
    {.name = "stream_wgmma",
     .family = "stream",
     .backend = Backend::cuda,
     .parent = "fast_wgmma",
     .axes = {"device_memory"},
     .precisions = {Precision::fp16, Precision::bf16},
     .reads_rows = true,
     .distance = Distance::expanded,
     .summary = "fast_wgmma with the points on the host: what does not fit on the device crosses "
                "the link behind the products",
     .unsupported = [](const Problem& problem, const Tunables& tunables,
                       const DeviceLimits& device) -> std::optional<std::string> {
       constexpr std::int64_t kMost = (std::int64_t{1} << 31) - kPartPoints;
       if (problem.n > kMost)
         return "counts points in 32 bits: at most " + with_commas(kMost) + ", not " +
                with_commas(problem.n);
       if (device.compute_capability != 90)
         return "needs compute capability 9.0, this device has " +
                std::to_string(device.compute_capability / 10) + "." +
                std::to_string(device.compute_capability % 10);
       if (problem.dim > kMostPartDim)
         return "takes up to " + with_commas(kMostPartDim) + " dimensions, not " +
                with_commas(problem.dim);
       const std::int64_t capacity = capacity_of(device.memory_bytes, tunables);
       const StreamSizes sizes = stream_wgmma_sizes(problem, device);
       if (capacity < least_capacity(sizes)) return too_large(sizes, capacity);
       return std::nullopt;
     }});

}  // namespace

#if LLOYD_CUDA
std::unique_ptr<Version> make_stream_wgmma(std::int64_t capacity, Exchange* exchange) {
  return std::make_unique<StreamWgmma>(capacity, exchange);
}
#endif

}  // namespace lloyd::fast
