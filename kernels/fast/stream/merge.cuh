// Sorts more points along the curve than the device can hold: runs of them are sorted one by one
// and kept on the host, and then merged range by range.
//
// A range of the whole order is a piece of each run. split_runs() finds where the pieces begin, by
// reading a few points of each run over the link. The pieces are brought to the device and sorted
// again. Runs follow each other as the caller's points do, and the sort is stable, so points in one
// cell of the curve are in the caller's order: the whole order is that of one sort of all points.
#pragma once

#include <cstdint>

#include "kernels/core/host_memory.h"
#include "kernels/fast/grid/build.cuh"
#include "kernels/fast/stream/merge_sizes.h"

namespace lloyd::fast {
namespace {

/// Sorted runs of `length` points each, except for the last one, in mapped memory.
struct Runs {
  float* points;  // of each run [D][length]
  unsigned* ids;  // [n]: the caller's indices
  std::int64_t n, length;
  int count;

  __device__ std::int64_t size(int run) const { return min(n - run * length, length); }
  template <int D>
  __device__ float* coordinate(int run, int t, std::int64_t i) const {
    return points + (static_cast<std::int64_t>(run) * D + t) * length + i;
  }
};

struct RunsMemory {
  cuda::MappedBuffer<float> points;
  cuda::MappedBuffer<unsigned> ids;
  std::int64_t length;

  RunsMemory(std::int64_t n, int dim, std::int64_t length)
      : points(static_cast<std::size_t>((n + length - 1) / length * length * dim)),
        ids(static_cast<std::size_t>(n)),
        length(length) {}
  Runs view() const {
    const auto n = static_cast<std::int64_t>(ids.size());
    return {points.data(), ids.data(), n, length, static_cast<int>((n + length - 1) / length)};
  }
};

/// Writes a run from row-major points on the device and their order along the curve.
template <int D>
__global__ void write_run(const float* points, const unsigned* order, Runs runs, int run) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= runs.size(run)) return;
  const std::int64_t from = order[i];
  for (int t = 0; t < D; ++t) *runs.coordinate<D>(run, t, i) = points[from * D + t];
  runs.ids[run * runs.length + i] = static_cast<unsigned>(run * runs.length + from);
}

/// The first point of [low, high) in a run whose place is not before `place`, or `high`.
template <int D>
__device__ unsigned first_not_before(const Runs& runs, int run, Key place, unsigned low,
                                     unsigned high, const int* box) {
  while (low < high) {
    const unsigned middle = low + (high - low) / 2;
    if (place_of<D>(runs.coordinate<D>(run, 0, middle), runs.length, box) < place)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/// Block b writes how many points of each run are among the first b · range of the whole order, to
/// splits[b][runs]. The place of the first point behind them is found bit by bit. Of points at that
/// very place, those of earlier runs come first.
template <int D>
__global__ void __launch_bounds__(kMostRuns)
    split_runs(Runs runs, std::int64_t range, const int* box, unsigned* splits) {
  __shared__ unsigned long long before[64];  // points before the place that is tried
  __shared__ unsigned certain[kMostRuns], possible[kMostRuns];
  const int run = static_cast<int>(threadIdx.x);
  const auto wanted =
      static_cast<unsigned long long>(min(static_cast<std::int64_t>(blockIdx.x) * range, runs.n));
  if (run < 64) before[run] = 0;
  __syncthreads();
  unsigned low = 0, high = run < runs.count ? static_cast<unsigned>(runs.size(run)) : 0;
  Key place = 0;
  for (int bit = kBits<D> * D - 1; bit >= 0; --bit) {
    const Key tried = place | Key{1} << bit;
    const unsigned at =
        run < runs.count ? first_not_before<D>(runs, run, tried, low, high, box) : 0;
    if (run < runs.count) atomicAdd(before + bit, at);
    __syncthreads();
    if (before[bit] <= wanted) {
      place = tried;
      low = at;
    } else {
      high = at;
    }
  }
  // low: those before the place; high: and those at it.
  certain[run] = low;
  possible[run] = high;
  __syncthreads();
  if (run != 0) return;
  unsigned long long left = wanted;
  for (int r = 0; r < runs.count; ++r) left -= certain[r];
  for (int r = 0; r < runs.count; ++r) {
    const auto more =
        static_cast<unsigned>(min(left, static_cast<unsigned long long>(possible[r] - certain[r])));
    splits[static_cast<std::int64_t>(blockIdx.x) * runs.count + r] = certain[r] + more;
    left -= more;
  }
}

/// Brings the pieces from[run] to to[run] of all runs to the device, one after another: row-major
/// points, and their indices. The blocks along y take a run each.
template <int D>
__global__ void gather_pieces(Runs runs, const unsigned* from, const unsigned* to, float* points,
                              unsigned* ids) {
  __shared__ unsigned before;  // points of earlier runs
  const int run = static_cast<int>(blockIdx.y);
  if (threadIdx.x == 0) before = 0;
  __syncthreads();
  for (int r = static_cast<int>(threadIdx.x); r < run; r += static_cast<int>(blockDim.x))
    atomicAdd(&before, to[r] - from[r]);
  __syncthreads();
  for (std::int64_t i =
           from[run] + static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
       i < to[run]; i += static_cast<std::int64_t>(gridDim.x) * blockDim.x) {
    const std::int64_t at = before + i - from[run];
    for (int t = 0; t < D; ++t) points[at * D + t] = *runs.coordinate<D>(run, t, i);
    ids[at] = runs.ids[run * runs.length + i];
  }
}

/// out[i] = values[order[i]].
__global__ void permute(const unsigned* values, const unsigned* order, std::int64_t count,
                        unsigned* out) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) out[i] = values[order[i]];
}

}  // namespace
}  // namespace lloyd::fast
