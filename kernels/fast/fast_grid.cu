// fast_grid: most points are never looked at.
//
// Parent   luigi_v4_device_update: as there, assignment and sums are one pass and distances direct. (fast_cublas's product is of
//          no use at dim 2.)
// What     prepare() sorts the points along Hilbert's curve and keeps, for every 32 (a leaf), 1,024 (a node) and 8,192 (a block)
//          of them, the box around them and the sums of their coordinates: Kanungo's filtering (Kanungo et al. 2002, IEEE
//          TPAMI 24:881) with runs of equal length in the place of a kd-tree. In an iteration a block of threads finds which
//          centroids can be nearest to a point of its box; a warp narrows them down for its node, a lane for its leaf. Where
//          one is left, it is given the stored sums and nothing below is read; only leaves on a border between clusters have
//          their points compared, each with the candidates of its leaf. A candidate goes only if another centroid is strictly
//          nearer to all of the box with rounding allowed for, so that labels are those of all distances in fp32. Runs of
//          equal length follow the data wherever they crowd, which a grid's cells do not.
// Why      simulated at n = 1e7, k = 1000, dim 2: uniform, normal and blobs leave 15% of the points to be read, with 2.1
//          candidates each instead of 1000 (leaves of 16: 10%, of 64: 22%; at 2e6 Morton's curve leaves 43%, Hilbert's 32%,
//          a kd-tree 28%).
// Limits   dim ≤ 4. Simulated at n = 2e6, k = 100, what is left to be read: dim 2 11%, dim 3 45% with 2.4 candidates, dim 4 78% with
//          3.6, dim 6 all of it with 12. n < 2^31 (CUB's sort). Where points are far between, a run of them sprawls over the
//          crowd and has hundreds of candidates: nodes with more than 8 (dim ≥ 3, or under 4,096 points a cluster: 24) go to a
//          second kernel. Labels leave run() as one per leaf and, in leaves on a border, one per point, in the curve's order;
//          fetch() spreads them out. With min_changes a third kernel compares these from one iteration to the next; with either
//          rule the host reads 8 bytes an iteration, so that 0.035 ms become 0.053 (tolerance) and 0.072 (min_changes).
// Same bits  in every run and on any number of multiprocessors: what a warp adds up in fp32, in an order of its own, is rounded once to
//          an integer of 64 bits (FixedPoint), and only integers meet in global memory. The list of a block's candidates has the
//          scheduler's order; who prunes is chosen by distance and index, not by place in it.
// Floor    n = 1e7, k = 1000, dim 2: 74% of the leaves' boxes and sums and 15% of the points, 18 MB, which stay in L2: 4 µs at 4.4
//          TB/s, and 3 launches. What it takes is instructions: 11.8 million of a warp in assign_and_sum (uniform), 13 µs if
//          every SM issued 4 in each clock; it issues about 2, half of its warps waiting for memory.
// Predicted 0.032 ms (normal), 0.0275 (uniform), 0.049 (blobs) at n = 1e7, k = 1000, dim 2; 0.13 at k = 10,000; 0.06 at n = 1e8, k = 64.
// Measured H200, 2026-11-21, normal points, 20 iterations, ms per iteration beside luigi_v4_device_update's:
//          n = 1e7, dim 2: k = 32 0.0163, k = 100 0.0228 (0.398), k = 1000 0.0347 (3.200; uniform 0.0276, blobs 0.0534), k = 10,000
//          0.202, k = 100,000 9.8: every node is wide there. n = 1e8, k = 64: 0.0531. n = 1e6,
//          k = 1000: 0.0293 (0.335). n = 1e7, k = 1000: dim 1 0.0126, dim 3 0.134 (12.55), dim 4 0.561 (24.39). prepare() takes
//          3 ms more than luigi_v4's at n = 1e7, dim 2 (11.9 against 8.7, the upload included).
//          With integers instead of doubles in global memory, in runs apart: k = 32 0.0172 (doubles 0.0167 to 0.0171), k = 100 0.0233
//          (0.0234 to 0.0237), k = 1000 0.0359 (0.0352 to 0.0356); n = 1e6, k = 100,000 4.32 (4.32). Rounding eight rows of a warp
//          at a time and not 32 costs 2% at k = 1000, rounding in fp64 as much again.
//          Tried: a full kd-tree gives 0.0308, 0.0255 and 0.0335 at k = 1000, and 30 ms of prepare(); sorting again only the
//          blocks with large boxes gains nothing at k = 1000.
#include "kernels/core/limits.h"

#if LLOYD_CUDA
#include <algorithm>
#include <climits>
#include <cmath>
#include <cstring>
#include <cub/device/device_radix_sort.cuh>
#include <numeric>
#include <vector>

#include "kernels/core/cuda.h"
#include "kernels/fast/lib/placement.h"
#include "kernels/fast/overlap.cuh"
#endif

namespace lloyd::fast {
namespace {

constexpr int kMostDims = 4;

#if LLOYD_CUDA
constexpr int kLanes = 32;
constexpr int kLeaf = 32;                    // points of a leaf: a lane each
constexpr int kNode = kLeaf * kLanes;        // points of a node: a lane a leaf
constexpr int kWarps = 8;                    // nodes of a block
constexpr int kBlock = kWarps * kLanes;      // threads, and leaves
constexpr int kRegionBlocks = 8;             // blocks of a region
constexpr int kRegionBlock = 1024;           // threads that look for a region's candidates
constexpr int kWideParts = kLanes / kWarps;  // a wide node has this many blocks, a warp a leaf
constexpr int kMostReplicas = 32;            // of the sums: a lane each in move_centroids
constexpr unsigned kAll = 0xffffffffu;
/// Candidates of a node that is not wide: each has a column a lane in shared memory. Few where clusters are large, so
/// that more blocks fit an SM; many where a node has about a cluster of its own.
constexpr int kFewCandidates = 8, kManyCandidates = 24;
constexpr int kRow = kLanes + 1;  // of the columns: lanes that add up rows meet in no bank

using Key = unsigned long long;
using Cell = unsigned long long;  // of a sum: an integer in two's complement, as atomicAdd wants it

/// Boxes of `count` runs of consecutive points, and the sums of their points: [D][count].
template <typename Sum>
struct Level {
  float *low, *high;
  Sum* sum;
  int count;
};

struct Tree {
  const float* points;  // [D][n], along the curve
  std::int64_t n;
  Level<float> leaves;
  Level<double> nodes, blocks;
};

template <int D>
struct Box {
  float low[D], high[D];

  template <typename Sum>
  __device__ Box(const Level<Sum>& level, int i) {
    for (int t = 0; t < D; ++t) {
      low[t] = level.low[static_cast<std::int64_t>(t) * level.count + i];
      high[t] = level.high[static_cast<std::int64_t>(t) * level.count + i];
    }
  }
};

/// Candidates: [D][stride] coordinates and their indices.
struct List {
  const float* centroids;
  const int* ids;
  int stride, count;

