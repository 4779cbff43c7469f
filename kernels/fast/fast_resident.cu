// fast_resident: the whole solve in one launch, the points in the multiprocessors' shared memory throughout.
//
// Parent   luigi_v4_device_update.
// What     a cooperative launch of a block per multiprocessor. Each reads its share of the points once and keeps it, with the
//          centroids, in shared memory. An iteration: labels, a point a thread; a counting sort of the block's points by label;
//          runs of the sorted points added up, a lane a coordinate; the block's sums added to one of three sets in global
//          memory; one barrier of all blocks; every block then divides the same sums, and takes the same decision to stop.
// Why      at n = 65,536 v4 is launches, copies and atomics. Nothing here leaves the chip but k × dim sums a block.
// Limits   a block's share of the points, 16 B a quad of coordinates (an odd number of quads), and 12 B each, beside 12 B a coordinate
//          of the centroids: on an H200 n ≤ 191,000 at dim 32, 1,092,000 at dim 2 (k = 16). The solve is
//          one phase: its iterations have no ranges of their own.
// Same bits  in every run and on any number of multiprocessors, though which points share a block is their number's choice: a
//          coordinate is two integers (Split), together 43 bits below the power of two above the dimension's largest magnitude,
//          and sums of integers show no order. What is so small beside it that they do not hold it (12 of 2 million normal
//          coordinates) is in a list, and added to sums of its own.
// Floor    n = 65,536, k = 16, dim 32: 2 operations a coordinate and centroid are 2.2 µs; one barrier of all blocks 1.2 µs.
// Predicted 6.8 µs an iteration.
// Measured H200, 2026-11-21: n = 65,536, k = 16, dim 32 9.2 µs (v4 278); n = 1e6, k = 16, dim 2 17 µs; n = 1e4, k = 100, dim 2 7.7 µs; n = 2048, k = 8,
//          dim 2 5.9 µs. By the clock of block 0, in cycles: labels 6,900, sort 900, sums 1,800, atomics 700, barrier 3,500, division
//          1,900. The barrier is the surprise: it waits for all blocks' atomics. Tried: sums to copies of each group of lanes
//          instead of the sort, 4,500 + 1,950 cycles; fp64 atomics between blocks, 0.8 µs more.
//          Then with integers instead of floats, beside the floats in the same run: n = 65,536, k = 16, dim 32 9.6 and 9.7 µs; n = 1e4, k = 16,
//          dim 2 4.6 and 6.4; n = 1e5, k = 128, dim 2 11.9 and 12.4; n = 65,536, k = 128, dim 32 40.1 and 39.9. The additions of 64 bits in
//          global memory cost 0.4 µs in the first until four copies shared them; what pays is that two of 32 bits in shared memory
//          are native, where one of doubles is a loop of compare and swap. Number of copies by the problem, not compiled in: 0.4 µs more.
#include <algorithm>
#include <optional>

#include "kernels/core/limits.h"

#if LLOYD_CUDA
#include <cmath>
#include <cstring>
#include <cuda/atomic>
#include <vector>

#include "kernels/core/cuda.h"
#include "kernels/fast/lib/placement.h"
#endif

namespace lloyd::fast {
namespace {

constexpr int kThreads = 512;  // 256 are slower by a tenth, 384 by a fifth
constexpr int kAtATime = 4;    // centroids
constexpr int kWarp = 32;
// Of the sums in global memory, so that fewer additions wait for each other: 0.0098 ms with one, 0.0095 with 4 at n = 65,536,
// k = 16, dim 32.
constexpr int kCopies = 4;
// Of a scaled coordinate, which is between −1 and 1: bits of its first integer, and of the second where n ≤ 2^18.
constexpr int kFirstBits = 21, kSecondBits = 22;

// How the problem lies in one block's shared memory, in this order. A point is an odd number of quads of floats, so that
// a warp's 16-byte reads of a column of points spread over the banks.
struct Layout {
  int blocks, points_per_block, quads, stride_quads, k, padded_k, dim, cells, lanes;

