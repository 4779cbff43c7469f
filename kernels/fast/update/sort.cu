#include <algorithm>
#include <cub/device/device_radix_sort.cuh>

#include "kernels/fast/lib/dependent_launch.cuh"
#include "kernels/fast/lib/warp.cuh"
#include "kernels/fast/update/sort.h"

namespace lloyd::fast {
namespace {
namespace update {

constexpr int kCountBlock = 512;
constexpr int kCountWarps = kCountBlock / 32;
// A block keeps its offsets within a cluster in 16 bits.
constexpr std::int64_t kMostPointsPerBlock = 65'536 - 32 * kCountWarps;
constexpr int kLabels = 8;  // that a lane reads ahead

// Counts the entries of each cluster, per block in counts[b][label] and together in totals. Without
// kChanges every point has an entry, and `previous`, where not null, becomes `labels`. With
// kChanges only points that changed cluster have entries, two each, and the clusters' sizes change,
// too.
template <bool kChanges>
__global__ void __launch_bounds__(kCountBlock)
    count_labels(const std::int32_t* __restrict__ labels, std::int32_t* __restrict__ previous,
                 std::int64_t n, int k, int block_points, unsigned* __restrict__ counts,
                 unsigned* __restrict__ totals, unsigned* __restrict__ sizes) {
  // The entries of each cluster. kChanges: in the low half those that came or left, in the high
  // half those that came.
  extern __shared__ unsigned counters[];
  constexpr unsigned kCame = 0x10001, kLeft = 1;
  wait_for_previous_kernel();
  let_next_kernel_start();
  for (int j = threadIdx.x; j < k; j += kCountBlock) counters[j] = 0;
  __syncthreads();
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * block_points;
  const int points = static_cast<int>(min(static_cast<std::int64_t>(block_points), n - first));
#pragma unroll 8
  for (int i = threadIdx.x; i < points; i += kCountBlock) {
    const std::int32_t label = labels[first + i];
    if constexpr (kChanges) {
      const std::int32_t before = previous[first + i];
      if (label == before) continue;
      atomicAdd(&counters[label], kCame);
      atomicAdd(&counters[before], kLeft);
    } else {
      atomicAdd(&counters[label], 1u);
      if (previous != nullptr) previous[first + i] = label;
    }
  }
  __syncthreads();
  for (int j = threadIdx.x; j < k; j += kCountBlock) {
    unsigned count = counters[j];
    if constexpr (kChanges) {
      const unsigned came = count >> 16;
      count &= 0xffff;
      if (2 * came != count) atomicAdd(&sizes[j], 2 * came - count);
    }
    counts[static_cast<std::int64_t>(blockIdx.x) * k + j] = count;
    if (count != 0) atomicAdd(&totals[j], count);
  }
}

// Turns counts into places: counts[b][j] becomes the place of the first entry of cluster j in block
// b, starts[j] the place of the cluster's first entry. A block scans 32 clusters; each of its warps
// takes 1/32 of the blocks' counts. Each block adds up all totals before its clusters again: that
// is less work than a pass over the labels, and no block waits for another.
__global__ void __launch_bounds__(1024)
    scan_counts(unsigned* __restrict__ counts, const unsigned* __restrict__ totals, int blocks,
                int k, unsigned* __restrict__ starts) {
  __shared__ unsigned sums[32], parts[32][33];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int first = blockIdx.x * 32, j = first + lane;
  wait_for_previous_kernel();
  let_next_kernel_start();
  unsigned before = 0;
  for (int i = threadIdx.x; i < first; i += blockDim.x) before += totals[i];
  const unsigned total = j < k ? totals[j] : 0;
  const int share = (blocks + 31) / 32;
  const int begin = min(warp * share, blocks), end = min(begin + share, blocks);
  unsigned sum = 0;
  if (j < k) {
#pragma unroll 8
    for (int b = begin; b < end; ++b) sum += counts[static_cast<std::int64_t>(b) * k + j];
  }
  before = warp_sum(before);
  if (lane == 0) sums[warp] = before;
  parts[lane][warp] = sum;
  __syncthreads();
  // Warp w scans the parts of cluster first + w.
  const unsigned part = parts[warp][lane];
  parts[warp][lane] = warp_inclusive_sum(part) - part;
  const unsigned start = warp_sum(sums[lane]) + warp_inclusive_sum(total) - total;
  __syncthreads();
  if (j >= k) return;
  if (warp == 0) starts[j] = start;
  if (warp == 0 && j == k - 1) starts[k] = start + total;
  unsigned at = start + parts[lane][warp];
#pragma unroll 8
  for (int b = begin; b < end; ++b) {
    unsigned& place = counts[static_cast<std::int64_t>(b) * k + j];
    const unsigned count = place;
    place = at;
    at += count;
  }
}

// Loads the clusters that this lane's points come to and leave. The points are kLabels · 32 of the
// warp's, from `begin` on. −1 stands where there is no entry.
template <bool kChanges>
__device__ __forceinline__ void load_changes(const std::int32_t* __restrict__ labels,
                                             const std::int32_t* previous, std::int64_t first,
                                             int begin, int points, int lane,
                                             std::int32_t (&to)[kLabels],
                                             std::int32_t (&from)[kLabels]) {
#pragma unroll
  for (int u = 0; u < kLabels; ++u) {
    const int at = begin + 32 * u + lane;
    to[u] = at < points ? labels[first + at] : -1;
    from[u] = kChanges && at < points ? previous[first + at] : -1;
  }
#pragma unroll
  for (int u = 0; kChanges && u < kLabels; ++u)
    if (to[u] == from[u]) to[u] = from[u] = -1;
}

// Turns the warps' counts into offsets: how many entries earlier warps have. A word holds two
// clusters.
__device__ __forceinline__ void make_offsets(unsigned* offsets, int pairs) {
  for (int i = threadIdx.x; i < pairs; i += kCountBlock) {
    unsigned sum = 0;  // of both halves at once: neither reaches 2^16
#pragma unroll
    for (int w = 0; w < kCountWarps; ++w) {
      const unsigned count = offsets[w * pairs + i];
      offsets[w * pairs + i] = sum;
      sum += count;
    }
  }
}

// Writes one entry for each lane that has a label, and adds them to the warp's offsets, `mine`.
__device__ __forceinline__ void place_entry(std::int32_t label, std::int32_t entry,
                                            const unsigned* place, unsigned short* mine,
                                            std::int32_t* __restrict__ order, int lane) {
  const unsigned peers = __match_any_sync(0xffffffffu, label);
  const auto rank = static_cast<unsigned>(__popc(peers & ((1u << lane) - 1)));
  unsigned offset = 0;
  if (label >= 0) offset = mine[label];
  __syncwarp();
  if (label >= 0 && rank == 0)
    mine[label] = static_cast<unsigned short>(offset + static_cast<unsigned>(__popc(peers)));
  __syncwarp();
  if (label >= 0) order[place[label] + offset + rank] = entry;
}

// Writes each entry to its place, by three steps:
//   1. Each warp counts the entries of each cluster among its consecutive points.
//   2. The block turns these counts into offsets: the entries that earlier warps have.
//   3. Each warp goes over its points again, 32 at a time, and ranks lanes of equal label by
//      __match_any_sync (as fast as ballots here). Of 32 points, those that came go before those
//      that left.
// So entries of equal label keep the order of their points. kChanges: `previous` becomes `labels`.
template <bool kChanges>
__global__ void __launch_bounds__(kCountBlock)
    scatter_indices(const std::int32_t* __restrict__ labels, std::int32_t* __restrict__ previous,
                    std::int64_t n, int k, int block_points, const unsigned* __restrict__ places,
                    std::int32_t* __restrict__ order) {
  // Each cluster's place in this block; then for each warp an offset of 16 bits for each cluster.
  extern __shared__ unsigned counters[];
  const int pairs = (k + 1) / 2;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  unsigned* place = counters;
  unsigned* offsets = counters + k;
  for (int i = threadIdx.x; i < kCountWarps * pairs; i += kCountBlock) offsets[i] = 0;
  wait_for_previous_kernel();
  let_next_kernel_start();
  for (int j = threadIdx.x; j < k; j += kCountBlock)
    place[j] = places[static_cast<std::int64_t>(blockIdx.x) * k + j];
  __syncthreads();
  const int warp_points = block_points / kCountWarps;  // a multiple of 32
  const std::int64_t first =
      static_cast<std::int64_t>(blockIdx.x) * block_points + warp * warp_points;
  const int points = static_cast<int>(
      max(std::int64_t{0}, min(static_cast<std::int64_t>(warp_points), n - first)));
  const auto load = [&](int begin, std::int32_t(&to)[kLabels], std::int32_t(&from)[kLabels]) {
    load_changes<kChanges>(labels, previous, first, begin, points, lane, to, from);
  };
  // 1. Count.
  const auto count = [&](std::int32_t label) {
    if (label >= 0) atomicAdd(&offsets[warp * pairs + label / 2], label % 2 ? 0x10000u : 1u);
  };
  for (int begin = 0; begin < points; begin += 32 * kLabels) {
    std::int32_t to[kLabels], from[kLabels];
    load(begin, to, from);
#pragma unroll
    for (int u = 0; u < kLabels; ++u) {
      count(to[u]);
      count(from[u]);
    }
  }
  __syncthreads();
  // 2. Offsets.
  make_offsets(offsets, pairs);
  __syncthreads();
  // 3. Place.
  auto* mine = reinterpret_cast<unsigned short*>(offsets + warp * pairs);
  const auto place_all = [&](std::int32_t label, std::int32_t entry) {
    place_entry(label, entry, place, mine, order, lane);
  };
  for (int begin = 0; begin < points; begin += 32 * kLabels) {
    std::int32_t to[kLabels], from[kLabels];
    load(begin, to, from);
#pragma unroll
    for (int u = 0; u < kLabels; ++u) {
      const auto index = static_cast<std::int32_t>(first + begin + 32 * u + lane);
      if (kChanges && !__any_sync(0xffffffffu, to[u] >= 0)) continue;
      place_all(to[u], index);
      if constexpr (kChanges) {
        place_all(from[u], ~index);
        if (to[u] >= 0) previous[index] = to[u];
      }
    }
  }
}

// The starts in labels that a radix sort put in order.
__global__ void find_starts(const std::int32_t* __restrict__ sorted_labels, std::int64_t n, int k,
                            unsigned* __restrict__ starts) {
  wait_for_previous_kernel();
  let_next_kernel_start();
  const int j = blockIdx.x * blockDim.x + threadIdx.x;
  if (j > k) return;
  std::int64_t low = 0, high = n;  // the first whose label is not below j
  while (low < high) {
    const std::int64_t middle = (low + high) / 2;
    if (sorted_labels[middle] < j)
      low = middle + 1;
    else
      high = middle;
  }
  starts[j] = static_cast<unsigned>(low);
}

__global__ void number(std::int32_t* indices, std::int64_t n) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) indices[i] = static_cast<std::int32_t>(i);
}

// Dynamic shared memory of the counting sort's kernels.
std::int64_t count_bytes(int k) { return 4LL * k; }
std::int64_t scatter_bytes(int k) { return 4LL * k + 4LL * kCountWarps * ((k + 1) / 2); }

}  // namespace update
}  // namespace

