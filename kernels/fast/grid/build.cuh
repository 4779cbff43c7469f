// Builds the tree, once: points are sorted along Hilbert's curve, then each level is gathered from
// the one below it.
#pragma once

#include <algorithm>
#include <climits>
#include <cmath>
#include <cstdint>
#include <cub/device/device_radix_sort.cuh>
#include <vector>

#include "kernels/fast/grid/tree.cuh"

namespace lloyd::fast {
namespace {

using Key = unsigned long long;  // a place along the curve

/// box[2][D]: least and largest coordinates, as ordered(). They start from INT_MAX and INT_MIN.
template <int D>
__global__ void bound(const float* points, std::int64_t n, int* box) {
  float low[D], high[D];
  for (int t = 0; t < D; ++t) {
    low[t] = INFINITY;
    high[t] = -INFINITY;
  }
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n;
       i += stride)
    for (int t = 0; t < D; ++t) {
      low[t] = fminf(low[t], points[i * D + t]);
      high[t] = fmaxf(high[t], points[i * D + t]);
    }
  for (int t = 0; t < D; ++t) {
    for (int offset = kLanes / 2; offset > 0; offset /= 2) {
      low[t] = fminf(low[t], __shfl_xor_sync(kAllLanes, low[t], offset));
      high[t] = fmaxf(high[t], __shfl_xor_sync(kAllLanes, high[t], offset));
    }
    if (threadIdx.x % kLanes != 0) continue;
    atomicMin(box + t, ordered(low[t]));
    atomicMax(box + D + t, ordered(high[t]));
  }
}

template <int D>
constexpr int kBits = D == 1 ? 32 : 64 / D;  // of a coordinate: 32, 32, 21, 16

// The place along Hilbert's curve (Skilling 2004, "Programming the Hilbert curve", AIP Conf. Proc.
// 707).
template <int D>
__device__ Key hilbert(unsigned (&x)[D]) {
  for (unsigned q = 1u << (kBits<D> - 1); q > 1; q >>= 1) {
    const unsigned below = q - 1;
    for (int t = 0; t < D; ++t) {
      if ((x[t] & q) != 0) {
        x[0] ^= below;
      } else {
        const unsigned swap = (x[0] ^ x[t]) & below;
        x[0] ^= swap;
        x[t] ^= swap;
      }
    }
  }
  for (int t = 1; t < D; ++t) x[t] ^= x[t - 1];
  unsigned flip = 0;
  for (unsigned q = 1u << (kBits<D> - 1); q > 1; q >>= 1)
    if ((x[D - 1] & q) != 0) flip ^= q - 1;
  Key key = 0;
  for (int bit = kBits<D> - 1; bit >= 0; --bit)
    for (int t = 0; t < D; ++t) key = key << 1 | ((x[t] ^ flip) >> bit & 1);
  return key;
}

// The place of a point whose coordinates are `stride` apart. The grid's cells are squares: the
// widest side of the box has 2^kBits of them.
template <int D>
__device__ Key place_of(const float* point, std::int64_t stride, const int* box) {
  double widest = 0;
  for (int t = 0; t < D; ++t)
    widest = fmax(widest, static_cast<double>(from_ordered(box[D + t])) - from_ordered(box[t]));
  constexpr double kCells = static_cast<double>(Key{1} << kBits<D>);
  unsigned cell[D];
  for (int t = 0; t < D; ++t) {
    const double at =
        (static_cast<double>(point[t * stride]) - from_ordered(box[t])) / widest * kCells;
    cell[t] = widest > 0 ? static_cast<unsigned>(fmin(at, kCells - 1)) : 0;
  }
  return hilbert<D>(cell);
}

template <int D>
__global__ void place_on_curve(const float* points, std::int64_t n, const int* box, Key* keys,
                               unsigned* order) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n) return;
  keys[i] = place_of<D>(points + i * D, 1, box);
  order[i] = static_cast<unsigned>(i);
}

template <int D>
__global__ void reorder(const float* points, std::int64_t n, const unsigned* order, float* sorted) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n) return;
  for (int t = 0; t < D; ++t)
    sorted[t * n + i] = points[static_cast<std::int64_t>(order[i]) * D + t];
}