  Layout(const Problem& problem, const DeviceLimits& device) {
    const std::int64_t wanted = (problem.n + kThreads - 1) / kThreads;
    blocks = static_cast<int>(std::min<std::int64_t>(wanted, std::max(device.multiprocessors, 1)));
    points_per_block = static_cast<int>((problem.n + blocks - 1) / blocks);
    quads = (problem.dim + 3) / 4;
    stride_quads = quads | 1;
    k = problem.k;
    padded_k = (k + kAtATime - 1) / kAtATime * kAtATime;
    dim = problem.dim;
    cells = k * problem.dim;
    for (lanes = 1; lanes < std::min(problem.dim, kWarp);) lanes *= 2;
  }
  // Points, centroids, sums; units and scales of the coordinates; labels, places and order of the points; counts and starts of
  // the clusters, two flags.
  std::int64_t bytes() const {
    return 16LL * points_per_block * stride_quads + 16LL * padded_k * quads + 8LL * cells +
           12LL * dim + 4LL * (3LL * points_per_block + 2LL * k + 2);
  }
  /// Points that a group of lanes adds up (sum_points): integers of kFirstBits, of which an int holds 2^10.
  int points_per_group() const {
    const int groups = kThreads / lanes;
    return (points_per_block + groups - 1) / groups;
  }
};

#if LLOYD_CUDA
using Sum = unsigned long long;  // an integer in two's complement, as atomicAdd wants it

// What split() leaves of a coordinate that is small beside the largest.
struct Rest {
  int point, coordinate;
  long long value;
};

// How coordinates become integers: x · scale[t], between −1 and 1, in units of 2^-(kFirstBits + second_bits).
struct FixedPoint {
  const float* scales;  // powers of two, one a coordinate
  int second_bits;      // so few that the sum of all points fits 62 bits
  float second;         // 1.5 · 2^23 units
  double rest_scale;    // of the rests' units in one unit
};

struct Solve {
  Layout layout;
  const float *points, *initial;
  float* centroids;
  FixedPoint fixed;
  const Rest* rests;       // by point
  const int* first_rests;  // of each block, and their end
  // Three sets: of this iteration, of the last, zeros for the next.
  Sum* sums;         // 3 × kCopies × k × dim
  Sum* rest_sums;    // 3 × k × dim, or null where there are no rests
  unsigned* counts;  // 3 × (k counts, points that changed)
  std::int32_t* labels;
  unsigned* arrived;  // blocks at the barrier, ever
  int* iterations;
  std::int64_t n;
  int k, dim;
  Stop stop;
};

// Every block is resident (the launch is cooperative), so it may wait for the others. What they did before is seen after.
__device__ void wait_for_all_blocks(unsigned* arrived, unsigned wanted) {
  __syncthreads();
  if (threadIdx.x == 0) {
    const ::cuda::atomic_ref<unsigned, ::cuda::thread_scope_device> count(*arrived);
    count.fetch_add(1, ::cuda::memory_order_release);
    while (count.load(::cuda::memory_order_acquire) < wanted) {
    }
  }
  __syncthreads();
}

// Labels the block's points, counts them by cluster, numbers those of each in any order, and returns how many of this
// thread's changed. Quads = 0: any number, read again for each kAtATime centroids instead of kept in registers.
template <int Quads>
__device__ int label_points(const Layout& layout, const float4* points, const float4* centroids,
                            int* labels, unsigned* places, unsigned* counts, int count, int k) {
  const int quads = Quads > 0 ? Quads : layout.quads;
  int changes = 0;
  for (int i = threadIdx.x; i < count; i += kThreads) {
    const float4* point = points + i * layout.stride_quads;
    float4 kept[Quads > 0 ? Quads : 1];
#pragma unroll
    for (int q = 0; q < Quads; ++q) kept[q] = point[q];
    float best = INFINITY;
    int label = 0;
    for (int j = 0; j < k; j += kAtATime) {
      float distance[kAtATime] = {};
      const auto add = [&](int q, const float4& x) {
#pragma unroll
        for (int c = 0; c < kAtATime; ++c) {
          const float4 centroid = centroids[(j + c) * quads + q];
          const float a = x.x - centroid.x, b = x.y - centroid.y;
          const float e = x.z - centroid.z, f = x.w - centroid.w;
          distance[c] = fmaf(a, a, distance[c]);
          distance[c] = fmaf(b, b, distance[c]);
          distance[c] = fmaf(e, e, distance[c]);
          distance[c] = fmaf(f, f, distance[c]);
        }
      };
      if constexpr (Quads > 0) {
#pragma unroll
        for (int q = 0; q < Quads; ++q) add(q, kept[q]);
      } else {
        for (int q = 0; q < quads; ++q) add(q, point[q]);
      }
#pragma unroll
      for (int c = 0; c < kAtATime; ++c) {
        if (distance[c] < best) {
          best = distance[c];
          label = j + c;
        }
      }
    }
    changes += labels[i] != label;
    labels[i] = label;
    places[i] = atomicAdd(&counts[label], 1u);  // of integers: one instruction
  }
  return changes;
}

// order[...]: the block's points by cluster, from their labels and their places among the cluster's points.
__device__ void sort_points(const int* labels, const unsigned* places, const unsigned* counts,
                            unsigned* starts, int* order, int count, int k) {
  if (threadIdx.x < kWarp) {
    unsigned before = 0;
    for (int first = 0; first < k; first += kWarp) {
      const int j = first + static_cast<int>(threadIdx.x);
      const unsigned own = j < k ? counts[j] : 0;
      unsigned upto = own;
      for (int offset = 1; offset < kWarp; offset *= 2) {
        const unsigned other = __shfl_up_sync(0xffffffffu, upto, offset);
        if (static_cast<int>(threadIdx.x) >= offset) upto += other;
      }
      if (j < k) starts[j] = before + upto - own;
      before += __shfl_sync(0xffffffffu, upto, kWarp - 1);
    }
  }
  __syncthreads();
  for (int i = threadIdx.x; i < count; i += kThreads) order[starts[labels[i]] + places[i]] = i;
  __syncthreads();
}

// x · scale = (first + second · 2^-second_bits) · 2^-kFirstBits + rest, exactly. A float plus one whose exponent is far larger
// keeps an integer in its low bits: four additions and two of integers, where a conversion to 64 bits has an eighth of their
// rate.
struct Split {
  unsigned first, second;
  float rest;

