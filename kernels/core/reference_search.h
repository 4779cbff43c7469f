// The search of the GPU's reference: labels and distances with the bits of the host's.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/core/cuda.h"

namespace lloyd::cuda {

/// The points, and the labels and distances of the last search. Everything runs in the default
/// stream of the current device.
class NearestSearch {
 public:
  /// `points`: n × dim, row-major. They are copied.
  NearestSearch(std::span<const float> points, std::int64_t n, int dim);
  /// Finds what Reference::nearest() gives for these centroids (k × dim).
  void run(std::span<const double> centroids, int k);

  std::int64_t n() const { return n_; }
  int dim() const { return dim_; }
  const float* columns() const { return columns_.data(); }  // dim × n
  Buffer<std::int32_t>& labels() { return labels_; }
  const Buffer<double>& distances() const { return distances_; }

 private:
  std::int64_t n_;
  int dim_;
  Buffer<float> columns_;
  Buffer<std::int32_t> labels_;
  Buffer<double> distances_;
  Buffer<int> open_;  // points of a chunk whose labels fp32 leaves open
  Buffer<int> open_count_;
  Buffer<double> centroids_;
  Buffer<float> centre_;
  Buffer<float> packed_, halves_;  // of the search in fp32
  Buffer<float> largest_;
};

}  // namespace lloyd::cuda
