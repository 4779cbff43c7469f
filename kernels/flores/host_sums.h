// flores_distribution's sums, in a file of their own that the host compiler builds with OpenMP.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace lloyd::flores {

class HostSums {
 public:
  HostSums(int threads, int k, int dim);

  /// Computes the sums (k × dim) and counts (k) of the clusters that `labels` gives the points
  /// (row-major). Each thread sums into its own arrays, which are merged in thread order.
  void add_up(std::span<const float> points, std::span<const std::int32_t> labels,
              std::vector<float>& sums, std::vector<std::int64_t>& counts);

 private:
  struct Local {
    std::vector<float> sums;
    std::vector<std::int64_t> counts;
  };

  int dim_;
  std::vector<Local> local_;  // one per thread
};

}  // namespace lloyd::flores