  __device__ int id(int i) const { return ids[i]; }
  __device__ float at(int i, int t) const {
    return centroids[t * static_cast<std::int64_t>(stride) + i];
  }
};

/// The sums of coordinate t are integers, in units of 1 / scale[t]: a power of two for which those of all points fit 2^61. What
/// rounding to the unit leaves over is added up apart, in units that are smaller by `rest_scale`, another power of two: a
/// float has 24 bits, so that nothing is left over unless it is small. Counts are in units of 1 / scale[D] = 2^-kCountBits:
/// what is counted is never small.
struct FixedPoint {
  float scale[kMostDims + 1];
  float rest_scale;
  double unit[kMostDims + 1], rest_unit;  // their inverses
};
constexpr int kCountBits = 24;

/// Of a cluster: D sums, its number of points, D sums of what was left over.
template <int D>
constexpr int kCells = 2 * D + 1;

/// What an iteration leaves behind: of each cluster its cells, [replicas][k][kCells]; the
/// nodes that are too wide for assign_and_sum; and the labels, where they are wanted: leaf_labels [leaves] has the label
/// of all points of a leaf, or −1, and then `labels` [n] has them; both null where nobody asks.
struct Output {
  Cell* sums;
  FixedPoint fixed;
  int replicas;  // a power of 2
  int *wide_nodes, *wide_count;
  int *leaf_labels, *labels;

  template <int D>
  __device__ Cell* sums_of_block(int k) const {
    return sums + static_cast<std::int64_t>(blockIdx.x & static_cast<unsigned>(replicas - 1)) * k *
                      kCells<D>;
  }

  // To coordinate t of a cluster's `cells`, or to its number of points, D. Integers: no order shows in the sum.
  template <int D>
  __device__ void add(Cell* cells, int t, float value) const {
    const float scaled = value * fixed.scale[t];
    atomicAdd(cells + t, static_cast<Cell>(__float2ll_rn(scaled)));
    if (fabsf(scaled) < 0x1p23f) {  // or it is an integer
      const float rest = scaled - rintf(scaled);
      if (rest != 0)
        atomicAdd(cells + D + 1 + t, static_cast<Cell>(__float2ll_rn(rest * fixed.rest_scale)));
    }
  }
};

template <int D>
__device__ void add_stored(const Output& out, Cell* sums, int id, const Level<double>& level, int i,
                           std::int64_t points) {
  Cell* const to = sums + static_cast<std::int64_t>(id) * kCells<D>;
  for (int t = 0; t < D; ++t) {
    const double scaled =
        level.sum[static_cast<std::int64_t>(t) * level.count + i] * out.fixed.scale[t];
    const long long whole = __double2ll_rn(scaled);
    const double rest = scaled - static_cast<double>(whole);
    atomicAdd(to + t, static_cast<Cell>(whole));
    if (rest != 0)
      atomicAdd(to + D + 1 + t, static_cast<Cell>(__double2ll_rn(rest * out.fixed.rest_scale)));
  }
  atomicAdd(to + D, static_cast<Cell>(points) << kCountBits);
}

/// Of the run of `size` points that is the i-th of its kind.
__device__ std::int64_t points_of(const Tree& tree, int i, int size) {
  return min(tree.n - static_cast<std::int64_t>(i) * size, static_cast<std::int64_t>(size));
}

template <int D>
__device__ float squared_distance(const float (&x)[D], const List& list, int i) {
  float d = 0;
  for (int t = 0; t < D; ++t) d += (x[t] - list.at(i, t)) * (x[t] - list.at(i, t));
  return d;
}

__device__ unsigned warp_min(unsigned x) {
#if __CUDA_ARCH__ >= 800
  return __reduce_min_sync(kAll, x);
#else
  for (int offset = kLanes / 2; offset > 0; offset /= 2)
    x = min(x, __shfl_xor_sync(kAll, x, offset));
  return x;
#endif
}

/// Of x ≠ 0; one instruction where the lowest takes two.
__device__ int highest_bit(unsigned x) { return 31 - __clz(static_cast<int>(x)); }

__device__ float warp_sum(float x) {
  for (int offset = kLanes / 2; offset > 0; offset /= 2) x += __shfl_xor_sync(kAll, x, offset);
  return x;
}

template <int D>
__device__ void centre(const Box<D>& box, float (&x)[D]) {
  for (int t = 0; t < D; ++t) x[t] = 0.5f * box.low[t] + 0.5f * box.high[t];
}

// The candidate that is to prune the others. Whichever it is, the labels are right; the nearest to the box's centre prunes
// most.
template <int D>
struct Owner {
  float at[D];
  int id;

  __device__ Owner(const List& list, int i) : id(list.id(i)) {
    for (int t = 0; t < D; ++t) at[t] = list.at(i, t);
  }
};

// Is every point of the box strictly nearer to `owner` than to candidate i? |x − c|² − |x − owner|² is linear in x, so it
// is least in one corner, and that corner is known by signs alone. There both distances are computed, each within
// (1 ± 2^-24)^(D + 2): the margin is those of both and of its own product, so that rounding never prunes. Of equal
// centroids all but the lowest index go. NaN and overflow prune nothing.
template <int D>
__device__ bool pruned(const Box<D>& box, const Owner<D>& owner, const List& list, int i) {
  constexpr float kMargin = 1 + (D + 4) * 0x1p-23f, kUnderflow = D * 0x1p-126f;
  float own = 0, other = 0;
  for (int t = 0; t < D; ++t) {
    const float c = list.at(i, t);
    const float corner = owner.at[t] > c ? box.low[t] : box.high[t];
    own += (corner - owner.at[t]) * (corner - owner.at[t]);
    other += (corner - c) * (corner - c);
  }
  if (other > own * kMargin + kUnderflow) return true;
  bool same = owner.id < list.id(i);
  for (int t = 0; t < D; ++t) same = same && owner.at[t] == list.at(i, t);
  return same;
}

// Of the candidates first, first + step, …: the one nearest to the box's centre, as the bits of its distance, which order
// as the distances do, and its position; of equal distances the lowest index, whatever the order of the list: the scheduler
// fills lists, and who prunes decides which points are added up in fp32 before they are rounded to integers.
struct Nearest {
  unsigned distance = ~0u;
  int position = 0;

  template <int D>
  __device__ Nearest(const Box<D>& box, const List& list, int first, int step,
                     bool in_order = false) {
    float middle[D];
    centre(box, middle);
    for (int i = first; i < list.count; i += step) {
      const unsigned d = __float_as_uint(squared_distance(middle, list, i));
      if (d < distance || (!in_order && d == distance && list.id(i) < list.id(position))) {
        distance = d;
        position = i;
      }
    }
  }

