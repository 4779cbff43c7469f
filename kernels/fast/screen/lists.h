// The memory of the lists in Screen.
#pragma once

#include <cstdint>

#include "kernels/core/cuda.h"
#include "kernels/fast/screen/screen.h"

namespace lloyd::fast {
namespace {

// Where ambiguous points wait for their label; see Screen.
struct Lists {
  Lists() = default;
  /// For a chunk of n points, screened by `blocks` blocks of at most `segment` points.
  Lists(std::size_t n, std::size_t blocks, std::size_t segment, cudaStream_t stream)
      : decided_counts(blocks),
        decided(blocks * segment),
        decided_candidates(blocks * segment * kLanes),
        again_count(1),
        again_points(n),
        again_bounds(n),
        candidate_counts(n),
        candidates(n * kCandidates) {
    // Threads without a point read the first place and ignore what they read.
    LLOYD_CUDA_CHECK(
        cudaMemsetAsync(decided_candidates.data(), 0, kLanes * sizeof(std::int32_t), stream));
  }

  cuda::Buffer<unsigned> decided_counts;
  cuda::Buffer<std::int32_t> decided, decided_candidates;
  cuda::Buffer<unsigned> again_count;
  cuda::Buffer<std::int32_t> again_points;
  cuda::Buffer<float> again_bounds;
  cuda::Buffer<int> candidate_counts;
  cuda::Buffer<std::int32_t> candidates;
};

}  // namespace
}  // namespace lloyd::fast
