// How stream_wgmma divides points among memory that stays and memory that they pass through. A pure
// function of sizes: it needs no GPU.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace lloyd::fast {

/// What of a version needs memory on the device, in bytes.
struct StreamSizes {
  std::int64_t n = 0;      // points
  std::int64_t given = 0;  // bytes of a point as it crosses the link
  std::int64_t kept = 0;   // bytes of a point as the kernels read it
  std::int64_t label = 0;  // bytes of a label, which all points have on the device
  std::int64_t fixed = 0;  // bytes of centroids, sums and the like
  std::int64_t tile = 1;   // points: the kernels read whole tiles, which memory must have
  std::int64_t wave = 1;   // tiles that the device takes at once
};

/// A part of the points, of which the kernels take one after another.
struct StreamPart {
  std::int64_t first = 0, count = 0;
  bool resident = false;
  bool operator==(const StreamPart&) const = default;
};

struct StreamPlan {
  std::int64_t chunk = 0;         // points that cross the link at once: whole tiles
  std::int64_t resident = 0;      // points, the first ones, that stay on the device
  std::int64_t bytes = 0;         // of device memory
  std::vector<StreamPart> parts;  // in the order of an iteration

  std::int64_t streamed(std::int64_t n) const { return n - resident; }
};

/// Chunks on the device: one is read while two are on their way.
inline constexpr int kStreamSlots = 3;

/// As many points as fit into `capacity` bytes stay; the others come in chunks, in every iteration.
/// Resident and streamed parts alternate, so that chunks arrive while resident points are read.
/// nullopt if not even a tile of points fits beside what is fixed.
std::optional<StreamPlan> plan_stream(const StreamSizes& sizes, std::int64_t capacity);

/// The least capacity that plan_stream() takes.
std::int64_t least_capacity(const StreamSizes& sizes);

}  // namespace lloyd::fast