  // The best of the warp's; of equal distances the lowest index.
  __device__ void share(const List& list) {
    const unsigned best = warp_min(distance);
    unsigned best_lanes = __ballot_sync(kAll, distance == best);
    if (__popc(best_lanes) > 1) {
      const unsigned id = distance == best ? static_cast<unsigned>(list.id(position)) : ~0u;
      const unsigned lowest = warp_min(id);
      best_lanes = __ballot_sync(kAll, id == lowest);
    }
    distance = best;
    position = __shfl_sync(kAll, position, __ffs(static_cast<int>(best_lanes)) - 1);
  }
};

// Of a whole warp: writes those of `from` that may be nearest to a point of the box to centroids[D][capacity] and ids, and
// returns how many they are, though at most `capacity` are written.
template <int D>
__device__ int filter(const Box<D>& box, const List& from, float* centroids, int* ids, int capacity,
                      int lane) {
  Nearest nearest(box, from, lane, kLanes);
  nearest.share(from);
  const Owner<D> owner(from, nearest.position);
  int count = 0;
#pragma unroll 1
  for (int first = 0; first < from.count; first += kLanes) {
    const int i = first + lane;
    const bool keep = i < from.count && !pruned(box, owner, from, i);
    const unsigned kept = __ballot_sync(kAll, keep);
    const int at = count + __popc(kept & ((1u << lane) - 1));
    if (keep && at < capacity) {
      for (int t = 0; t < D; ++t) centroids[t * capacity + at] = from.at(i, t);
      ids[at] = from.id(i);
    }
    count += __popc(kept);
  }
  __syncwarp();
  return count;
}

// The same of a whole block of Warps, with the entries in no order. `capacity` ≥ 1. The owner is candidate `hint`; where that
// is negative, it is looked for. `in_order`: `from` is in order of index, or it may be any of those that are equally near.
template <int D, int Warps>
__device__ int filter_in_block(const Box<D>& box, const List& from, int hint, float* centroids,
                               int* ids, int capacity, bool in_order) {
  static_assert(Warps <= kLanes);
  __shared__ unsigned distances[Warps];
  __shared__ int positions[Warps];
  __shared__ int count;
  const int warp = static_cast<int>(threadIdx.x) / kLanes,
            lane = static_cast<int>(threadIdx.x) % kLanes;
  if (threadIdx.x == 0) count = 0;
  if (hint < 0) {
    Nearest nearest(box, from, static_cast<int>(threadIdx.x), Warps * kLanes, in_order);
    nearest.share(from);
    if (lane == 0) {
      distances[warp] = nearest.distance;
      positions[warp] = nearest.position;
    }
    __syncthreads();
    nearest.distance = lane < Warps ? distances[lane] : ~0u;
    nearest.position = lane < Warps ? positions[lane] : 0;
    nearest.share(from);
    hint = nearest.position;
  } else {
    __syncthreads();
  }
  const Owner<D> owner(from, hint);
  for (int first = warp * kLanes; first < from.count; first += Warps * kLanes) {
    const int i = first + lane;
    const bool keep = i < from.count && !pruned(box, owner, from, i);
    const unsigned kept = __ballot_sync(kAll, keep);
    if (kept == 0) continue;
    int at = 0;
    if (lane == 0) at = atomicAdd(&count, __popc(kept));
    at = __shfl_sync(kAll, at, 0) + __popc(kept & ((1u << lane) - 1));
    if (keep && at < capacity) {
      for (int t = 0; t < D; ++t) centroids[t * capacity + at] = from.at(i, t);
      ids[at] = from.id(i);
    }
  }
  __syncthreads();
  return count;
}

// From sm_90 on the kernels of an iteration are launched while the one in front ends: 1 µs less for each. Nothing is read
// or written before all of it is done.
__device__ void wait_for_previous_kernel() {
#if __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();
#endif
}

/// The candidates of each region: [regions][D][capacity], [regions][capacity] and how many; null `counts`: not kept.
struct Regions {
  float* centroids;
  int *ids, *counts;
  int capacity;