using namespace update;

bool LabelSort::can_count(int k, const DeviceLimits& device) {
  return scatter_bytes(k) <= device.shared_bytes_optin;
}

LabelSort::LabelSort(std::int64_t n, int k, bool keeps, const DeviceLimits& device,
                     cudaStream_t stream)
    : n_(n), k_(k), counted_(can_count(k, device)), overlap_(can_overlap(device)) {
  const auto places = static_cast<std::size_t>(n), clusters = static_cast<std::size_t>(k);
  order_ = cuda::Buffer<std::int32_t>(keeps ? 2 * places : places);
  starts_ = cuda::Buffer<unsigned>(clusters + 1);
  totals_ = cuda::Buffer<unsigned>(clusters);
  totals_.zero(stream);
  if (counted_) {
    // Two blocks on each multiprocessor, as even as whole warps allow.
    const std::int64_t wanted = std::max<std::int64_t>(
        2LL * device.multiprocessors, (n + kMostPointsPerBlock - 1) / kMostPointsPerBlock);
    const std::int64_t warps = wanted * kCountWarps;
    block_points_ = static_cast<int>(((n + warps - 1) / warps + 31) / 32 * 32) * kCountWarps;
    blocks_ = static_cast<int>((n + block_points_ - 1) / block_points_);
    counts_ = cuda::Buffer<unsigned>(clusters * static_cast<std::size_t>(blocks_));
    for (const auto& [kernel, bytes] :
         {std::pair{reinterpret_cast<const void*>(count_labels<false>), count_bytes(k)},
          std::pair{reinterpret_cast<const void*>(count_labels<true>), count_bytes(k)},
          std::pair{reinterpret_cast<const void*>(scatter_indices<false>), scatter_bytes(k)},
          std::pair{reinterpret_cast<const void*>(scatter_indices<true>), scatter_bytes(k)}})
      LLOYD_CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                            static_cast<int>(bytes)));
    return;
  }
  sorted_labels_ = cuda::Buffer<std::int32_t>(places);
  indices_ = cuda::Buffer<std::int32_t>(places);
  std::size_t bytes = 0;
  radix_sort(nullptr, bytes, nullptr, stream);
  scratch_ = cuda::Buffer<char>(std::max<std::size_t>(bytes, 1));
  number<<<cuda::blocks_for(n, 256), 256, 0, stream>>>(indices_.data(), n);
  LLOYD_CUDA_CHECK_LAUNCH();
}

