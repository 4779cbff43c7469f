// When fast_wgmma makes the sums of clusters in the kernel of the products, and of which points.
#pragma once

#include <cstdint>

#include "kernels/fast/update/update.h"

namespace lloyd::fast {

/// Whether so many clusters are summed in the kernel of the products, if that can add up. With
/// fewer, a product is done before three warps have added up a tile, and additions to the same
/// cluster wait for each other. NOTES.md has the times beside the sorted update's. `points`: of a
/// GPU.
inline bool sums_pay(std::int64_t points, int k) {
  constexpr std::int64_t kFew = 200'000;
  constexpr int kFewest = 512, kFewestOfFew = 64;
  return k >= (points <= kFew ? kFewestOfFew : kFewest);
}

/// Whether, on Hopper, the sums of so few clusters are made by a second product
/// (one_hot_engine.cuh): sums of 128 dimensions and 128 clusters, or of 256 and 64, fit in a
/// consumer's registers beside the scores.
inline bool one_hot_pays(int k, int dim) { return k <= 64 ? dim <= 256 : k <= 128 && dim <= 128; }

/// Whether an iteration adds up all points of a problem, or only those that changed cluster. With
/// few points in a cluster, most change in every iteration. Batches have a bound of their own: the
/// blocks that sum worn clusters anew (place.cuh) read the labels of one problem only.
inline bool adds_all_points(int iteration, std::int64_t n, int k, bool batched) {
  constexpr int kRenewal = 64;  // iterations, of which the first kUnsettled add up all points
  constexpr int kFewest = 256, kFewestOfBatch = 64;
  return iteration % kRenewal < kUnsettled || n / k < (batched ? kFewestOfBatch : kFewest);
}

}  // namespace lloyd::fast