  template <int D>
  __device__ List of(int region, const List& all) const {
    if (counts == nullptr || counts[region] > capacity) return all;
    return {centroids + static_cast<std::int64_t>(region) * D * capacity,
            ids + static_cast<std::int64_t>(region) * capacity, capacity, counts[region]};
  }
};

template <int D>
__global__ void __launch_bounds__(kRegionBlock)
    filter_regions(Level<double> level, List all, Regions regions) {
  wait_for_previous_kernel();
  const int region = static_cast<int>(blockIdx.x);
  const int count = filter_in_block<D, kRegionBlock / kLanes>(
      Box<D>(level, region), all, -1,
      regions.centroids + static_cast<std::int64_t>(region) * D * regions.capacity,
      regions.ids + static_cast<std::int64_t>(region) * regions.capacity, regions.capacity, true);
  if (threadIdx.x == 0) regions.counts[region] = count;
}

/// A block has kWarps nodes, a warp a node, a lane a leaf, and at last a lane a point. On each level the candidates are
/// those that the level above left over; where one is left, the stored sums are added and nothing below is read.
template <int D, int Candidates>
__global__ void __launch_bounds__(kBlock)
    assign_and_sum(Tree tree, List centroids, Regions regions, int capacity, int* block_owners,
                   const __grid_constant__ Output out) {
  wait_for_previous_kernel();
  constexpr int kList = Candidates;
  extern __shared__ float shared[];
  __shared__ float node_centroids[kWarps][D][kList];
  __shared__ int node_ids[kWarps][kList];
  float* const block_centroids = shared + kWarps * kList * (D + 1) * kRow;  // [D][capacity]
  int* const block_ids = reinterpret_cast<int*>(block_centroids + D * capacity);
  const int warp = static_cast<int>(threadIdx.x) / kLanes,
            lane = static_cast<int>(threadIdx.x) % kLanes;
  const int block = static_cast<int>(blockIdx.x);
  Cell* const sums = out.sums_of_block<D>(centroids.count);

  const Box<D> block_box(tree.blocks, block);
  const List all = regions.of<D>(block / kRegionBlocks, centroids);
  const int hint = regions.counts == nullptr ? block_owners[block] : -1;
  const int in_block =
      filter_in_block<D, kWarps>(block_box, all, hint, block_centroids, block_ids, capacity, false);
  if (in_block == 1) {
    if (threadIdx.x == 0) {
      add_stored<D>(out, sums, block_ids[0], tree.blocks, block,
                    points_of(tree, block, kWarps * kNode));
      block_owners[block] = block_ids[0];
    }
    const int leaf = block * kBlock + static_cast<int>(threadIdx.x);
    if (out.leaf_labels != nullptr && leaf < tree.leaves.count)
      out.leaf_labels[leaf] = block_ids[0];
    return;
  }
  const bool fits = in_block <= capacity;
  const List from{block_centroids, block_ids, capacity, fits ? in_block : 0};
  if (warp == 0 && regions.counts == nullptr) {
    // The nearest to the centre is always on the list: it is who prunes in the next iteration.
    Nearest nearest(block_box, from, lane, kLanes);
    nearest.share(from);
    if (lane == 0) block_owners[block] = fits ? block_ids[nearest.position] : -1;
  }

  // No barrier of the block from here on.
  const int node = block * kWarps + warp;
  if (node >= tree.nodes.count) return;
  float* const own_centroids = node_centroids[warp][0];
  int* const own_ids = node_ids[warp];
  const Box<D> node_box(tree.nodes, node);
  const int count =
      fits ? filter<D>(node_box, from, own_centroids, own_ids, kList, lane) : kList + 1;
  const int leaf = node * kLanes + lane;
  const bool has_leaf = leaf < tree.leaves.count;
  if (count == 1) {
    if (lane == 0)
      add_stored<D>(out, sums, own_ids[0], tree.nodes, node, points_of(tree, node, kNode));
    if (out.leaf_labels != nullptr && has_leaf) out.leaf_labels[leaf] = own_ids[0];
    return;
  }
  if (count > kList) {
    if (lane == 0) out.wide_nodes[atomicAdd(out.wide_count, 1)] = node;
    return;
  }
  {  // In order of index, so that the first of equal distances is the lowest.
    float c[D];
    const int id = lane < count ? own_ids[lane] : 0;
    for (int t = 0; t < D; ++t) c[t] = lane < count ? own_centroids[t * kList + lane] : 0;
    int rank = 0;
#pragma unroll 1
    for (int i = 0; i < count; ++i) rank += own_ids[i] < id ? 1 : 0;
    __syncwarp();
    if (lane < count) {
      for (int t = 0; t < D; ++t) own_centroids[t * kList + rank] = c[t];
      own_ids[rank] = id;
    }
    __syncwarp();
  }
  const List list{own_centroids, own_ids, kList, count};

  // A lane a leaf: which candidates it has left.
  unsigned left = 0;
  int only = 0;
  if (has_leaf) {
    const Box<D> box(tree.leaves, leaf);
    only = Nearest(box, list, 0, 1, true).position;
    const Owner<D> owner(list, only);
#pragma unroll 1
    for (int i = 0; i < count; ++i) left |= pruned(box, owner, list, i) ? 0u : 1u << i;
  }
  const bool single = __popc(left) == 1;
  if (out.leaf_labels != nullptr && has_leaf) out.leaf_labels[leaf] = single ? own_ids[only] : -1;

  // Each lane adds up in columns of its own, a row a candidate and coordinate: neither atomics nor bank conflicts.
  float* const rows = shared + warp * kList * (D + 1) * kRow;
  const int row_count = count * (D + 1);
#pragma unroll 1
  for (int row = 0; row < row_count; ++row) rows[row * kRow + lane] = 0;
  const auto add = [&](int i, const float(&x)[D], float points) {
    float* const to = rows + i * (D + 1) * kRow + lane;
    for (int t = 0; t < D; ++t) to[t * kRow] += x[t];
    to[D * kRow] += points;
  };
  if (single) {
    float sum[D];
    for (int t = 0; t < D; ++t)
      sum[t] = tree.leaves.sum[static_cast<std::int64_t>(t) * tree.leaves.count + leaf];
    add(only, sum, static_cast<float>(points_of(tree, leaf, kLeaf)));
  }

  // Points come from far: those of the next two leaves are on their way while one is worked on.
  unsigned mixed = __ballot_sync(kAll, !single && has_leaf), to_load = mixed;
  const auto in_node = static_cast<int>(points_of(tree, node, kNode));
  const float* columns[D];
  for (int t = 0; t < D; ++t)
    columns[t] = tree.points + t * tree.n + static_cast<std::int64_t>(node) * kNode + lane;
  const auto load = [&](float(&x)[D]) {
    const int of = highest_bit(to_load);
    const bool wanted = to_load != 0 && of * kLeaf + lane < in_node;
    for (int t = 0; t < D; ++t) x[t] = wanted ? columns[t][of * kLeaf] : 0;
    to_load &= ~(1u << (of & 31));  // of nothing, nothing
  };
  float next[D], after_next[D];
  load(next);
  load(after_next);
  while (mixed != 0) {
    const int of = highest_bit(mixed);
    mixed &= ~(1u << of);
    float x[D];
    for (int t = 0; t < D; ++t) {
      x[t] = next[t];
      next[t] = after_next[t];
    }
    load(after_next);
    // Mostly two candidates are left. Against the order of index: the last of equal distances stays.
    unsigned candidates = __shfl_sync(kAll, left, of);
    int label = highest_bit(candidates);
    float nearest = squared_distance(x, list, label);
    candidates &= ~(1u << label);
#pragma unroll 1
    do {
      const int i = highest_bit(candidates);
      const float d = squared_distance(x, list, i);
      label = d <= nearest ? i : label;
      nearest = fminf(nearest, d);
      candidates &= ~(1u << i);
    } while (candidates != 0);
    const int i = of * kLeaf + lane;
    if (i < in_node) {
      add(label, x, 1);
      if (out.labels != nullptr)
        out.labels[static_cast<std::int64_t>(node) * kNode + i] = own_ids[label];
    }
  }
  __syncwarp();
  // Four lanes a row, each a quarter of the columns; then a lane a row, so that 32 rows are rounded and added at a time.
  for (int first = 0; first < row_count; first += kLanes) {
    float own = 0;
    for (int part = 0; part < 4 && first + part * (kLanes / 4) < row_count; ++part) {
      const int row = first + part * (kLanes / 4) + lane / 4;
      float sum = 0;
      if (row < row_count) {
        const float* const from_row = rows + row * kRow + lane % 4 * (kLanes / 4);
        for (int i = 0; i < kLanes / 4; ++i) sum += from_row[i];
      }
      sum += __shfl_xor_sync(kAll, sum, 1);
      sum += __shfl_xor_sync(kAll, sum, 2);
      sum =
          __shfl_sync(kAll, sum, lane * 4);  // of the eight rows, in the four quarters of the warp
      own = lane / (kLanes / 4) == part ? sum : own;
    }
    if (own == 0) continue;
    const int row = first + lane, i = row / (D + 1);
    out.add<D>(sums + static_cast<std::int64_t>(own_ids[i]) * kCells<D>, row - i * (D + 1), own);
  }
}

/// The nodes that assign_and_sum left out because they have many candidates: where points are few and far between, and
/// where there are nearly as many clusters as points. kWideParts blocks a node, a warp a leaf. Which of equally near centroids
/// prunes does not show here: points are compared one by one, and those of a leaf with equal labels are added up in one way.
template <int D>
__global__ void __launch_bounds__(kBlock)
    assign_wide_nodes(Tree tree, List centroids, Regions regions, int capacity,
                      const __grid_constant__ Output out) {
  wait_for_previous_kernel();
  extern __shared__ float node_centroids[];  // [D][capacity], then their indices
  int* const node_ids = reinterpret_cast<int*>(node_centroids + D * capacity);
  const int warp = static_cast<int>(threadIdx.x) / kLanes,
            lane = static_cast<int>(threadIdx.x) % kLanes;
  Cell* const sums = out.sums_of_block<D>(centroids.count);
  const int parts = *out.wide_count * kWideParts;
  for (int part = static_cast<int>(blockIdx.x); part < parts; part += static_cast<int>(gridDim.x)) {
    const int node = out.wide_nodes[part / kWideParts];
    const List all = regions.of<D>(node / kWarps / kRegionBlocks, centroids);
    __syncthreads();  // the last node's list is no longer read
    const int in_node = filter_in_block<D, kWarps>(Box<D>(tree.nodes, node), all, -1,
                                                   node_centroids, node_ids, capacity, true);
    const List from = in_node <= capacity ? List{node_centroids, node_ids, capacity, in_node} : all;
    const int leaf = node * kLanes + part % kWideParts * kWarps + warp;
    if (leaf >= tree.leaves.count) continue;
    const auto size = static_cast<int>(points_of(tree, leaf, kLeaf));
    const std::int64_t point = static_cast<std::int64_t>(leaf) * kLeaf + lane;
    float x[D];
    for (int t = 0; t < D; ++t) x[t] = lane < size ? tree.points[t * tree.n + point] : 0;

    // 32 candidates at a time: a lane each to see which the leaf has left, and then those with a lane a point.
    const Box<D> box(tree.leaves, leaf);
    Nearest central(box, from, lane, kLanes, true);
    central.share(from);
    const Owner<D> owner(from, central.position);
    float nearest = INFINITY;
    int label = INT_MAX;
    for (int first = 0; first < from.count; first += kLanes) {
      const bool keep = first + lane < from.count && !pruned(box, owner, from, first + lane);
      for (unsigned kept = __ballot_sync(kAll, keep); kept != 0; kept &= kept - 1) {
        const int i = first + __ffs(static_cast<int>(kept)) - 1;
        const float d = squared_distance(x, from, i);
        if (d < nearest || (d == nearest && from.id(i) < label)) {
          nearest = d;
          label = from.id(i);
        }
      }
    }
    if (label == INT_MAX) label = 0;  // every distance overflowed
    if (out.leaf_labels != nullptr) {
      if (lane < size) out.labels[point] = label;
      if (lane == 0) out.leaf_labels[leaf] = -1;
    }
    // Equal labels are added up first: all points of the leaf may be one centroid's.
    for (unsigned todo = __ballot_sync(kAll, lane < size); todo != 0;) {
      const int id = __shfl_sync(kAll, label, __ffs(static_cast<int>(todo)) - 1);
      const bool mine = lane < size && label == id;
      const unsigned group = __ballot_sync(kAll, mine);
      Cell* const to = sums + static_cast<std::int64_t>(id) * kCells<D>;
      float own = static_cast<float>(__popc(group));  // of lane D, the lanes before it have sums
      for (int t = 0; t < D; ++t) {
        const float sum = warp_sum(mine ? x[t] : 0);
        own = lane == t ? sum : own;
      }
      if (lane <= D) out.add<D>(to, lane, own);
      todo &= ~group;
    }
  }
}

// A warp a centroid, a lane a replica; leaves sums and list at zero for the next iteration.
template <int D>
__global__ void move_centroids(Output out, float* centroids, int k, unsigned* largest_move_bits) {
  wait_for_previous_kernel();
  const std::int64_t j =
      (static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / kLanes;
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  if (j >= k) return;  // whole warps: kBlock is a multiple of 32
  if (j == 0 && lane == 0) *out.wide_count = 0;
  Cell total[kCells<D>];
  for (int t = 0; t < kCells<D>; ++t) {
    Cell* const from = out.sums + (static_cast<std::int64_t>(lane) * k + j) * kCells<D> + t;
    total[t] = lane < out.replicas ? *from : 0;
    if (lane < out.replicas) *from = 0;
  }
  for (int t = 0; t < kCells<D>; ++t) {
    if (t > D && __any_sync(kAll, total[t] != 0) == 0) continue;
    for (int offset = kLanes / 2; offset > 0; offset /= 2)
      total[t] += __shfl_xor_sync(kAll, total[t], offset);
  }
  if (lane != 0 || total[D] == 0) return;
  const auto number = [&](int t) { return static_cast<double>(static_cast<long long>(total[t])); };
  float move = 0;
  for (int t = 0; t < D; ++t) {
    float& c = centroids[static_cast<std::int64_t>(t) * k + j];
    const double sum = (number(t) + number(D + 1 + t) * out.fixed.rest_unit) * out.fixed.unit[t];
    const auto mean = static_cast<float>(sum / (number(D) * out.fixed.unit[D]));
    move += (mean - c) * (mean - c);
    c = mean;
  }
  if (largest_move_bits != nullptr) atomicMax(largest_move_bits, __float_as_uint(move));
}

// A warp 32 leaves, a lane a leaf; leaves that are or were mixed are compared a lane a point.
__global__ void count_changes(const int* old_leaves, const int* old_labels, const int* leaves,
                              const int* labels, std::int64_t n, int leaf_count,
                              unsigned* changes) {
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  const int first =
      (static_cast<int>(blockIdx.x) * kWarps + static_cast<int>(threadIdx.x) / kLanes) * kLanes;
  const int leaf = first + lane;
  const int before = leaf < leaf_count ? old_leaves[leaf] : 0,
            after = leaf < leaf_count ? leaves[leaf] : 0;
  const auto size = [&](int l) {
    return static_cast<int>(min(std::int64_t{kLeaf}, n - static_cast<std::int64_t>(l) * kLeaf));
  };
  int count = before != after && before >= 0 && after >= 0 ? size(leaf) : 0;
  for (unsigned mixed = __ballot_sync(kAll, before < 0 || after < 0); mixed != 0;
       mixed &= mixed - 1) {
    const int of = __ffs(static_cast<int>(mixed)) - 1;
    const int a = __shfl_sync(kAll, before, of), b = __shfl_sync(kAll, after, of);
    const std::int64_t i = static_cast<std::int64_t>(first + of) * kLeaf + lane;
    if (i < n) count += (a < 0 ? old_labels[i] : a) != (b < 0 ? labels[i] : b) ? 1 : 0;
  }
  for (int offset = kLanes / 2; offset > 0; offset /= 2)
    count += __shfl_xor_sync(kAll, count, offset);
  if (lane == 0 && count > 0) atomicAdd(changes, static_cast<unsigned>(count));
}

// Labels in the caller's order.
__global__ void spread_labels(const int* leaf_labels, const int* labels, const unsigned* order,
                              std::int64_t n, std::int32_t* out) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const int leaf = leaf_labels[i / kLeaf];
  out[order[i]] = leaf < 0 ? labels[i] : leaf;
}

// ---- The tree, built once --------------------------------------------------------------------------------------------

// Unsigned integers that order as the floats do.
__device__ unsigned ordered(float x) {
  const unsigned bits = __float_as_uint(x);
  return bits >> 31 != 0 ? ~bits : bits | 0x80000000u;
}
__host__ __device__ float from_ordered(unsigned bits) {
  bits = bits >> 31 != 0 ? bits & 0x7fffffffu : ~bits;
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

// box[2][D]: least and largest coordinates, as ordered(): start from all ones and all zeros.
template <int D>
__global__ void bound(const float* points, std::int64_t n, unsigned* box) {
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
      low[t] = fminf(low[t], __shfl_xor_sync(kAll, low[t], offset));
      high[t] = fmaxf(high[t], __shfl_xor_sync(kAll, high[t], offset));
    }
    if (threadIdx.x % kLanes != 0) continue;
    atomicMin(box + t, ordered(low[t]));
    atomicMax(box + D + t, ordered(high[t]));
  }
}

template <int D>
constexpr int kBits = D == 1 ? 32 : 64 / D;  // of a coordinate: 32, 32, 21, 16

// The place along Hilbert's curve (Skilling 2004, "Programming the Hilbert curve", AIP Conf. Proc. 707).
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

// The grid's cells are squares: the widest side of the box has 2^kBits of them.
template <int D>
__global__ void place_on_curve(const float* points, std::int64_t n, const unsigned* box, Key* keys,
                               unsigned* order) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n) return;
  double widest = 0;
  for (int t = 0; t < D; ++t)
    widest = fmax(widest, static_cast<double>(from_ordered(box[D + t])) - from_ordered(box[t]));
  constexpr double kCells = static_cast<double>(Key{1} << kBits<D>);
  unsigned cell[D];
  for (int t = 0; t < D; ++t) {
    const double at =
        (static_cast<double>(points[i * D + t]) - from_ordered(box[t])) / widest * kCells;
    cell[t] = widest > 0 ? static_cast<unsigned>(fmin(at, kCells - 1)) : 0;
  }
  keys[i] = hilbert<D>(cell);
  order[i] = static_cast<unsigned>(i);
}

