#include <algorithm>
#include <vector>

#include "kernels/core/reference_screen.cuh"
#include "kernels/core/reference_search.h"
#include "kernels/core/screen_bound.h"
#include "kernels/core/transfer.h"

namespace lloyd::cuda {
namespace {

using namespace screen;

constexpr std::int64_t kChunk = std::int64_t{1} << 24;  // points per launch

// The search in float64: a lane per point, and each warp has centroids of its own.
constexpr int kExactWarps = 8, kExactOwn = 16, kExactCentroids = kExactWarps * kExactOwn;
constexpr int kExactDeep = 32;
constexpr unsigned kExactBlocks = 4096;

/// What a search finds, and points of a chunk whose label fp32 leaves open, in no order.
struct Answer {
  std::int32_t* labels;
  double* distances;
  int* open;  // relative to the chunk's first
  int* open_count;
};

// The _rn intrinsics keep nvcc from contracting to FMA, because the bits must be those of the CPU's
// reference.
__device__ void add_square(double& sum, double difference) {
  sum = __dadd_rn(sum, __dmul_rn(difference, difference));
}

// A warp for each centroid.
__global__ void __launch_bounds__(32)
    prepare_kernel(const double* centroids, int k, int dim, Screen screen) {
  const int j = static_cast<int>(blockIdx.x), lane = static_cast<int>(threadIdx.x);
  float* const row = screen.centroids +
                     std::int64_t{j / kTileCentroids} * screen.deep * kTileCentroids +
                     j % kTileCentroids;
  double square = 0;
  for (int t = lane; t < screen.deep; t += 32) {
    const bool exists = j < k && t < dim;
    const double difference =
        exists ? centroids[std::int64_t{j} * dim + t] - static_cast<double>(screen.centre[t]) : 0;
    row[std::int64_t{t} * kTileCentroids] = static_cast<float>(difference);
    square += difference * difference;
  }
  for (int step = 16; step > 0; step /= 2) square += __shfl_xor_sync(~0u, square, step);
  if (lane != 0) return;
  screen.halves[j] = j < k ? static_cast<float>(square / 2) : INFINITY;
  // The order of floats that are not negative is that of their bits.
  if (j < k)
    atomicMax(reinterpret_cast<int*>(screen.largest),
              __float_as_int(__double2float_ru(sqrt(square))));
}

// Writes the label of a point and the distance to it, or that the label is open.
__device__ void decide(const Points& points, std::int64_t first, std::int64_t i,
                       const double* centroids, const Screen& screen, const Found& found,
                       const Answer& answer) {
  const double* const centroid = centroids + std::int64_t{found.label} * points.dim;
  double distance = 0, norm = 0;
#pragma unroll 8
  for (int t = 0; t < points.dim; ++t) {
    const double x = points(i, t), y = x - screen.centre[t];
    add_square(distance, x - centroid[t]);
    norm += y * y;
  }
  if (ScreenBound(points.dim).certain(found.best, found.second, norm, distance, *screen.largest)) {
    answer.labels[i] = found.label;
    answer.distances[i] = distance;
  } else {
    answer.open[atomicAdd(answer.open_count, 1)] = static_cast<int>(i - first);
  }
}

// Finds the labels of points [first, end) in fp32. Where the label is certain, only one distance is
// computed in float64.
template <int kDeep>
__global__ void __launch_bounds__(kThreads, 2)
    screen_kernel(Points points, std::int64_t first, std::int64_t end, const double* centroids,
                  Screen screen, Answer answer) {
  __shared__ __align__(16) Slice<kDeep> slices[2];
  __shared__ Found found_by_point[kTilePoints];
  const std::int64_t block_first = first + std::int64_t{blockIdx.x} * kTilePoints;
  Slices<kDeep> source(points, screen, block_first);
  Found found[kOwnPoints];
#pragma unroll
  for (Found& each : found) each = Found::none();
  int parity = 0;
  source.load();
  for (int tile = 0; tile < screen.tiles; ++tile) {
    float products[kOwnPoints][kOwnCentroids] = {};
    for (int slice = 0; slice < screen.deep; slice += kDeep) {
      // The other slice may still be in use, but this one is not: since it was, all threads have
      // passed a barrier.
      source.store(slices[parity]);
      __syncthreads();
      source.load();
      add_products(slices[parity], products);
      parity ^= 1;
    }
#pragma unroll
    for (int c = 0; c < kOwnCentroids; ++c) {
      const int j = tile * kTileCentroids + centroid_of(c);
      const float half = screen.halves[j];
#pragma unroll
      for (int p = 0; p < kOwnPoints; ++p) found[p].add(half - products[p][c], j);
    }
  }
  // The lanes with the same points have other centroids.
#pragma unroll
  for (int p = 0; p < kOwnPoints; ++p) {
#pragma unroll
    for (int step = 8; step < 32; step *= 2) {
      const Found& own = found[p];
      found[p].add(Found{__shfl_xor_sync(~0u, own.best, step),
                         __shfl_xor_sync(~0u, own.second, step),
                         __shfl_xor_sync(~0u, own.label, step)});
    }
    if (threadIdx.x % 32 < 8) found_by_point[point_of(p)] = found[p];
  }
  __syncthreads();
  for (int p = static_cast<int>(threadIdx.x); p < kTilePoints; p += kThreads)
    if (block_first + p < end)
      decide(points, first, block_first + p, centroids, screen, found_by_point[p], answer);
}

// Finds the labels of the open points in float64. The host need not wait for their number.
__global__ void __launch_bounds__(kExactWarps * 32)
    exact_kernel(Points points, std::int64_t first, const double* centroids, int k, Answer answer) {
  __shared__ __align__(16) double tile[kExactDeep][kExactCentroids + 2];  // 2: fewer bank conflicts
  __shared__ float coordinates[kExactDeep][32];
  __shared__ double bests[kExactWarps][32];
  __shared__ int labels[kExactWarps][32];
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int count = *answer.open_count;
  for (int own = static_cast<int>(blockIdx.x) * 32 + lane; own - lane < count;
       own += static_cast<int>(gridDim.x) * 32) {
    const std::int64_t i = first + answer.open[min(own, count - 1)];
    double best = INFINITY;
    int label = 0;
    for (int pass = 0; pass < k; pass += kExactCentroids) {
      const int own_first = pass + warp * kExactOwn;
      double distance[kExactOwn] = {};
      for (int slice = 0; slice < points.dim; slice += kExactDeep) {
        const int deep = min(kExactDeep, points.dim - slice);
        __syncthreads();
        for (int t = warp; t < deep; t += kExactWarps) coordinates[t][lane] = points(i, slice + t);
        for (int c = warp; c < kExactCentroids; c += kExactWarps)
          if (lane < deep)
            tile[lane][c] =
                centroids[std::int64_t{min(pass + c, k - 1)} * points.dim + slice + lane];
        __syncthreads();
        if (own_first >= k) continue;
#pragma unroll 2
        for (int t = 0; t < deep; ++t) {
          const double x = coordinates[t][lane];
#pragma unroll
          for (int j = 0; j < kExactOwn; ++j)
            add_square(distance[j], x - tile[t][warp * kExactOwn + j]);
        }
      }
#pragma unroll
      for (int j = 0; j < kExactOwn; ++j)
        if (own_first + j < k && distance[j] < best) {
          best = distance[j];
          label = own_first + j;
        }
    }
    bests[warp][lane] = best;
    labels[warp][lane] = label;
    __syncthreads();
    if (warp != 0 || own >= count) continue;
    for (int w = 1; w < kExactWarps; ++w)
      if (bests[w][lane] < best || (bests[w][lane] == best && labels[w][lane] < label)) {
        best = bests[w][lane];
        label = labels[w][lane];
      }
    answer.labels[i] = label;
    answer.distances[i] = best;
  }
}

int filled_up(int size, int multiple) { return (size + multiple - 1) / multiple * multiple; }

template <typename T>
void make_room(Buffer<T>& buffer, std::size_t size) {
  if (buffer.size() < size) buffer = Buffer<T>(size);
}

}  // namespace

NearestSearch::NearestSearch(std::span<const float> points, std::int64_t n, int dim)
    : n_(n),
      dim_(dim),
      columns_(points.size() + kTilePoints),  // the last block reads all points of its tile
      labels_(static_cast<std::size_t>(n)),
      distances_(labels_.size()),
      open_(static_cast<std::size_t>(std::min(n, kChunk))),
      open_count_(1),
      centre_(static_cast<std::size_t>(filled_up(dim, deep_of(dim)))),
      largest_(1) {
  LLOYD_CUDA_CHECK(cudaMemset(columns_.data() + points.size(), 0, kTilePoints * sizeof(float)));
  upload_columns(points, n, dim, columns_.data(), nullptr);
}

void NearestSearch::run(std::span<const double> centroids, int k) {
  const int tiles = filled_up(k, kTileCentroids) / kTileCentroids,
            deep = filled_up(dim_, deep_of(dim_));
  const auto rows = static_cast<std::size_t>(tiles) * kTileCentroids;
  make_room(centroids_, centroids.size());
  make_room(packed_, rows * static_cast<std::size_t>(deep));
  make_room(halves_, rows);
  std::vector<float> centre = screen_centre(centroids, k, dim_);
  centre.resize(centre_.size());
  centroids_.upload(centroids, nullptr);
  centre_.upload(centre, nullptr);
  largest_.zero(nullptr);
  const Screen prepared{packed_.data(), halves_.data(), largest_.data(),
                        centre_.data(), tiles,          deep};
  prepare_kernel<<<static_cast<unsigned>(rows), 32>>>(centroids_.data(), k, dim_, prepared);
  LLOYD_CUDA_CHECK_LAUNCH();

  const auto screen_points = deep_of(dim_) == 2 ? screen_kernel<2> : screen_kernel<8>;
  const Points points{columns_.data(), n_, dim_};
  const Answer answer{labels_.data(), distances_.data(), open_.data(), open_count_.data()};
  for (std::int64_t first = 0; first < n_; first += kChunk) {
    const std::int64_t end = std::min(first + kChunk, n_);
    open_count_.zero(nullptr);
    screen_points<<<blocks_for(end - first, kTilePoints), kThreads>>>(
        points, first, end, centroids_.data(), prepared, answer);
    LLOYD_CUDA_CHECK_LAUNCH();
    exact_kernel<<<std::min(blocks_for(end - first, 32), kExactBlocks), kExactWarps * 32>>>(
        points, first, centroids_.data(), k, answer);
    LLOYD_CUDA_CHECK_LAUNCH();
  }
}

}  // namespace lloyd::cuda
