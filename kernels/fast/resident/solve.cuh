// The kernel of fast_resident: a whole solve. The host launches it once, so the iteration is here.
#pragma once

#include "kernels/fast/lib/grid_barrier.cuh"
#include "kernels/fast/resident/block.cuh"
#include "kernels/fast/resident/units.cuh"

namespace lloyd::fast {
namespace {

/// Copies of the sums in global memory. With more copies, fewer additions wait for each other.
constexpr int kCopies = 4;

struct Solve {
  Layout layout;
  const float *points, *initial;
  float* centroids;
  exact::SplitUnits split_units;  // how a coordinate becomes two integers
  const Rest* rests;              // by point
  const int* first_rests;         // of each block, and their end
  // Three sets: of this iteration, of the last, which slower blocks may still read, and of the
  // next. A solve begins with *first_set, the one that the solve before it has zeroed last.
  Sum* sums;         // 3 × kCopies × k × dim
  Sum* rest_sums;    // 3 × k × dim, or null where there are no rests
  unsigned* counts;  // 3 × (k counts, points that changed)
  std::int32_t* labels;
  unsigned *arrived, *next_arrived;  // blocks at the barriers of this solve, and of the next one
  int *first_set, *iterations;
  std::int64_t n;
  int k, dim;
  Stop stop;
};

/// What the blocks add up in one iteration.
struct Set {
  Sum *sums, *rest_sums;  // the latter null where there are no rests
  unsigned* counts;

  __device__ __forceinline__ Set(const Solve& s, int number)
      : sums(s.sums + number * kCopies * s.layout.cells),
        rest_sums(s.rest_sums == nullptr ? nullptr : s.rest_sums + number * s.layout.cells),
        counts(s.counts + number * (s.k + 1)) {}
  /// This thread's part of zeroing.
  __device__ __forceinline__ void zero(const Solve& s, int thread, int threads) const {
    for (int c = thread; c < s.layout.cells; c += threads) {
      for (int copy = 0; copy < kCopies; ++copy) sums[copy * s.layout.cells + c] = 0;
      if (rest_sums != nullptr) rest_sums[c] = 0;
    }
    for (int j = thread; j <= s.k; j += threads) counts[j] = 0;
  }
};

/// Fills the block's shared memory, once: its points, the initial centroids (those past k are
/// infinitely far), no labels yet, the scale of each coordinate, and the unit of its sums.
template <int Quads>
__device__ __forceinline__ void set_up(const Solve& s, const Layout& layout, int k, int dim,
                                       int stride, float4* points, float* centroid, int* labels,
                                       float* scales, double* units, std::int64_t begin,
                                       int count) {
  load_points<Quads>(layout, s.points + begin * dim, points, count, dim);
  for (int e = threadIdx.x; e < layout.padded_k * stride; e += kThreads) {
    const int j = e / stride, t = e % stride;
    centroid[e] = j >= k ? INFINITY : t < dim ? s.initial[j * dim + t] : 0;
  }
  for (int i = threadIdx.x; i < count; i += kThreads) labels[i] = -1;
  for (int t = threadIdx.x; t < dim; t += kThreads) {
    scales[t] = s.split_units.scales[t];
    units[t] = 1 / (static_cast<double>(scales[t]) *
                    static_cast<double>(1LL << (exact::kFirstBits + s.split_units.second_bits)));
  }
}

/// By all warps but the first: adds the block's counts to those in global memory, and zeroes this
/// block's part of the next set, which no block reads any more.
__device__ __forceinline__ void send_counts(const Solve& s, const Set& own, const Set& next,
                                            const unsigned* block_counts, int k) {
  const int thread = threadIdx.x - kWarp, threads = kThreads - kWarp;
  for (int j = thread; j <= k; j += threads)
    if (block_counts[j] > 0) atomicAdd(&own.counts[j], block_counts[j]);
  next.zero(s, thread * gridDim.x + blockIdx.x, threads * gridDim.x);
}

/// Adds the block's sums to a copy of those in global memory, and leaves zeros.
__device__ __forceinline__ void send_sums(const Layout& layout, Sum* block_sums, Sum* copy) {
  for (int c = threadIdx.x; c < layout.cells; c += kThreads) {
    if (block_sums[c] != 0) atomicAdd(&copy[c], block_sums[c]);
    block_sums[c] = 0;
  }
}

/// Coordinate t of the mean of a cluster with `members` points. c: its cell, cluster · dim + t.
struct MeanOf {
  const Solve& s;
  const Layout& layout;
  const Set& own;
  const double* units;