template <int D>
__global__ void reorder(const float* points, std::int64_t n, const unsigned* order, float* sorted) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n) return;
  for (int t = 0; t < D; ++t)
    sorted[t * n + i] = points[static_cast<std::int64_t>(order[i]) * D + t];
}

// A warp an entry of `to`, a lane each of the `fan` ≤ 32 things below it (`count` in all, [D][count]).
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
      least = fminf(least, __shfl_xor_sync(kAll, least, offset));
      most = fmaxf(most, __shfl_xor_sync(kAll, most, offset));
      total += __shfl_xor_sync(kAll, total, offset);
    }
    if (lane != 0) continue;
    to.low[static_cast<std::int64_t>(t) * to.count + entry] = least;
    to.high[static_cast<std::int64_t>(t) * to.count + entry] = most;
    to.sum[static_cast<std::int64_t>(t) * to.count + entry] = static_cast<Sum>(total);
  }
}

template <typename Sum>
struct LevelMemory {
  cuda::Buffer<float> low, high;
  cuda::Buffer<Sum> sum;
  int count = 0;

  LevelMemory() = default;
  LevelMemory(std::int64_t entries, int dim)
      : low(static_cast<std::size_t>(entries * dim)),
        high(static_cast<std::size_t>(entries * dim)),
        sum(static_cast<std::size_t>(entries * dim)),
        count(static_cast<int>(entries)) {}
  Level<Sum> view() const { return {low.data(), high.data(), sum.data(), count}; }
};