  static constexpr float kFirst = 6;  // 1.5 · 2^2, in whose neighbourhood an ulp is 2^-kFirstBits
  __device__ __forceinline__ Split(float x, float scale, float c) {
    const float high = fmaf(x, scale, kFirst);
    const float left = fmaf(x, scale, kFirst - high);
    const float low = left + c;
    first = __float_as_uint(high);  // more by kFirst's bits
    second = __float_as_uint(low);  // more by c's
    rest = left - (low - c);
  }
};

// 64 bits by two native additions: one of 64 in shared memory is a loop of compare and swap.
__device__ void add_in_shared(Sum* sum, Sum value) {
  auto* words = reinterpret_cast<unsigned*>(sum);
  const auto low = static_cast<unsigned>(value);
  const unsigned before = atomicAdd(words, low);
  const unsigned high = static_cast<unsigned>(value >> 32) + (before + low < low ? 1 : 0);
  if (high != 0) atomicAdd(words + 1, high);
}

// Adds the block's points to sums (k × dim, zeros before). A group of lanes, one a coordinate, walks its share of the order
// and adds to `sums` where a cluster ends: a few atomics a group instead of one a point.
__device__ void sum_points(const Layout& layout, const float* points, const int* labels,
                           const int* order, const unsigned* starts, const unsigned* counts,
                           int count, Sum* sums, int dim, const float* scales,
                           const FixedPoint& fixed) {
  const int groups = kThreads / layout.lanes;
  const int group = threadIdx.x / layout.lanes, lane = threadIdx.x % layout.lanes;
  const int begin = group * count / groups, end = (group + 1) * count / groups;
  if (group >= groups || begin == end) return;
  const int stride = 4 * layout.stride_quads;
  for (int t = lane; t < dim; t += layout.lanes) {
    const float scale = scales[t];
    for (int at = begin, j = labels[order[begin]]; at < end; ++j) {
      const int stop = min(end, static_cast<int>(starts[j] + counts[j]));
      if (stop <= at) continue;
      const auto members = static_cast<unsigned>(stop - at);
      unsigned first = 0, second = 0;
#pragma unroll 8
      for (; at < stop; ++at) {
        const Split split(points[order[at] * stride + t], scale, fixed.second);
        first += split.first;
        second += split.second;
      }
      const auto high = static_cast<int>(first - members * __float_as_uint(Split::kFirst)),
                 low = static_cast<int>(second - members * __float_as_uint(fixed.second));
      add_in_shared(&sums[j * dim + t], static_cast<Sum>(high * (1LL << fixed.second_bits) + low));
    }
  }
}

template <int Quads>
__global__ void __launch_bounds__(kThreads, 1) solve(Solve s) {
  extern __shared__ float4 points[];
  const Layout& layout = s.layout;
  const int k = s.k, dim = s.dim;
  float4* centroids = points + layout.points_per_block * layout.stride_quads;
  Sum* block_sums = reinterpret_cast<Sum*>(centroids + layout.padded_k * layout.quads);
  double* units = reinterpret_cast<double*>(block_sums + layout.cells);
  float* scales = reinterpret_cast<float*>(units + dim);
  int* labels = reinterpret_cast<int*>(scales + dim);
  unsigned* places = reinterpret_cast<unsigned*>(labels + layout.points_per_block);
  int* order = reinterpret_cast<int*>(places + layout.points_per_block);
  unsigned* starts = reinterpret_cast<unsigned*>(order + layout.points_per_block);
  unsigned* block_counts = starts + k;
  unsigned& block_changes = block_counts[k];
  unsigned& largest_move = block_counts[k + 1];  // bits of a non-negative float order like it
  float* point = reinterpret_cast<float*>(points);
  float* centroid = reinterpret_cast<float*>(centroids);
  const int stride = 4 * layout.stride_quads, width = 4 * layout.quads;

  const std::int64_t begin = static_cast<std::int64_t>(blockIdx.x) * layout.points_per_block;
  const int count = static_cast<int>(
      max(std::int64_t{0}, min(std::int64_t{layout.points_per_block}, s.n - begin)));
  for (int e = threadIdx.x; e < layout.points_per_block * stride; e += kThreads) point[e] = 0;
  for (int e = threadIdx.x; e < layout.padded_k * width; e += kThreads) {
    const int j = e / width, t = e % width;
    // Centroids past k are infinitely far.
    centroid[e] = j >= k ? INFINITY : t < dim ? s.initial[j * dim + t] : 0;
  }
  for (int i = threadIdx.x; i < count; i += kThreads) labels[i] = -1;
  for (int t = threadIdx.x; t < dim; t += kThreads) {
    scales[t] = s.fixed.scales[t];
    units[t] = 1 / (static_cast<double>(scales[t]) *
                    static_cast<double>(1LL << (kFirstBits + s.fixed.second_bits)));
  }
  const int first_rest = s.rest_sums == nullptr ? 0 : s.first_rests[blockIdx.x],
            end_rest = s.rest_sums == nullptr ? 0 : s.first_rests[blockIdx.x + 1];
  __syncthreads();
  for (int e = threadIdx.x; e < count * dim; e += kThreads)
    point[e / dim * stride + e % dim] = s.points[begin * dim + e];

  for (int c = threadIdx.x; c < layout.cells; c += kThreads) block_sums[c] = 0;
  for (int j = threadIdx.x; j < k + 2; j += kThreads) block_counts[j] = 0;
  __syncthreads();

  int iteration = 0;
  for (bool done = false; !done;) {
    const int changes =
        label_points<Quads>(layout, points, centroids, labels, places, block_counts, count, k);
    if (s.stop.min_changes > 0 && changes > 0) atomicAdd(&block_changes, changes);
    __syncthreads();
    sort_points(labels, places, block_counts, starts, order, count, k);
    sum_points(layout, point, labels, order, starts, block_counts, count, block_sums, dim, scales,
               s.fixed);
    __syncthreads();

    Sum* sums = s.sums + iteration % 3 * kCopies * layout.cells;
    Sum* rest_sums = s.rest_sums == nullptr ? nullptr : s.rest_sums + iteration % 3 * layout.cells;
    for (int r = first_rest + static_cast<int>(threadIdx.x); r < end_rest; r += kThreads) {
      const Rest& rest = s.rests[r];
      const int cell = labels[rest.point - begin] * dim + rest.coordinate;
      atomicAdd(&rest_sums[cell], static_cast<Sum>(rest.value));
    }
    unsigned* counts = s.counts + iteration % 3 * (k + 1);
    // Adds the block's, and leaves zeros for the next iteration.
    for (int c = threadIdx.x; c < layout.cells; c += kThreads) {
      if (block_sums[c] != 0)
        atomicAdd(&sums[static_cast<int>(blockIdx.x % kCopies) * layout.cells + c], block_sums[c]);
      block_sums[c] = 0;
    }
    for (int j = threadIdx.x; j <= k; j += kThreads) {
      if (block_counts[j] > 0) atomicAdd(&counts[j], block_counts[j]);
      block_counts[j] = 0;
    }
    if (threadIdx.x == 0) largest_move = 0;
    ++iteration;
    wait_for_all_blocks(s.arrived, iteration * gridDim.x);

    // Nobody reads the set before last any more; it is added to after the next barrier but one.
    const int stale = (iteration + 1) % 3;
    const int thread = blockIdx.x * kThreads + threadIdx.x, threads = gridDim.x * kThreads;
    for (int c = thread; c < layout.cells; c += threads) {
      for (int copy = 0; copy < kCopies; ++copy)
        s.sums[(stale * kCopies + copy) * layout.cells + c] = 0;
      if (s.rest_sums != nullptr) s.rest_sums[stale * layout.cells + c] = 0;
    }
    for (int j = thread; j <= k; j += threads) s.counts[stale * (k + 1) + j] = 0;
    const auto mean = [&](int c, unsigned members) {
      Sum whole = 0;
#pragma unroll
      for (int copy = 0; copy < kCopies; ++copy) whole += __ldcg(&sums[copy * layout.cells + c]);
      auto sum = static_cast<double>(static_cast<long long>(whole));
      if (rest_sums != nullptr)
        sum +=
            static_cast<double>(static_cast<long long>(__ldcg(&rest_sums[c]))) * s.fixed.rest_scale;
      return static_cast<float>(sum * units[c % dim]) / static_cast<float>(members);
    };
    // Every block does the same divisions and takes the same decision: nothing to tell each other.
    if (s.stop.tolerance > 0) {
      for (int j = threadIdx.x; j < k; j += kThreads) {
        const unsigned members = __ldcg(&counts[j]);
        if (members == 0) continue;
        float move = 0;
        for (int t = 0; t < dim; ++t) {
          const float step = mean(j * dim + t, members) - centroid[j * width + t];
          move += step * step;
        }
        atomicMax(&largest_move, __float_as_uint(move));
      }
      __syncthreads();
    }
    for (int c = threadIdx.x; c < k * dim; c += kThreads) {
      const unsigned members = __ldcg(&counts[c / dim]);
      const float moved = mean(c, members);
      if (members > 0) centroid[c / dim * width + c % dim] = moved;
    }
    done = iteration == s.stop.iterations ||
           (s.stop.tolerance > 0 && sqrtf(__uint_as_float(largest_move)) < s.stop.tolerance) ||
           (s.stop.min_changes > 0 && __ldcg(&counts[k]) < s.stop.min_changes);
    __syncthreads();
  }

  for (int i = threadIdx.x; i < count; i += kThreads) s.labels[begin + i] = labels[i];
  if (blockIdx.x != 0) return;
  for (int c = threadIdx.x; c < k * dim; c += kThreads)
    s.centroids[c] = centroid[c / dim * width + c % dim];
  if (threadIdx.x == 0) *s.iterations = iteration;
}

// Set-up: of each coordinate the largest magnitude, and what split() leaves. Threads along x take coordinates.
__global__ void find_largest(const float* points, std::int64_t n, int dim, unsigned* largest) {
  for (int t = threadIdx.x; t < dim; t += blockDim.x) {
    float most = 0;
    for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.y + threadIdx.y; i < n;
         i += static_cast<std::int64_t>(gridDim.x) * blockDim.y)
      most = fmaxf(most, fabsf(points[i * dim + t]));
    atomicMax(&largest[t], __float_as_uint(most));
  }
}

// Lists in any order; counts those too that `list` has no room for.
__global__ void find_rests(const float* points, std::int64_t n, int dim, FixedPoint fixed,
                           Rest* list, unsigned room, unsigned* found) {
  const std::int64_t e = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (e >= n * dim) return;
  const auto t = static_cast<int>(e % dim);
  const float rest = Split(points[e], fixed.scales[t], fixed.second).rest;
  if (rest == 0) return;
  const unsigned at = atomicAdd(found, 1u);
  const double in_units =
      rest * static_cast<double>(1LL << (kFirstBits + fixed.second_bits)) / fixed.rest_scale;
  if (at < room) list[at] = {static_cast<int>(e / dim), t, __double2ll_rn(in_units)};
}

class Resident : public Version {
 public:
  void prepare(const Problem& problem, Context& context) override {
    problem_ = problem;
    layout_.emplace(problem, context.device);
    points_ = cuda::Buffer<float>(problem.points.size());
    initial_ = cuda::Buffer<float>(problem.centroids.size());
    centroids_ = cuda::Buffer<float>(problem.centroids.size());
    sums_ = cuda::Buffer<Sum>(3 * kCopies * problem.centroids.size());
    counts_ = cuda::Buffer<unsigned>(3 * static_cast<std::size_t>(problem.k + 1));
    labels_ = cuda::Buffer<std::int32_t>(static_cast<std::size_t>(problem.n));
    state_ = cuda::Buffer<int>(2);
    with_kernel([&](auto kernel) {
      LLOYD_CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                            static_cast<int>(layout_->bytes())));
    });
    {
      const auto phase = context.phase("transfer");
      points_.upload(problem.points, context.stream);
      LLOYD_CUDA_CHECK(cudaStreamSynchronize(context.stream));
    }
    placement_ = Placement::of<float>(problem, points_.data(), context.stream);
    placement_.centre(points_, context.stream);
    initial_.upload(placement_.centroids(), context.stream);
    choose_units(context.stream);
  }

  void run(Context& context) override {
    const auto phase = context.phase("solve");
    sums_.zero(context.stream);
    if (rest_sums_.size() > 0) rest_sums_.zero(context.stream);
    counts_.zero(context.stream);
    state_.zero(context.stream);
    Solve solve_arguments{
        .layout = *layout_,
        .points = points_.data(),
        .initial = initial_.data(),
        .centroids = centroids_.data(),
        .fixed = fixed_,
        .rests = rests_.data(),
        .first_rests = first_rests_.data(),
        .sums = sums_.data(),
        .rest_sums = rest_sums_.data(),
        .counts = counts_.data(),
        .labels = labels_.data(),
        .arrived = reinterpret_cast<unsigned*>(state_.data()),
        .iterations = state_.data() + 1,
        .n = problem_.n,
        .k = problem_.k,
        .dim = problem_.dim,
        .stop = problem_.stop,
    };
    void* arguments[] = {&solve_arguments};
    with_kernel([&](auto kernel) {
      LLOYD_CUDA_CHECK(cudaLaunchCooperativeKernel(
          kernel, dim3(static_cast<unsigned>(layout_->blocks)), dim3(kThreads), arguments,
          static_cast<std::size_t>(layout_->bytes()), context.stream));
    });
  }

  Solution fetch(Context& context) override {
    Solution solution;
    solution.labels.resize(labels_.size());
    std::vector<float> centroids(centroids_.size());
    int state[2];
    const auto phase = context.phase("transfer");
    state_.download(state, context.stream);
    labels_.download(solution.labels, context.stream);
    centroids_.download(centroids, context.stream);
    solution.iterations = state[1];
    solution.centroids = placement_.restored(centroids);
    return solution;
  }

 private:
  // Which integers the coordinates become, and the few of them (some 10 of 2 million normal ones) that two do not hold.
  void choose_units(cudaStream_t stream) {
    const auto dim = static_cast<std::size_t>(problem_.dim);
    cuda::Buffer<unsigned> largest(dim), found(1);
    largest.zero(stream);
    const auto lanes = static_cast<unsigned>(layout_->lanes);
    find_largest<<<256, dim3(lanes, 256 / lanes), 0, stream>>>(points_.data(), problem_.n,
                                                               problem_.dim, largest.data());
    LLOYD_CUDA_CHECK_LAUNCH();
    std::vector<unsigned> bits(dim);
    largest.download(bits, stream);
    std::vector<float> scales(dim);
    for (std::size_t t = 0; t < dim; ++t) {
      float most = 0;
      std::memcpy(&most, &bits[t], sizeof most);
      const int exponent = most > 0 && std::isfinite(most) ? std::ilogb(most) + 1 : 0;
      scales[t] = std::ldexp(1.0f, -std::max(exponent, -126));
    }
    scales_ = cuda::Buffer<float>(dim);
    scales_.upload(scales, stream);
    int n_bits = 0;
    while (std::int64_t{1} << n_bits < problem_.n) ++n_bits;
    fixed_ = {.scales = scales_.data(), .second_bits = std::min(kSecondBits, 40 - n_bits)};
    fixed_.second = std::ldexp(1.5f, 23 - kFirstBits - fixed_.second_bits);
    fixed_.rest_scale = std::ldexp(1.0, n_bits - 62);
    unsigned count = 0, room = 4096;
    for (;; room = count) {
      rests_ = cuda::Buffer<Rest>(room);
      found.zero(stream);
      find_rests<<<cuda::blocks_for(problem_.n * problem_.dim, 256), 256, 0, stream>>>(
          points_.data(), problem_.n, problem_.dim, fixed_, rests_.data(), room, found.data());
      LLOYD_CUDA_CHECK_LAUNCH();
      found.download({&count, 1}, stream);
      if (count <= room) break;
    }
    rest_sums_ = {};
    if (count == 0) return;
    std::vector<Rest> rests(room);
    rests_.download(rests, stream);
    rests.resize(count);
    std::sort(rests.begin(), rests.end(),
              [](const Rest& a, const Rest& b) { return a.point < b.point; });
    std::vector<int> first_rests;
    for (int block = 0; block <= layout_->blocks; ++block)
      first_rests.push_back(
          static_cast<int>(std::partition_point(rests.begin(), rests.end(),
                                                [&](const Rest& rest) {
                                                  return rest.point < std::int64_t{block} *
                                                                          layout_->points_per_block;
                                                }) -
                           rests.begin()));
    rests_.upload(rests, stream);
    first_rests_ = cuda::Buffer<int>(first_rests.size());
    first_rests_.upload(first_rests, stream);
    rest_sums_ = cuda::Buffer<Sum>(3 * problem_.centroids.size());
    LLOYD_CUDA_CHECK(cudaStreamSynchronize(stream));
  }

  template <typename Body>
  void with_kernel(Body&& body) {
    switch (layout_->quads) {
      case 1:
        return body(solve<1>);
      case 2:
        return body(solve<2>);
      case 4:
        return body(solve<4>);
      case 8:
        return body(solve<8>);
      default:
        return body(solve<0>);
    }
  }

  Problem problem_;
  Placement placement_;
  std::optional<Layout> layout_;
  FixedPoint fixed_{};
  cuda::Buffer<float> points_, initial_, centroids_, scales_;
  cuda::Buffer<Sum> sums_, rest_sums_;
  cuda::Buffer<Rest> rests_;
  cuda::Buffer<int> first_rests_;
  cuda::Buffer<unsigned> counts_;
  cuda::Buffer<std::int32_t> labels_;
  cuda::Buffer<int> state_;  // blocks at the barrier, iterations done
};
#endif

LLOYD_CUDA_VERSION(
    Resident,
    {.name = "fast_resident",
     .family = "fast",
     .backend = Backend::cuda,
     .parent = "luigi_v4_device_update",
     .precisions = {Precision::fp32},
     .distance = Distance::direct,
     .reproducible = true,
     .summary = "small n: one launch for the whole solve, points resident in shared memory",
     .unsupported = [](const Problem& problem, const Tunables&,
                       const DeviceLimits& device) -> std::optional<std::string> {
       const Layout layout(problem, device);
       constexpr int kMost = (1 << (31 - kFirstBits)) - 1;
       if (layout.points_per_group() > kMost)
         return "adds up at most " + with_commas(kMost) + " points in 32 bits, not " +
                with_commas(layout.points_per_group());
       return optin_shared_shortfall(layout.bytes(), device);
     }});

}  // namespace
}  // namespace lloyd::fast