// One warp gathers an entry of `to` from the `fan` ≤ 32 entries below it (`count` in all,
// [D][count]).
template <int D, typename Sum, typename Below>
__global__ void gather_level(Level<Sum> to, const float* low, const float* high, const Below* sum,
                             std::int64_t count, int fan) {
  const std::int64_t entry =
      (static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / kLanes;
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  if (entry >= to.count) return;
  const std::int64_t from = entry * fan + lane;
  const bool has = lane < fan && from < count;
  for (int t = 0; t < D; ++t) {
    float least = has ? low[t * count + from] : INFINITY,
          most = has ? high[t * count + from] : -INFINITY;
    double total = has ? static_cast<double>(sum[t * count + from]) : 0;
    for (int offset = kLanes / 2; offset > 0; offset /= 2) {
      least = fminf(least, __shfl_xor_sync(kAllLanes, least, offset));
      most = fmaxf(most, __shfl_xor_sync(kAllLanes, most, offset));
      total += __shfl_xor_sync(kAllLanes, total, offset);
    }
    if (lane != 0) continue;
    to.low[static_cast<std::int64_t>(t) * to.count + entry] = least;
    to.high[static_cast<std::int64_t>(t) * to.count + entry] = most;
    to.sum[static_cast<std::int64_t>(t) * to.count + entry] = static_cast<Sum>(total);
  }
}

/// Sorts points along the curve, again and again with the same memory.
template <int D>
class CurveSort {
 public:
  /// Of at most `most` points at a time.
  explicit CurveSort(std::int64_t most)
      : order_(static_cast<std::size_t>(most)),
        keys_(static_cast<std::size_t>(most)),
        other_keys_(static_cast<std::size_t>(most)) {
    std::size_t bytes = 0;
    sort(nullptr, bytes, nullptr, most, nullptr);
    scratch_ = cuda::Buffer<char>(std::max<std::size_t>(bytes, 1));
  }

  /// order[i]: the index of the i-th along the curve of n row-major points, which are in `box`. Of
  /// points in one cell, the one with the lower index is first.
  void operator()(const float* points, std::int64_t n, const int* box, unsigned* order,
                  cudaStream_t stream) {
    place_on_curve<D><<<cuda::blocks_for(n, kBlock), kBlock, 0, stream>>>(
        points, n, box, keys_.data(), order_.data());
    LLOYD_CUDA_CHECK_LAUNCH();
    std::size_t bytes = scratch_.size();
    sort(scratch_.data(), bytes, order, n, stream);
  }

 private:
  void sort(void* scratch, std::size_t& bytes, unsigned* order, std::int64_t n,
            cudaStream_t stream) {
    LLOYD_CUDA_CHECK(cub::DeviceRadixSort::SortPairs(scratch, bytes, keys_.data(),
                                                     other_keys_.data(), order_.data(), order,
                                                     static_cast<int>(n), 0, kBits<D> * D, stream));
  }

  cuda::Buffer<unsigned> order_;
  cuda::Buffer<Key> keys_, other_keys_;
  cuda::Buffer<char> scratch_;
};

/// Gathers a level of boxes and sums from the arrays below it: D rows of `count` entries in each.
template <int D, typename Sum, typename Below>
void gather(const Level<Sum>& to, const float* low, const float* high, const Below* sum,
            std::int64_t count, int fan, cudaStream_t stream) {
  gather_level<D>
      <<<cuda::blocks_for(to.count, kWarps), kBlock, 0, stream>>>(to, low, high, sum, count, fan);
  LLOYD_CUDA_CHECK_LAUNCH();
}

/// Gathers all levels above the leaves.
template <int D>
void gather_above_leaves(const LevelsMemory& levels, cudaStream_t stream) {
  const auto from = [&](const auto& to, const auto& below, int fan) {
    gather<D>(to.view(), below.low.data(), below.high.data(), below.sum.data(),
              std::int64_t{below.count}, fan, stream);
  };
  from(levels.nodes, levels.leaves, kLanes);
  from(levels.blocks, levels.nodes, kWarps);
  from(levels.regions, levels.blocks, kRegionBlocks);
}

/// Fills `tree` from row-major points. Returns the largest magnitude of each coordinate.
template <int D>
std::vector<float> build(const cuda::Buffer<float>& points, std::int64_t n, TreeMemory& tree,
                         cudaStream_t stream) {
  const unsigned blocks = cuda::blocks_for(n, kBlock);
  int ranges[2 * D];
  std::fill_n(ranges, D, INT_MAX);
  std::fill_n(ranges + D, D, INT_MIN);
  cuda::Buffer<int> box(2 * D);
  box.upload(ranges, stream);
  CurveSort<D> sort(n);
  bound<D><<<std::min(blocks, 1024u), kBlock, 0, stream>>>(points.data(), n, box.data());
  LLOYD_CUDA_CHECK_LAUNCH();
  sort(points.data(), n, box.data(), tree.order.data(), stream);
  reorder<D>
      <<<blocks, kBlock, 0, stream>>>(points.data(), n, tree.order.data(), tree.points.data());
  LLOYD_CUDA_CHECK_LAUNCH();

  const float* const all = tree.points.data();
  gather<D>(tree.leaves.view(), all, all, all, n, kLeaf, stream);
  gather_above_leaves<D>(tree, stream);

  box.download(ranges, stream);
  std::vector<float> largest;
  for (int t = 0; t < D; ++t)
    largest.push_back(
        std::max(std::abs(from_ordered(ranges[t])), std::abs(from_ordered(ranges[D + t]))));
  return largest;
}

}  // namespace
}  // namespace lloyd::fast
