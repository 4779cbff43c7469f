// What a loop asks of the other GPUs that solve the same problem, each with a part of the points.
// Every GPU has all centroids, and moves them to the same places: sums and sizes of clusters are
// added up over all GPUs before. A loop that has all points to itself has no exchange (null).
#pragma once

#include <cuda_runtime.h>

#include <span>

#include "kernels/core/device_sums.h"

namespace lloyd::fast {

using cuda::Terms;

/// All GPUs call each function equally often and in the same order, with as many values. Throws
/// Abandoned (multi/thread_group.h) where another one has failed.
class Exchange {
 public:
  virtual ~Exchange() = default;
  /// Queues on `stream`: each array becomes the sum of those of all GPUs, with the same bits on
  /// all. One call with several arrays costs what one array costs.
  virtual void add_up(std::span<const Terms> arrays, cudaStream_t stream) = 0;
  /// At once, on the host: each value becomes the sum, or the largest, of those of all GPUs. Waits
  /// for them.
  virtual void sum(std::span<double> values) = 0;
  virtual void largest(std::span<double> values) = 0;

  double sum_of(double value) {
    sum({&value, 1});
    return value;
  }
  double largest_of(double value) {
    largest({&value, 1});
    return value;
  }
};

}  // namespace lloyd::fast