void LabelSort::all(const std::int32_t* labels, std::int32_t* previous, cudaStream_t stream) {
  if (counted_) return count_and_scatter<false>(labels, previous, nullptr, stream);
  std::size_t bytes = scratch_.bytes();
  radix_sort(scratch_.data(), bytes, labels, stream);
  launch(overlap_, find_starts, cuda::blocks_for(k_ + 1, 256), 256, 0, stream,
         sorted_labels_.data(), n_, k_, starts_.data());
}

void LabelSort::changes(const std::int32_t* labels, std::int32_t* previous, unsigned* sizes,
                        cudaStream_t stream) {
  count_and_scatter<true>(labels, previous, sizes, stream);
}

template <bool kChanges>
void LabelSort::count_and_scatter(const std::int32_t* labels, std::int32_t* previous,
                                  unsigned* sizes, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>(blocks_);
  launch(overlap_, count_labels<kChanges>, blocks, kCountBlock, count_bytes(k_), stream, labels,
         previous, n_, k_, block_points_, counts_.data(), totals_.data(), sizes);
  launch(overlap_, scan_counts, cuda::blocks_for(k_, 32), 1024, 0, stream, counts_.data(),
         totals_.data(), blocks_, k_, starts_.data());
  launch(overlap_, scatter_indices<kChanges>, blocks, kCountBlock, scatter_bytes(k_), stream,
         labels, previous, n_, k_, block_points_, counts_.data(), order_.data());
}

// With a null `scratch`, only asks how many bytes of it are needed. The sort is stable, so its
// order is the counting sort's.
void LabelSort::radix_sort(void* scratch, std::size_t& bytes, const std::int32_t* labels,
                           cudaStream_t stream) {
  int bits = 1;
  while ((std::int64_t{1} << bits) < k_) ++bits;
  LLOYD_CUDA_CHECK(cub::DeviceRadixSort::SortPairs(scratch, bytes, labels, sorted_labels_.data(),
                                                   indices_.data(), order_.data(),
                                                   static_cast<int>(n_), 0, bits, stream));
}

}  // namespace lloyd::fast
