// The sums of clusters that the kernel of the products makes, from one iteration to the next.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/core/cuda.h"
#include "kernels/fast/lib/exchange.h"
#include "kernels/fast/wgmma/place.cuh"

namespace lloyd::fast {
namespace {

template <typename T>
class KeptSums {
 public:
  KeptSums() = default;
  /// Of `clusters` clusters, in rows of `padded` values. `exchange`: with GPUs that have other
  /// points of the same clusters, or null.
  KeptSums(std::size_t clusters, std::size_t padded, Exchange* exchange)
      : exchange_(exchange),
        padded_(static_cast<int>(padded)),
        sums_(clusters * padded),
        kept_(clusters * padded),
        tallies_(clusters) {
    if (exchange == nullptr) return;
    all_sums_ = cuda::Buffer<double>(clusters * padded);
    all_tallies_ = cuda::Buffer<Tally>(clusters);
  }

  void begin(cudaStream_t stream) {
    sums_.zero(stream);
    tallies_.zero(stream);
  }

  /// Where the kernel of the products adds points up. Null if these sums are not used.
  float* sums() const { return sums_.data(); }
  Tally* tallies() const { return tallies_.data(); }
  double* kept() const { return kept_.data(); }

  /// What moves the centroids: `own`, the sums of this GPU's points, if there is no other GPU. Else
  /// the sums of all GPUs' points, as if they were kept ones of which no point came or went. Each
  /// GPU goes on keeping those of its own.
  Sums<T> of_all(const Sums<T>& own, cudaStream_t stream) {
    if (exchange_ == nullptr) return own;
    const auto k = static_cast<int>(tallies_.size());
    collect_sums<<<cuda::blocks_for(std::int64_t{k} * 32, kBlock), kBlock, 0, stream>>>(
        own, k, padded_, all_sums_.data(), all_tallies_.data());
    LLOYD_CUDA_CHECK_LAUNCH();
    const Terms terms[] = {Terms(all_sums_), Terms(all_tallies_)};
    exchange_->add_up(terms, stream);
    Sums<T> all = own;
    all.kept = all_sums_.data();
    all.tallies = all_tallies_.data();
    all.all = false;
    return all;
  }

 private:
  Exchange* exchange_ = nullptr;
  int padded_ = 0;
  // Of an iteration: of all points, or of those that came minus those that went.
  cuda::Buffer<float> sums_;
  cuda::Buffer<double> kept_;  // the clusters' sums
  cuda::Buffer<Tally> tallies_;
  // Of the points on all GPUs, where there are several.
  cuda::Buffer<double> all_sums_;
  cuda::Buffer<Tally> all_tallies_;
};

}  // namespace
}  // namespace lloyd::fast
