// What the GPU's reference adds up where labels and distances are, in the order of the host
// (sum_order.h) and so with its bits. Everything runs in the default stream of the current device.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/core/cuda.h"
#include "kernels/core/reference.h"
#include "kernels/core/sum_order.h"

namespace lloyd::cuda {

/// sum() of values on the device.
class DeviceSum {
 public:
  explicit DeviceSum(std::int64_t n);
  double of(const double* values);

 private:
  std::int64_t n_;
  Buffer<double> pieces_;
};

/// How many of the labels differ.
class DeviceChanges {
 public:
  DeviceChanges() : count_(1) {}
  std::int64_t between(const std::int32_t* labels, const std::int32_t* others, std::int64_t n);

 private:
  Buffer<unsigned long long> count_;
};

/// cluster_sums() of points on the device. Sorts the points of each part by cluster, then adds up
/// each cluster's points, one coordinate per thread. Holds 4 bytes per point, 20 more of
/// up to kSortedAtOnce points, and the sums of the parts, which take up to 64 MiB where there are
/// several.
class DeviceClusterSums {
 public:
  /// Throws Unsupported or OutOfMemory if the device has no room, and Unsupported for a part that
  /// is too large for the sort.
  DeviceClusterSums(std::int64_t n, int k, int dim);
  /// `columns`: dim × n. Each of the n labels is in [0, k).
  ClusterSums of(const float* columns, const std::int32_t* labels);

  static constexpr std::int64_t kSortedAtOnce = std::int64_t{1} << 24;

 private:
  // Parts that are sorted together.
  struct Group {
    std::int64_t first_part, parts, first, points;
  };
  Group group(std::int64_t first_part) const;
  void sort(const Group& group, const std::int32_t* labels);
  void add_up(const float* columns);
  ClusterSums fetch();

  std::int64_t n_;
  int k_, dim_;
  std::size_t cells_;
  SumParts parts_;
  std::int64_t parts_at_once_ = 1;
  Buffer<unsigned> keys_, sorted_keys_;
  Buffer<int> places_;  // of points in their part
  Buffer<char> sort_memory_;
  Buffer<int> order_;            // places by part and cluster
  Buffer<std::int64_t> starts_;  // of each part's clusters in order_, and the end
  Buffer<double> sums_;          // of each part: sums, absolute sums
  Buffer<double> total_;         // the same of all parts, if there are several
  Buffer<std::int64_t> counts_;
};

}  // namespace lloyd::cuda
