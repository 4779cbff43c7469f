#include <algorithm>
#include <bit>
#include <cub/device/device_radix_sort.cuh>
#include <limits>
#include <vector>

#include "kernels/core/reference_sums.h"
#include "kernels/core/transfer.h"

namespace lloyd::cuda {
namespace {

constexpr int kBlock = 256;
constexpr int kWarps = 4;    // of a block of sum_clusters and sum_pieces
constexpr int kTile = 1024;  // coordinates that a warp of sum_clusters brings into shared memory
constexpr int kValues = 8;   // that a lane of sum_pieces loads at a time

// A block row for each part of the group. The key of a point orders by part, then by cluster.
__global__ void __launch_bounds__(kBlock)
    make_keys(SumParts parts, std::int64_t first_part, const std::int32_t* labels, int k,
              unsigned* keys, int* places) {
  const std::int64_t part = first_part + blockIdx.y, first = parts.first(part);
  const std::int64_t place = std::int64_t{blockIdx.x} * kBlock + threadIdx.x;
  const std::int64_t i = first + place;
  if (i >= parts.first(part + 1)) return;
  const std::int64_t at = i - parts.first(first_part);
  keys[at] = blockIdx.y * static_cast<unsigned>(k) + static_cast<unsigned>(labels[i]);
  places[at] = static_cast<int>(place);
}

// starts[key] becomes the number of the first point with this key or a later one.
__global__ void __launch_bounds__(kBlock)
    find_starts(const unsigned* sorted_keys, int points, std::int64_t first, std::int64_t keys,
                std::int64_t* starts) {
  const std::int64_t key = std::int64_t{blockIdx.x} * kBlock + threadIdx.x;
  if (key > keys) return;
  int low = 0, high = points;
  while (low < high) {
    const int middle = low + (high - low) / 2;
    if (sorted_keys[middle] < key)
      low = middle + 1;
    else
      high = middle;
  }
  starts[key] = first + low;
}

struct SortedPoints {
  const float* columns;  // dim × n
  std::int64_t n;
  int dim, k;
  SumParts parts;
  const int* order;
  const std::int64_t* starts;
};

// A warp adds up kWide coordinates of a part's cluster. Its lanes load those of several points at
// once, through shared memory, and then each adds its own coordinate, point after point. Clusters
// are the innermost index: points that are close in memory are then read at about the same time,
// and sectors that several clusters share come from L2.
template <int kWide>
__global__ void __launch_bounds__(kWarps * 32) sum_clusters(SortedPoints sorted, double* sums) {
  constexpr int kDeep = kTile / kWide, kPoints = kDeep / 32;  // points: of a tile, of a lane
  __shared__ float tiles[kWarps][kWide][kDeep + 1];
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int slabs = (sorted.dim + kWide - 1) / kWide;
  const std::int64_t task = std::int64_t{blockIdx.x} * kWarps + warp;
  const std::int64_t part = task / sorted.k / slabs, cluster = task % sorted.k;
  if (part >= sorted.parts.number()) return;
  const int slab = static_cast<int>(task / sorted.k % slabs);
  const int wide = min(kWide, sorted.dim - slab * kWide);
  const float* const columns =
      sorted.columns + std::int64_t{slab} * kWide * sorted.n + sorted.parts.first(part);
  const std::int64_t segment = part * sorted.k + cluster;
  const std::int64_t begin = sorted.starts[segment], end = sorted.starts[segment + 1];

  int places[kPoints] = {};
  float values[kWide][kPoints];
  const auto load_places = [&](std::int64_t tile) {
#pragma unroll
    for (int p = 0; p < kPoints; ++p)
      if (tile + p * 32 + lane < end) places[p] = sorted.order[tile + p * 32 + lane];
  };
  const auto load_values = [&] {
#pragma unroll
    for (int t = 0; t < kWide; ++t)
#pragma unroll
      for (int p = 0; p < kPoints; ++p)
        if (t < wide) values[t][p] = columns[t * sorted.n + places[p]];
  };
  double sum = 0, absolute = 0;
  const auto add = [&](float value) {
    sum += static_cast<double>(value);
    absolute += fabs(static_cast<double>(value));
  };
  const float* const own = tiles[warp][lane % kWide];
  // Two tiles are on their way while one is added: the places of one, the values of the other.
  load_places(begin);
  if (begin < end) load_values();
  load_places(begin + kDeep);
  for (std::int64_t tile = begin; tile < end; tile += kDeep) {
#pragma unroll
    for (int t = 0; t < kWide; ++t)
#pragma unroll
      for (int p = 0; p < kPoints; ++p) tiles[warp][t][p * 32 + lane] = values[t][p];
    __syncwarp();
    if (tile + kDeep < end) load_values();
    load_places(tile + 2 * kDeep);
    if (tile + kDeep <= end) {
#pragma unroll 32
      for (int p = 0; p < kDeep; ++p) add(own[p]);
    } else {
      for (int p = 0; p < end - tile; ++p) add(own[p]);
    }
    __syncwarp();
  }
  if (lane >= wide) return;
  const std::int64_t cells = std::int64_t{sorted.k} * sorted.dim;
  const std::int64_t cell = cluster * sorted.dim + slab * kWide + lane;
  sums[part * 2 * cells + cell] = sum;
  sums[(part * 2 + 1) * cells + cell] = absolute;
}

__global__ void __launch_bounds__(kBlock)
    add_parts(const double* sums, std::int64_t parts, std::int64_t entries, double* total) {
  const std::int64_t entry = std::int64_t{blockIdx.x} * kBlock + threadIdx.x;
  if (entry >= entries) return;
  double sum = sums[entry];
#pragma unroll 8
  for (std::int64_t part = 1; part < parts; ++part) sum += sums[part * entries + entry];
  total[entry] = sum;
}

__global__ void __launch_bounds__(kBlock)
    count_points(const std::int64_t* starts, std::int64_t parts, int k, std::int64_t* counts) {
  const std::int64_t cluster = std::int64_t{blockIdx.x} * kBlock + threadIdx.x;
  if (cluster >= k) return;
  std::int64_t count = 0;
  for (std::int64_t part = 0; part < parts; ++part)
    count += starts[part * k + cluster + 1] - starts[part * k + cluster];
  counts[cluster] = count;
}

// A warp for each piece. All its lanes add the same values.
__global__ void __launch_bounds__(kWarps * 32)
    sum_pieces(const double* values, std::int64_t n, std::int64_t pieces, double* sums) {
  __shared__ double tiles[kWarps][kValues * 32];
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const std::int64_t piece = std::int64_t{blockIdx.x} * kWarps + warp;
  if (piece >= pieces) return;
  const std::int64_t begin = piece * kSumPiece, end = min(begin + kSumPiece, n);
  double loaded[kValues];
  const auto load = [&](std::int64_t tile) {
#pragma unroll
    for (int v = 0; v < kValues; ++v)
      if (tile + v * 32 + lane < end) loaded[v] = values[tile + v * 32 + lane];
  };
  CompensatedSum sum;
  load(begin);
  for (std::int64_t tile = begin; tile < end; tile += kValues * 32) {
#pragma unroll
    for (int v = 0; v < kValues; ++v) tiles[warp][v * 32 + lane] = loaded[v];
    __syncwarp();
    load(tile + kValues * 32);
    if (tile + kValues * 32 <= end) {
#pragma unroll 16
      for (int v = 0; v < kValues * 32; ++v) sum.add(tiles[warp][v]);
    } else {
      for (int v = 0; v < end - tile; ++v) sum.add(tiles[warp][v]);
    }
    __syncwarp();
  }
  if (lane == 0) sums[piece] = sum.value();
}

__global__ void __launch_bounds__(kBlock)
    count_differences(const std::int32_t* a, const std::int32_t* b, std::int64_t n,
                      unsigned long long* count) {
  const std::int64_t step = std::int64_t{gridDim.x} * kBlock;
  unsigned mine = 0;
#pragma unroll 4
  for (std::int64_t i = std::int64_t{blockIdx.x} * kBlock + threadIdx.x; i < n; i += step)
    mine += a[i] != b[i] ? 1 : 0;
  for (int step = 16; step > 0; step /= 2) mine += __shfl_down_sync(~0u, mine, step);
  if (threadIdx.x % 32 == 0 && mine != 0) atomicAdd(count, mine);
}

std::int64_t pieces_of(std::int64_t n) { return (n + kSumPiece - 1) / kSumPiece; }

}  // namespace

DeviceSum::DeviceSum(std::int64_t n) : n_(n), pieces_(static_cast<std::size_t>(pieces_of(n))) {}

double DeviceSum::of(const double* values) {
  const auto pieces = static_cast<std::int64_t>(pieces_.size());
  sum_pieces<<<blocks_for(pieces, kWarps), kWarps * 32>>>(values, n_, pieces, pieces_.data());
  LLOYD_CUDA_CHECK_LAUNCH();
  std::vector<double> sums(pieces_.size());
  pieces_.download(sums, nullptr);
  CompensatedSum total;
  for (const double sum : sums) total.add(sum);
  return total.value();
}

std::int64_t DeviceChanges::between(const std::int32_t* labels, const std::int32_t* others,
                                    std::int64_t n) {
  constexpr unsigned kMostBlocks = 4096;
  count_.zero(nullptr);
  count_differences<<<std::min(blocks_for(n, kBlock), kMostBlocks), kBlock>>>(labels, others, n,
                                                                              count_.data());
  LLOYD_CUDA_CHECK_LAUNCH();
  unsigned long long count = 0;
  count_.download(std::span(&count, 1), nullptr);
  return static_cast<std::int64_t>(count);
}

DeviceClusterSums::DeviceClusterSums(std::int64_t n, int k, int dim)
    : n_(n), k_(k), dim_(dim), cells_(static_cast<std::size_t>(k) * dim), parts_(n, k, dim) {
  const std::int64_t longest = (n + parts_.number() - 1) / parts_.number();
  if (longest > std::numeric_limits<int>::max())
    throw Unsupported("the reference's sort takes fewer points");
  parts_at_once_ = std::clamp<std::int64_t>(kSortedAtOnce / longest, 1, parts_.number());
  const auto at_once = static_cast<std::size_t>(std::min(n, parts_at_once_ * longest));
  keys_ = Buffer<unsigned>(at_once);
  sorted_keys_ = Buffer<unsigned>(at_once);
  places_ = Buffer<int>(at_once);
  order_ = Buffer<int>(static_cast<std::size_t>(n));
  std::size_t bytes = 0;
  LLOYD_CUDA_CHECK(cub::DeviceRadixSort::SortPairs(nullptr, bytes, keys_.data(),
                                                   sorted_keys_.data(), places_.data(),
                                                   order_.data(), static_cast<int>(at_once)));
  sort_memory_ = Buffer<char>(std::max<std::size_t>(bytes, 1));
  const auto parts = static_cast<std::size_t>(parts_.number());
  starts_ = Buffer<std::int64_t>(parts * static_cast<std::size_t>(k) + 1);
  sums_ = Buffer<double>(parts * 2 * cells_);
  if (parts > 1) total_ = Buffer<double>(2 * cells_);
  counts_ = Buffer<std::int64_t>(static_cast<std::size_t>(k));
}

DeviceClusterSums::Group DeviceClusterSums::group(std::int64_t first_part) const {
  const std::int64_t parts = std::min(parts_at_once_, parts_.number() - first_part);
  const std::int64_t first = parts_.first(first_part);
  return {first_part, parts, first, parts_.first(first_part + parts) - first};
}

void DeviceClusterSums::sort(const Group& group, const std::int32_t* labels) {
  const std::int64_t longest = (n_ + parts_.number() - 1) / parts_.number();
  make_keys<<<dim3(blocks_for(longest, kBlock), static_cast<unsigned>(group.parts)), kBlock>>>(
      parts_, group.first_part, labels, k_, keys_.data(), places_.data());
  LLOYD_CUDA_CHECK_LAUNCH();
  const std::int64_t keys = group.parts * k_;
  const int bits = std::max<int>(1, std::bit_width(static_cast<std::uint64_t>(keys - 1)));
  std::size_t bytes = sort_memory_.size();
  LLOYD_CUDA_CHECK(cub::DeviceRadixSort::SortPairs(
      sort_memory_.data(), bytes, keys_.data(), sorted_keys_.data(), places_.data(),
      order_.data() + group.first, static_cast<int>(group.points), 0, bits));
  find_starts<<<blocks_for(keys + 1, kBlock), kBlock>>>(
      sorted_keys_.data(), static_cast<int>(group.points), group.first, keys,
      starts_.data() + group.first_part * k_);
  LLOYD_CUDA_CHECK_LAUNCH();
}

void DeviceClusterSums::add_up(const float* columns) {
  const SortedPoints sorted{columns, n_, dim_, k_, parts_, order_.data(), starts_.data()};
  const auto launch = [&](auto kernel, int wide) {
    const std::int64_t warps = parts_.number() * k_ * ((dim_ + wide - 1) / wide);
    kernel<<<blocks_for(warps, kWarps), kWarps * 32>>>(sorted, sums_.data());
    LLOYD_CUDA_CHECK_LAUNCH();
  };
  if (dim_ <= 2)
    launch(sum_clusters<2>, 2);
  else if (dim_ <= 8)
    launch(sum_clusters<8>, 8);
  else
    launch(sum_clusters<32>, 32);
  if (parts_.number() > 1) {
    const auto entries = static_cast<std::int64_t>(2 * cells_);
    add_parts<<<blocks_for(entries, kBlock), kBlock>>>(sums_.data(), parts_.number(), entries,
                                                       total_.data());
    LLOYD_CUDA_CHECK_LAUNCH();
  }
  count_points<<<blocks_for(k_, kBlock), kBlock>>>(starts_.data(), parts_.number(), k_,
                                                   counts_.data());
  LLOYD_CUDA_CHECK_LAUNCH();
}

ClusterSums DeviceClusterSums::fetch() {
  ClusterSums clusters{std::vector<double>(cells_), std::vector<double>(cells_),
                       std::vector<std::int64_t>(counts_.size())};
  const double* const total = (parts_.number() > 1 ? total_ : sums_).data();
  download(total, std::span(clusters.sums), nullptr);
  download(total + cells_, std::span(clusters.absolute_sums), nullptr);
  counts_.download(clusters.counts, nullptr);
  return clusters;
}

ClusterSums DeviceClusterSums::of(const float* columns, const std::int32_t* labels) {
  for (std::int64_t part = 0; part < parts_.number(); part += parts_at_once_)
    sort(group(part), labels);
  add_up(columns);
  return fetch();
}

}  // namespace lloyd::cuda