template <typename Body>
void with_low_dim(int dim, Body&& body) {
  if (dim == 1)
    body(std::integral_constant<int, 1>{});
  else if (dim == 2)
    body(std::integral_constant<int, 2>{});
  else if (dim == 3)
    body(std::integral_constant<int, 3>{});
  else
    body(std::integral_constant<int, kMostDims>{});
}

class GridVersion : public Version {
 public:
  void prepare(const Problem& problem, Context& context) override {
    problem_ = problem;
    overlap_ = can_overlap(context.device);
    const auto n = static_cast<std::size_t>(problem.n), k = static_cast<std::size_t>(problem.k);
    const auto dim = static_cast<std::size_t>(problem.dim);
    const std::int64_t leaves = (problem.n + kLeaf - 1) / kLeaf,
                       nodes = (leaves + kLanes - 1) / kLanes;
    leaves_ = LevelMemory<float>(leaves, problem.dim);
    nodes_ = LevelMemory<double>(nodes, problem.dim);
    const std::int64_t blocks = (nodes + kWarps - 1) / kWarps;
    blocks_ = LevelMemory<double>(blocks, problem.dim);
    block_owners_ = cuda::Buffer<int>(static_cast<std::size_t>(blocks));
    regions_ = LevelMemory<double>((blocks + kRegionBlocks - 1) / kRegionBlocks, problem.dim);
    points_ = cuda::Buffer<float>(n * dim);
    order_ = cuda::Buffer<unsigned>(n);
    initial_ = cuda::Buffer<float>(k * dim);
    centroids_ = cuda::Buffer<float>(k * dim);
    every_id_ = cuda::Buffer<int>(k);
    // One address takes one addition after the other: with few centroids the blocks spread over copies.
    replicas_ = 1;
    while (replicas_ < kMostReplicas && 2LL * replicas_ * problem.k <= 4096) replicas_ *= 2;
    sums_ = cuda::Buffer<Cell>(static_cast<std::size_t>(replicas_) * k * (2 * dim + 1));
    many_candidates_ = (problem.dim > 2 || kManyFrom * problem.k > problem.n) &&
                       room_for_lists(kManyCandidates, context.device) >= kBlockListAtLeast;
    // Eight times the centroids that a block's points have if they have them evenly; the same for a region's.
    const int room =
        room_for_lists(many_candidates_ ? kManyCandidates : kFewCandidates, context.device);
    capacity_ = static_cast<int>(std::clamp<std::int64_t>(
        8LL * kWarps * kNode * problem.k / problem.n, std::min(room, kBlockListAtLeast),
        std::min(room, kBlockListAtMost)));
    wide_capacity_ = std::min<int>(
        problem.k, kWideListBytes / (static_cast<int>(sizeof(float)) * (problem.dim + 1)));
    if (problem.k >= kRegionsFrom) {
      region_capacity_ = static_cast<int>(
          std::clamp<std::int64_t>(8LL * kRegionBlocks * kWarps * kNode * problem.k / problem.n,
                                   kRegionListAtLeast, problem.k));
      const auto entries =
          static_cast<std::size_t>(regions_.count) * static_cast<std::size_t>(region_capacity_);
      region_centroids_ = cuda::Buffer<float>(entries * dim);
      region_ids_ = cuda::Buffer<int>(entries);
      region_counts_ = cuda::Buffer<int>(static_cast<std::size_t>(regions_.count));
    }
    wide_nodes_ = cuda::Buffer<int>(static_cast<std::size_t>(nodes) + 1);
    const bool counts = problem.stop.min_changes > 0;
    for (int i = 0; i < (counts ? 2 : 1); ++i) {
      leaf_labels_[i] = cuda::Buffer<int>(static_cast<std::size_t>(leaves));
      labels_[i] = cuda::Buffer<int>(n);
    }
    flags_ = cuda::Buffer<unsigned>(2);
    with_low_dim(problem.dim, [&](auto d) {
      build<d.value>(context);
      with_candidates([&](auto candidates) {
        LLOYD_CUDA_CHECK(cudaFuncSetAttribute(assign_and_sum<d.value, candidates.value>,
                                              cudaFuncAttributeMaxDynamicSharedMemorySize,
                                              static_cast<int>(shared_bytes(candidates.value))));
      });
    });
  }

