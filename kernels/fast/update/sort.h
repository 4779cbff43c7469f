// The points' indices in order of label: a stable counting sort, or a radix sort where k is too
// large to count in shared memory. Both give the same order.
#pragma once

#include <cstdint>

#include "kernels/core/cuda.h"

namespace lloyd::fast {

class LabelSort {
 public:
  LabelSort() = default;
  /// `keeps`: whether changes() will be called; then it has places for two entries a point. False
  /// where can_count() is.
  LabelSort(std::int64_t n, int k, bool keeps, const DeviceLimits& device, cudaStream_t stream);

  /// Whether k clusters can be counted in a block's shared memory.
  static bool can_count(int k, const DeviceLimits& device);

  /// An entry for each point. `previous`, where not null, becomes `labels`.
  void all(const std::int32_t* labels, std::int32_t* previous, cudaStream_t stream);
  /// Entries for the points whose label is not the one in `previous`, which becomes `labels`: one
  /// for the cluster that a point came to, one for the cluster it left. Adjusts the clusters'
  /// sizes.
  void changes(const std::int32_t* labels, std::int32_t* previous, unsigned* sizes,
               cudaStream_t stream);

  /// The entries, in order of label and then of point: an index, or ~index of a point that left.
  const std::int32_t* order() const { return order_.data(); }
  /// Where the entries of each cluster begin; starts()[k]: how many entries there are.
  const unsigned* starts() const { return starts_.data(); }
  /// Entries per cluster. The next sort needs zeros here, which finish() leaves.
  unsigned* totals() const { return totals_.data(); }

 private:
  template <bool kChanges>
  void count_and_scatter(const std::int32_t* labels, std::int32_t* previous, unsigned* sizes,
                         cudaStream_t stream);
  void radix_sort(void* scratch, std::size_t& bytes, const std::int32_t* labels,
                  cudaStream_t stream);

  std::int64_t n_ = 0;
  int k_ = 0;
  int block_points_ = 1, blocks_ = 1;  // of the counting sort
  bool counted_ = true, overlap_ = false;
  cuda::Buffer<std::int32_t> order_;
  cuda::Buffer<unsigned> starts_, totals_, counts_;
  // Of the radix sort:
  cuda::Buffer<std::int32_t> sorted_labels_, indices_;
  cuda::Buffer<char> scratch_;
};

}  // namespace lloyd::fast
