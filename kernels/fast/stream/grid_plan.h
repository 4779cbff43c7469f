// How stream_grid divides the device's memory. A pure function of sizes: it needs no GPU.
#pragma once

#include <cstdint>
#include <optional>

#include "kernels/core/version.h"

namespace lloyd::fast {

struct GridPlan {
  std::int64_t chunk = 0;    // points that are sorted at once: whole regions of the tree
  std::int64_t regions = 0;  // of the tree
  std::int64_t stay = 0;     // regions whose points stay on the device
  bool labels_stay = false;  // whether the labels of points do
  std::int64_t bytes = 0;    // of device memory, at most at any time

  /// Whether the points of a region stay. Those that do are spread evenly, so that an iteration
  /// reads the link and the device's memory at the same time.
  bool stays(std::int64_t region) const { return slot(region + 1) > slot(region); }
  /// Where a region that stays lies among those that stay: how many regions before it stay.
  std::int64_t slot(std::int64_t region) const { return region * stay / regions; }
};

/// Points of a region of the tree.
std::int64_t grid_region_points();

/// nullopt if not even the tree fits into `capacity` bytes beside the memory for sorting.
std::optional<GridPlan> plan_grid(const Problem& problem, const DeviceLimits& device,
                                  std::int64_t capacity);

/// The least capacity that plan_grid() takes.
std::int64_t least_grid_capacity(const Problem& problem, const DeviceLimits& device);

}  // namespace lloyd::fast