  void run(Context& context) override {
    const cudaStream_t stream = context.stream;
    const Stop& stop = problem_.stop;
    LLOYD_CUDA_CHECK(cudaMemcpyAsync(centroids_.data(), initial_.data(), initial_.bytes(),
                                     cudaMemcpyDeviceToDevice, stream));
    sums_.zero(stream);
    wide_nodes_.zero(stream);
    LLOYD_CUDA_CHECK(
        cudaMemsetAsync(block_owners_.data(), 0xff, block_owners_.bytes(), stream));  // −1: unknown
    const bool may_stop = stop.tolerance > 0 || stop.min_changes > 0;
    if (stop.min_changes > 0)  // −1 everywhere: nothing yet
      for (const auto* labels : {&leaf_labels_[1], &labels_[1]})
        LLOYD_CUDA_CHECK(cudaMemsetAsync(labels->data(), 0xff, labels->bytes(), stream));
    for (iterations_ = 0; iterations_ < stop.iterations;) {
      const auto iteration = context.iteration(iterations_);
      if (may_stop) flags_.zero(stream);
      now_ = stop.min_changes > 0 ? iterations_ % 2 : 0;
      const bool wants_labels = may_stop || iterations_ + 1 == stop.iterations;
      with_low_dim(problem_.dim, [&](auto d) { step<d.value>(context, wants_labels); });
      ++iterations_;
      if (!may_stop) continue;
      const auto phase = context.phase("converge");
      if (stop.min_changes > 0) {
        count_changes<<<cuda::blocks_for(leaves_.count, kBlock), kBlock, 0, stream>>>(
            leaf_labels_[1 - now_].data(), labels_[1 - now_].data(), leaf_labels_[now_].data(),
            labels_[now_].data(), problem_.n, leaves_.count, flags_.data());
        LLOYD_CUDA_CHECK_LAUNCH();
      }
      unsigned flags[2];
      flags_.download(flags, stream);
      float squared = 0;
      std::memcpy(&squared, &flags[1], sizeof squared);
      if (stop.tolerance > 0 && std::sqrt(squared) < stop.tolerance) break;
      if (static_cast<std::int64_t>(flags[0]) < stop.min_changes) break;
    }
  }

  Solution fetch(Context& context) override {
    Solution solution;
    solution.iterations = iterations_;
    solution.labels.resize(order_.size());
    const auto phase = context.phase("transfer");
    const cuda::Buffer<std::int32_t> labels(order_.size());
    spread_labels<<<cuda::blocks_for(problem_.n, kBlock), kBlock, 0, context.stream>>>(
        leaf_labels_[now_].data(), labels_[now_].data(), order_.data(), problem_.n, labels.data());
    LLOYD_CUDA_CHECK_LAUNCH();
    labels.download(solution.labels, context.stream);
    std::vector<float> columns(centroids_.size()), rows(centroids_.size());
    centroids_.download(columns, context.stream);
    const auto k = static_cast<std::size_t>(problem_.k),
               dim = static_cast<std::size_t>(problem_.dim);
    for (std::size_t j = 0; j < k; ++j)
      for (std::size_t t = 0; t < dim; ++t) rows[j * dim + t] = columns[t * k + j];
    solution.centroids = placement_.restored(rows);
    return solution;
  }

 private:
  static constexpr int kBlockListAtLeast = 256, kBlockListAtMost = 4096, kRegionListAtLeast = 1024;
  static constexpr int kRegionsFrom = 2048, kWideListBytes = 40960;
  static constexpr std::int64_t kManyFrom = 4096;  // points a cluster
  static constexpr int kStaticShared = 8192;       // at most, of assign_and_sum

  /// Of assign_and_sum: its columns and the block's list.
  std::size_t shared_bytes(int candidates) const {
    return sizeof(float) *
           static_cast<std::size_t>((problem_.dim + 1) * (kWarps * candidates * kRow + capacity_));
  }
  int room_for_lists(int candidates, const DeviceLimits& device) const {
    const auto floats = static_cast<int>((device.shared_bytes_optin - kStaticShared) /
                                         static_cast<int>(sizeof(float)));
    return floats / (problem_.dim + 1) - kWarps * candidates * kRow;
  }
  template <typename Body>
  void with_candidates(Body&& body) const {
    if (many_candidates_)
      body(std::integral_constant<int, kManyCandidates>{});
    else
      body(std::integral_constant<int, kFewCandidates>{});
  }
  Tree tree() const {
    return {points_.data(), problem_.n, leaves_.view(), nodes_.view(), blocks_.view()};
  }

  template <int D>
  void build(Context& context) {
    const cudaStream_t stream = context.stream;
    const auto n = static_cast<std::size_t>(problem_.n), k = static_cast<std::size_t>(problem_.k);
    const unsigned blocks = cuda::blocks_for(problem_.n, kBlock);
    cuda::Buffer<float> points(n * D);
    std::vector<int> every_id(k);
    std::iota(every_id.begin(), every_id.end(), 0);
    {
      const auto phase = context.phase("transfer");
      points.upload(problem_.points, stream);
      every_id_.upload(every_id, stream);
      LLOYD_CUDA_CHECK(cudaStreamSynchronize(stream));
    }
    const auto phase = context.phase("init");
    placement_ = Placement::of<float>(problem_, points.data(), stream);
    placement_.centre(points, stream);
    std::vector<float> columns(k * D);
    for (std::size_t j = 0; j < k; ++j)
      for (std::size_t t = 0; t < D; ++t) columns[t * k + j] = placement_.centroids()[j * D + t];
    initial_.upload(columns, stream);
    cuda::Buffer<unsigned> box(2 * D), order(n);
    cuda::Buffer<Key> keys(n), other_keys(n);
    LLOYD_CUDA_CHECK(cudaMemsetAsync(box.data(), 0xff, D * sizeof(unsigned), stream));
    LLOYD_CUDA_CHECK(cudaMemsetAsync(box.data() + D, 0, D * sizeof(unsigned), stream));
    bound<D><<<std::min(blocks, 1024u), kBlock, 0, stream>>>(points.data(), problem_.n, box.data());
    LLOYD_CUDA_CHECK_LAUNCH();
    place_on_curve<D><<<blocks, kBlock, 0, stream>>>(points.data(), problem_.n, box.data(),
                                                     keys.data(), order.data());
    LLOYD_CUDA_CHECK_LAUNCH();
    const auto sort = [&](void* scratch, std::size_t& bytes) {
      LLOYD_CUDA_CHECK(cub::DeviceRadixSort::SortPairs(
          scratch, bytes, keys.data(), other_keys.data(), order.data(), order_.data(),
          static_cast<int>(problem_.n), 0, kBits<D> * D, stream));
    };
    std::size_t bytes = 0;
    sort(nullptr, bytes);
    cuda::Buffer<char> scratch(std::max<std::size_t>(bytes, 1));
    sort(scratch.data(), bytes);
    reorder<D>
        <<<blocks, kBlock, 0, stream>>>(points.data(), problem_.n, order_.data(), points_.data());
    LLOYD_CUDA_CHECK_LAUNCH();
    const auto gather = [&](const auto& to, const auto* low, const auto* high, const auto* sum,
                            std::int64_t count, int fan) {
      gather_level<D><<<cuda::blocks_for(to.count, kWarps), kBlock, 0, stream>>>(to, low, high, sum,
                                                                                 count, fan);
      LLOYD_CUDA_CHECK_LAUNCH();
    };
    const Level<float> leaves = leaves_.view();
    const Level<double> nodes = nodes_.view();
    gather(leaves, points_.data(), points_.data(), points_.data(), problem_.n, kLeaf);
    gather(nodes, leaves.low, leaves.high, leaves.sum, leaves.count, kLanes);
    const Level<double> blocks_of = blocks_.view();
    gather(blocks_of, nodes.low, nodes.high, nodes.sum, nodes.count, kWarps);
    gather(regions_.view(), blocks_of.low, blocks_of.high, blocks_of.sum, blocks_of.count,
           kRegionBlocks);
    unsigned bits[2 * D];
    box.download(bits, stream);
    choose_units<D>(bits);
  }