  __device__ __forceinline__ float operator()(int c, int t, unsigned members) const {
    Sum whole = 0;
#pragma unroll
    for (int copy = 0; copy < kCopies; ++copy) whole += __ldcg(&own.sums[copy * layout.cells + c]);
    auto sum = static_cast<double>(static_cast<long long>(whole));
    if (own.rest_sums != nullptr)
      sum += static_cast<double>(static_cast<long long>(__ldcg(&own.rest_sums[c]))) *
             s.split_units.rest_scale;
    return static_cast<float>(sum * units[t]) / static_cast<float>(members);
  }
};

/// The largest squared move, as bits, for the stopping rule. Comes before move_centroids().
__device__ __forceinline__ void find_largest_move(const Set& own, const MeanOf& mean, int k,
                                                  int dim, int stride, const float* centroid,
                                                  unsigned& largest_move) {
  for (int j = threadIdx.x; j < k; j += kThreads) {
    const unsigned members = __ldcg(&own.counts[j]);
    if (members == 0) continue;
    float move = 0;
    for (int t = 0; t < dim; ++t) {
      const float step = mean(j * dim + t, t, members) - centroid[j * stride + t];
      move += step * step;
    }
    atomicMax(&largest_move, __float_as_uint(move));
  }
}

/// Moves the block's own centroids. Those without points stay.
__device__ __forceinline__ void move_centroids(const Layout& layout, const Set& own,
                                               const MeanOf& mean, int k, int dim, int stride,
                                               float* centroid) {
  for (int c = threadIdx.x; c < k * dim; c += kThreads) {
    const int j = cluster_of(layout, c), t = c - j * dim;
    const unsigned members = __ldcg(&own.counts[j]);
    const float moved = mean(c, t, members);
    if (members > 0) centroid[j * stride + t] = moved;
  }
}

/// By one block: writes the centroids, and what the next solve begins with.
__device__ __forceinline__ void write_centroids(const Solve& s, const Layout& layout, int k,
                                                int dim, int stride, const float* centroid,
                                                int iteration, int set) {
  for (int c = threadIdx.x; c < k * dim; c += kThreads) {
    const int j = cluster_of(layout, c);
    s.centroids[c] = centroid[j * stride + c - j * dim];
  }
  if (threadIdx.x == 0) {  // All blocks have read *first_set: they have met at a barrier.
    *s.iterations = iteration;
    *s.first_set = set;
    *s.next_arrived = 0;
  }
}

/// The whole solve. Each block keeps its points and all centroids in shared memory. An iteration:
///   label   each warp labels 32 of the block's points at a time, and counts them by cluster
///   sort    the indices of the points by label
///   sum     groups of lanes add up runs of one cluster, and add these to the sums of all blocks
///   meet    the only barrier of all blocks
///   move    every block reads the same sums, so all get the same centroids, stop at the same time,
///           and have nothing to tell each other
/// (The steps have the kernel's own variables as parameters: with references to `s` alone, ptxas
/// makes another schedule.)
template <int Quads>
__global__ void __launch_bounds__(kThreads, 1) solve(Solve s) {
  extern __shared__ float4 points[];
  const Layout& layout = s.layout;
  const int k = s.k, dim = s.dim;
  float4* centroids = points + layout.points_per_block * layout.stride_quads;
  Sum* block_sums = reinterpret_cast<Sum*>(centroids + layout.padded_k * layout.stride_quads);
  double* units = reinterpret_cast<double*>(block_sums + layout.cells);
  float* scales = reinterpret_cast<float*>(units + dim);
  int* labels = reinterpret_cast<int*>(scales + dim);
  unsigned* places = reinterpret_cast<unsigned*>(labels + layout.points_per_block);
  int* order = reinterpret_cast<int*>(places + layout.points_per_block);
  unsigned* starts = reinterpret_cast<unsigned*>(order + layout.points_per_block);
  unsigned* block_counts = starts + k;
  unsigned& block_changes = block_counts[k];
  unsigned& largest_move = block_counts[k + 1];  // bits of a non-negative float order like it
  unsigned& largest_square = block_counts[k + 2];
  // The same points and centroids as floats, of which a row has `stride`.
  float* point = reinterpret_cast<float*>(points);
  float* centroid = reinterpret_cast<float*>(centroids);
  const int stride = 4 * layout.stride_quads;

  const std::int64_t begin = static_cast<std::int64_t>(blockIdx.x) * layout.points_per_block;
  const int count = static_cast<int>(
      max(std::int64_t{0}, min(std::int64_t{layout.points_per_block}, s.n - begin)));
  set_up<Quads>(s, layout, k, dim, stride, points, centroid, labels, scales, units, begin, count);
  const int first_rest = s.rest_sums == nullptr ? 0 : s.first_rests[blockIdx.x],
            end_rest = s.rest_sums == nullptr ? 0 : s.first_rests[blockIdx.x + 1];
  for (int c = threadIdx.x; c < layout.cells; c += kThreads) block_sums[c] = 0;
  for (int j = threadIdx.x; j < k + 3; j += kThreads) block_counts[j] = 0;
  __syncthreads();
  float largest_point = 0;
  if constexpr (kScreens<Quads>)
    largest_point = largest_norm(layout, points, count, largest_square);

  int iteration = 0, set = *s.first_set;
  for (bool done = false; !done;) {
    // Label.
    const int changes = label_points<Quads>(layout, points, centroids, largest_point, labels,
                                            places, block_counts, count, k);
    if (s.stop.min_changes > 0 && changes > 0) atomicAdd(&block_changes, changes);
    __syncthreads();
    const Set own(s, set);
    set = set == 2 ? 0 : set + 1;
    const Set next(s, set);

    // Sort. Meanwhile the other warps send the counts: the barrier waits for the last additions.
    if (threadIdx.x < kWarp) {
      find_starts(block_counts, starts, k);
    } else {
      send_counts(s, own, next, block_counts, k);
    }
    int r = first_rest + static_cast<int>(threadIdx.x);
    Rest rest{};
    if (r < end_rest) rest = s.rests[r];  // arrives during the sums
    __syncthreads();
    order_points(labels, places, starts, order, count);
    __syncthreads();

    // Sum, as two integers per coordinate. The few coordinates that need more bits have a Rest each
    // (units.cuh), which goes straight to global memory.
    Sum* copy = own.sums + static_cast<int>(blockIdx.x % kCopies) * layout.cells;
    sum_points(layout, point, labels, order, starts, block_counts, count, copy, block_sums, dim,
               scales, s.split_units);
    if (!layout.adds_runs) {
      __syncthreads();
      send_sums(layout, block_sums, copy);
    }
    while (r < end_rest) {
      const int cell = labels[rest.point - begin] * dim + rest.coordinate;
      atomicAdd(&own.rest_sums[cell], static_cast<Sum>(rest.value));
      if ((r += kThreads) < end_rest) rest = s.rests[r];
    }

    // Meet.
    if (threadIdx.x == 0) largest_move = 0;
    ++iteration;
    wait_for_all_blocks(s.arrived, iteration * gridDim.x);
    for (int j = threadIdx.x; j <= k; j += kThreads) block_counts[j] = 0;

    // Move.
    const MeanOf mean{s, layout, own, units};
    if (s.stop.tolerance > 0) {
      find_largest_move(own, mean, k, dim, stride, centroid, largest_move);
      __syncthreads();
    }
    move_centroids(layout, own, mean, k, dim, stride, centroid);
    done = iteration == s.stop.iterations ||
           (s.stop.tolerance > 0 && sqrtf(__uint_as_float(largest_move)) < s.stop.tolerance) ||
           (s.stop.min_changes > 0 && __ldcg(&own.counts[k]) < s.stop.min_changes);
    __syncthreads();
  }

  for (int i = threadIdx.x; i < count; i += kThreads) s.labels[begin + i] = labels[i];
  if (blockIdx.x != 0) return;
  write_centroids(s, layout, k, dim, stride, centroid, iteration, set);
}

}  // namespace
}  // namespace lloyd::fast
