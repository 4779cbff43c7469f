#include "kernels/fast/stream/plan.h"

#include <algorithm>

namespace lloyd::fast {
namespace {

// A chunk takes a millisecond of the link: launches and the last wave of blocks cost little then.
constexpr std::int64_t kLargestChunk = std::int64_t{64} << 20;  // bytes
// Of a small capacity, slots take a sixteenth: three, and the placed points of one.
constexpr std::int64_t kChunksInCapacity = 64;
// Sums of a part are made in fp32; those of parts are added in fp64.
constexpr std::int64_t kMostPart = std::int64_t{1} << 22;  // points

std::int64_t up(std::int64_t value, std::int64_t to) { return (value + to - 1) / to * to; }

// What is needed beside resident points.
std::int64_t other_bytes(const StreamSizes& sizes, std::int64_t chunk) {
  const std::int64_t slots = std::min<std::int64_t>(kStreamSlots, (sizes.n + chunk - 1) / chunk);
  return sizes.fixed + sizes.n * sizes.label + slots * chunk * sizes.given;
}

std::int64_t first_chunk(const StreamSizes& sizes, std::int64_t capacity) {
  const std::int64_t bytes = std::min(kLargestChunk, capacity / kChunksInCapacity);
  const std::int64_t points = std::min(bytes / sizes.given, kMostPart);
  const std::int64_t wave = sizes.tile * sizes.wave;
  const std::int64_t to = points >= wave ? wave : sizes.tile;
  const std::int64_t chunk = std::max(points / to * to, sizes.tile);
  return std::min(chunk, up(sizes.n, sizes.tile));
}

// Divides the resident points into `count` parts.
std::vector<StreamPart> resident_parts(const StreamSizes& sizes, std::int64_t resident,
                                       std::int64_t count) {
  const std::int64_t tiles = (resident + sizes.tile - 1) / sizes.tile;
  std::vector<StreamPart> parts;
  for (std::int64_t p = 0; p < count; ++p) {
    const std::int64_t first = tiles * p / count * sizes.tile;
    const std::int64_t last = std::min(tiles * (p + 1) / count * sizes.tile, resident);
    if (last > first) parts.push_back({first, last - first, true});
  }
  return parts;
}

}  // namespace

std::optional<StreamPlan> plan_stream(const StreamSizes& sizes, std::int64_t capacity) {
  StreamPlan plan;
  plan.chunk = first_chunk(sizes, capacity);
  const auto over = [&] { return capacity - other_bytes(sizes, plan.chunk); };
  const std::int64_t all = up(sizes.n, sizes.tile) * sizes.kept;
  while (over() < std::min(all, plan.chunk * sizes.kept)) {
    if (plan.chunk == sizes.tile) return std::nullopt;
    plan.chunk = std::max(plan.chunk / 2 / sizes.tile * sizes.tile, sizes.tile);
  }
  std::int64_t chunks = 0;  // streamed
  if (over() >= all) {
    plan.resident = sizes.n;
    plan.bytes = other_bytes(sizes, plan.chunk) + all;
  } else {
    // The kernels read a streamed chunk as it was placed, too.
    const std::int64_t placed = plan.chunk * sizes.kept;
    plan.resident = (over() - placed) / sizes.kept / plan.chunk * plan.chunk;
    plan.bytes = other_bytes(sizes, plan.chunk) + placed + plan.resident * sizes.kept;
    chunks = (sizes.n - plan.resident + plan.chunk - 1) / plan.chunk;
  }
  const std::int64_t most = (plan.resident + plan.chunk - 1) / plan.chunk;
  const std::int64_t stay = std::clamp((plan.resident + kMostPart - 1) / kMostPart,
                                       std::min(most, chunks), std::max<std::int64_t>(most, 1));
  const std::vector<StreamPart> residents = resident_parts(sizes, plan.resident, stay);
  std::size_t taken = 0;
  for (std::int64_t c = 0; c < chunks; ++c) {
    for (; taken * static_cast<std::size_t>(chunks) <
           residents.size() * static_cast<std::size_t>(c + 1);
         ++taken)
      plan.parts.push_back(residents[taken]);
    const std::int64_t first = plan.resident + c * plan.chunk;
    plan.parts.push_back({first, std::min(plan.chunk, sizes.n - first), false});
  }
  if (chunks == 0) plan.parts = residents;
  return plan;
}

std::int64_t least_capacity(const StreamSizes& sizes) {
  return other_bytes(sizes, sizes.tile) + sizes.tile * sizes.kept;
}

}  // namespace lloyd::fast