  template <int D>
  void choose_units(const unsigned (&box)[2 * D]) {
    int bits = 61;  // of a sum; of all but those that the number of points takes
    while (bits > 0 && std::int64_t{1} << (61 - bits) < problem_.n) --bits;
    fixed_.rest_scale = std::ldexp(1.0f, bits);
    fixed_.rest_unit = std::ldexp(1.0, -bits);
    fixed_.scale[D] = std::ldexp(1.0f, kCountBits);
    fixed_.unit[D] = std::ldexp(1.0, -kCountBits);
    for (int t = 0; t < D; ++t) {
      const float most =
          std::max(std::abs(from_ordered(box[t])), std::abs(from_ordered(box[D + t])));
      const int exponent = most > 0 && std::isfinite(most) ? std::ilogb(most) + 1 : 0;
      const int scale = std::min(bits - exponent, 126);
      fixed_.scale[t] = std::ldexp(1.0f, scale);
      fixed_.unit[t] = std::ldexp(1.0, -scale);
    }
  }

  template <int D>
  void step(Context& context, bool wants_labels) {
    const Output out{.sums = sums_.data(),
                     .fixed = fixed_,
                     .replicas = replicas_,
                     .wide_nodes = wide_nodes_.data() + 1,
                     .wide_count = wide_nodes_.data(),
                     .leaf_labels = wants_labels ? leaf_labels_[now_].data() : nullptr,
                     .labels = wants_labels ? labels_[now_].data() : nullptr};
    const List all{centroids_.data(), every_id_.data(), problem_.k, problem_.k};
    const Regions regions{region_centroids_.data(), region_ids_.data(), region_counts_.data(),
                          region_capacity_};
    {
      const auto phase = context.phase("assign");
      if (region_counts_.size() > 0) {
        launch(context, filter_regions<D>, regions_.count, kRegionBlock, 0, regions_.view(), all,
               regions);
      }
      with_candidates([&](auto candidates) {
        launch(context, assign_and_sum<D, candidates.value>, blocks_.count, kBlock,
               shared_bytes(candidates.value), tree(), all, regions, capacity_,
               block_owners_.data(), out);
      });
      launch(context, assign_wide_nodes<D>,
             std::min(nodes_.count, context.device.multiprocessors) * kWideParts, kBlock,
             sizeof(float) * static_cast<std::size_t>((D + 1) * wide_capacity_), tree(), all,
             regions, wide_capacity_, out);
    }
    const auto phase = context.phase("update");
    launch(context, move_centroids<D>, (problem_.k + kWarps - 1) / kWarps, kBlock, 0, out,
           centroids_.data(), problem_.k,
           problem_.stop.tolerance > 0 ? flags_.data() + 1 : nullptr);
  }

  template <typename... Parameters, typename... Arguments>
  void launch(const Context& context, void (*kernel)(Parameters...), int blocks, int threads,
              std::size_t shared, const Arguments&... arguments) {
    fast::launch(overlap_, kernel, static_cast<unsigned>(blocks), static_cast<unsigned>(threads),
                 static_cast<std::int64_t>(shared), context.stream, arguments...);
  }

  Problem problem_;
  Placement placement_;
  int iterations_ = 0, replicas_ = 1, capacity_ = 0;
  bool overlap_ = false;
  int now_ = 0;  // which of the labels are the last iteration's
  LevelMemory<float> leaves_;
  LevelMemory<double> nodes_, blocks_, regions_;
  bool many_candidates_ = false;
  cuda::Buffer<float> points_, initial_, centroids_;  // [dim][n], [dim][k]
  cuda::Buffer<int> every_id_;                        // 0, 1, … k − 1
  cuda::Buffer<unsigned> order_;                      // along the curve → the caller's index
  cuda::Buffer<Cell> sums_;
  FixedPoint fixed_{};
  int region_capacity_ = 0, wide_capacity_ = 0;
  cuda::Buffer<float> region_centroids_;
  cuda::Buffer<int> region_ids_, region_counts_;  // only from kRegionsFrom clusters on
  cuda::Buffer<int>
      block_owners_;  // who was nearest to the block's centre in the last iteration, or −1
  cuda::Buffer<int> wide_nodes_;  // their number, then they
  cuda::Buffer<int> leaf_labels_[2], labels_[2];
  cuda::Buffer<unsigned> flags_;  // points that changed, bits of the largest squared move
};
#endif

LLOYD_CUDA_VERSION(GridVersion,
                   {.name = "fast_grid",
                    .family = "fast",
                    .backend = Backend::cuda,
                    .parent = "luigi_v4_device_update",
                    .precisions = {Precision::fp32},
                    .distance = Distance::direct,
                    .reproducible = true,
                    .summary = "points along Hilbert's curve in a tree of boxes: where one "
                               "centroid can be nearest, stored sums are added and "
                               "no point is read",
                    .unsupported = [](const Problem& problem, const Tunables&,
                                      const DeviceLimits&) -> std::optional<std::string> {
                      constexpr std::int64_t kMost = (std::int64_t{1} << 31) - 1;
                      if (problem.n > kMost)
                        return "sorts at most " + with_commas(kMost) + " points, not " +
                               with_commas(problem.n);
                      if (problem.dim > kMostDims)
                        return "boxes prune in few dimensions: at most " +
                               std::to_string(kMostDims) + ", not " + std::to_string(problem.dim);
                      return std::nullopt;
                    }});

}  // namespace
}  // namespace lloyd::fast
