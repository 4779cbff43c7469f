#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <climits>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>

#include "kernels/core/inertia_tolerance.h"
#include "kernels/core/limits.h"
#include "kernels/core/transfer.h"
#include "kernels/fast/lib/placement.h"
#include "kernels/fast/lib/warp.cuh"

namespace lloyd::fast {
namespace {

constexpr int kBlock = 256;
constexpr int kSample = 1024;  // points that require_labels() tries
constexpr int kTryBlock = 128;
constexpr int kTryDims = 32;  // of a tile of centroids

// The smallest and the largest value of each dimension. `least` and `most` start at the extremes.
// Threads along x take dimensions.
template <typename Given>
__global__ void find_ranges(const Given* points, std::int64_t n, int dim, int* least, int* most) {
  for (int t = threadIdx.x; t < dim; t += blockDim.x) {
    int low = INT_MAX, high = INT_MIN;
    for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.y + threadIdx.y; i < n;
         i += static_cast<std::int64_t>(gridDim.x) * blockDim.y) {
      const int value = ordered(static_cast<float>(points[i * dim + t]));
      low = min(low, value);
      high = max(high, value);
    }
    atomicMin(&least[t], low);
    atomicMax(&most[t], high);
  }
}

__global__ void centre_points(float* points, std::int64_t values, int dim, const float* centre) {
  const std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (at < values) points[at] -= centre[at % dim];
}

// One block for every step-th point of all problems of a batch, of n points each: how much farther
// away than the nearest centroid is the one that the expanded distance in fp32 finds? As a share of
// the latter's squared distance, from 0 to 1. Each thread takes a row of the tile, which is read
// coalesced into shared memory.
__global__ void __launch_bounds__(kTryBlock)
    try_labels(const float* points, std::int64_t step, std::int64_t n, int dim, const float* centre,
               float scale, const float* centroids, int k, float* shares) {
  __shared__ float tile[kTryBlock][kTryDims + 1];  // one more, so that rows differ in their bank
  __shared__ float placed[kTryDims];
  __shared__ float scores[kTryBlock];
  __shared__ double nearest[kTryBlock], labelled[kTryBlock];
  const int warp = threadIdx.x / kTryDims, lane = threadIdx.x % kTryDims;
  const float* point = points + blockIdx.x * step * dim;
  centroids += blockIdx.x * step / n * k * dim;
  float score = INFINITY;  // stays so where every score overflows: then the label is arbitrary
  double least = INFINITY, of_label = INFINITY;
  for (int first = 0; first < k; first += kTryBlock) {
    const int rows = min(kTryBlock, k - first);
    float norm = 0, product = 0;
    double distance = 0;
    for (int begin = 0; begin < dim; begin += kTryDims) {
      const int dims = min(kTryDims, dim - begin), t = begin + lane;
      if (lane < dims) {
        if (warp == 0) placed[lane] = (point[t] - centre[t]) * scale;
        for (int row = warp; row < rows; row += kTryBlock / kTryDims)
          tile[row][lane] = centroids[static_cast<std::int64_t>(first + row) * dim + t];
      }
      __syncthreads();
      for (int i = 0; i < dims; ++i) {
        const float x = placed[i], c = tile[threadIdx.x][i];
        norm = fmaf(c, c, norm);
        product = fmaf(x, c, product);
        const double difference = static_cast<double>(x) - c;
        distance = fma(difference, difference, distance);
      }
      __syncthreads();
    }
    if (static_cast<int>(threadIdx.x) >= rows) break;
    const float computed = fmaf(-2.0f, product, norm);
    if (computed < score) {
      score = computed;
      of_label = distance;
    }
    least = fmin(least, distance);
  }
  scores[threadIdx.x] = score;
  nearest[threadIdx.x] = least;
  labelled[threadIdx.x] = of_label;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int thread = 1; thread < kTryBlock; ++thread) {
    if (scores[thread] < score) {
      score = scores[thread];
      of_label = labelled[thread];
    }
    least = fmin(least, nearest[thread]);
  }
  shares[blockIdx.x] = of_label > least ? static_cast<float>(1 - least / of_label) : 0;
}

template <typename T>
float rounded_to(float value) {
  return static_cast<float>(static_cast<T>(value));
}

// Calls body(i, t) for coordinate number first + i of row-major centroids, of dimension t, for each
// i < count.
template <typename Body>
void for_coordinates(std::size_t first, std::size_t count, std::size_t dim, const Body& body) {
  for (std::size_t i = 0, t = first % dim; i < count; t = 0)
    for (const std::size_t end = std::min(count, i + dim - t); i < end; ++i, ++t) body(i, t);
}

}  // namespace

Ranges::Ranges(int dim, cudaStream_t stream)
    : low_(static_cast<std::size_t>(dim)), high_(static_cast<std::size_t>(dim)) {
  const std::vector<int> least(low_.size(), INT_MAX), most(low_.size(), INT_MIN);
  low_.upload(least, stream);
  high_.upload(most, stream);
  LLOYD_CUDA_CHECK(cudaStreamSynchronize(stream));  // before the vectors end
}

template <typename T>
void Ranges::add(const T* points, std::int64_t n, cudaStream_t stream) {
  unsigned columns = 1;  // threads along x
  while (columns < low_.size() && columns < 32) columns *= 2;
  find_ranges<<<1024, dim3(columns, kBlock / columns), 0, stream>>>(
      points, n, static_cast<int>(low_.size()), low_.data(), high_.data());
  LLOYD_CUDA_CHECK_LAUNCH();
}
template void Ranges::add<float>(const float*, std::int64_t, cudaStream_t);
template void Ranges::add<__half>(const __half*, std::int64_t, cudaStream_t);
template void Ranges::add<__nv_bfloat16>(const __nv_bfloat16*, std::int64_t, cudaStream_t);

void Ranges::combine(Exchange& exchange, cudaStream_t stream) {
  // A double holds every int. The smallest is the largest of the opposite.
  for (auto [buffer, sign] : {std::pair{&low_, -1.0}, std::pair{&high_, 1.0}}) {
    std::vector<int> own(buffer->size());
    buffer->download(own, stream);
    std::vector<double> values;
    for (const int value : own) values.push_back(sign * value);
    exchange.largest(values);
    for (std::size_t t = 0; t < own.size(); ++t) own[t] = static_cast<int>(sign * values[t]);
    buffer->upload(own, stream);
    LLOYD_CUDA_CHECK(cudaStreamSynchronize(stream));  // before the vector ends
  }
}

std::vector<std::pair<float, float>> Ranges::all(cudaStream_t stream) const {
  std::vector<int> least(low_.size()), most(low_.size());
  low_.download(least, stream);
  high_.download(most, stream);
  std::vector<std::pair<float, float>> ranges;
  for (std::size_t t = 0; t < least.size(); ++t)
    ranges.emplace_back(from_ordered(least[t]), from_ordered(most[t]));
  return ranges;
}

Placement Placement::of(const Problem& problem, const Ranges& ranges, cudaStream_t stream,
                        float (*round)(float)) {
  Placement placed;
  const auto dim = static_cast<std::size_t>(problem.dim);
  placed.given_ = problem.centroids;
  placed.centre_.assign(dim, 0);
  double squared_reach = 0;
  const std::vector<std::pair<float, float>> all = ranges.all(stream);
  for (std::size_t t = 0; t < dim; ++t) {
    const auto [a, b] = all[t];
    const float middle = a + (b - a) / 2;
    // Directions are scaled about the origin, and are within 1 of it.
    if (!problem.spherical && std::abs(middle) > 4 * ((b - a) / 2)) {
      placed.centre_[t] = round(middle);
      placed.is_centred_ = true;
    }
    const float farthest =
        std::max(std::abs(a - placed.centre_[t]), std::abs(b - placed.centre_[t]));
    placed.largest_ = std::max(placed.largest_, farthest);
    squared_reach += static_cast<double>(farthest) * farthest;
  }
  placed.reach_ = std::sqrt(squared_reach);
  std::vector<float> most(dim, 0);  // of each dimension, so that the loop is vectorised
  for (std::size_t row = 0; row < placed.given_.size(); row += dim)
    for (std::size_t t = 0; t < dim; ++t)
      most[t] = std::max(most[t], std::abs(placed.given_[row + t] - placed.centre_[t]));
  placed.largest_ = std::max(placed.largest_, *std::max_element(most.begin(), most.end()));
  return placed;
}

template <typename T>
Placement Placement::of(const Problem& problem, const Ranges& ranges, cudaStream_t stream) {
  return of(problem, ranges, stream, rounded_to<T>);
}
template Placement Placement::of<float>(const Problem&, const Ranges&, cudaStream_t);
template Placement Placement::of<__half>(const Problem&, const Ranges&, cudaStream_t);
template Placement Placement::of<__nv_bfloat16>(const Problem&, const Ranges&, cudaStream_t);

void Placement::place(std::size_t first, std::size_t count, float* placed) const {
  const float *given = given_.data() + first, *centre = centre_.data();
  for_coordinates(first, count, centre_.size(), [=, scale = scale_](std::size_t i, std::size_t t) {
    placed[i] = (given[i] - centre[t]) * scale;
  });
}

std::vector<float> Placement::centroids() const {
  std::vector<float> placed(given_.size());
  place(0, placed.size(), placed.data());
  return placed;
}

void Placement::upload_centroids(const cuda::Buffer<float>& to, cudaStream_t stream) const {
  const auto write = [&](void* chunk, std::size_t first, std::size_t bytes) {
    place(first / sizeof(float), bytes / sizeof(float), static_cast<float*>(chunk));
  };
  cuda::upload(write, given_.size_bytes(), to.data(), stream);
}

void Placement::require_labels(const Problem& problem, const float* points,
                               const cuda::Buffer<float>& centroids, cudaStream_t stream,
                               Exchange* exchange) const {
  const double allowed = inertia_tolerance(problem.precision);
  const std::int64_t n = problem.n * problem.batch, step = (n + kSample - 1) / kSample;
  const auto tried = static_cast<std::size_t>((n + step - 1) / step);
  cuda::Buffer<float> centre(centre_.size()), shares(tried);
  centre.upload(centre_, stream);
  try_labels<<<static_cast<unsigned>(tried), kTryBlock, 0, stream>>>(
      points, step, problem.n, problem.dim, centre.data(), scale_, centroids.data(), problem.k,
      shares.data());
  LLOYD_CUDA_CHECK_LAUNCH();
  std::vector<float> lost(tried);
  shares.download(lost, stream);
  double all[2] = {0, static_cast<double>(tried)};  // what labels lost, and how many
  for (const float share : lost) all[0] += share;
  if (exchange != nullptr) exchange->sum(all);
  const double mean = all[0] / all[1];
  if (!(mean > allowed)) return;
  char text[256];
  std::snprintf(text, sizeof text,
                "would label by rounding errors: points reach %.3g from the origin, and in fp32 "
                "the expanded distance loses %.3g%% of the squared distance of a label on average "
                "(allowed: %g%%), tried on ",
                reach_, 100 * mean, 100 * allowed);
  throw Unsupported(text + with_commas(static_cast<std::int64_t>(all[1])) + " points");
}

void Placement::centre(float* points, std::int64_t values, cudaStream_t stream) const {
  if (!is_centred_) return;
  cuda::Buffer<float> centre(centre_.size());
  centre.upload(centre_, stream);
  centre_points<<<cuda::blocks_for(values, kBlock), kBlock, 0, stream>>>(
      points, values, static_cast<int>(centre_.size()), centre.data());
  LLOYD_CUDA_CHECK_LAUNCH();
  LLOYD_CUDA_CHECK(cudaStreamSynchronize(stream));
}

void Placement::restore(const float* centroids, std::size_t first, std::size_t count,
                        double* to) const {
  if (centre_.empty()) {  // nothing was placed
    std::copy_n(centroids, count, to);
    return;
  }
  const float *given = given_.data() + first, *centre = centre_.data();
  for_coordinates(first, count, centre_.size(), [=, scale = scale_](std::size_t i, std::size_t t) {
    to[i] = centroids[i] == (given[i] - centre[t]) * scale
                ? static_cast<double>(given[i])
                : centre[t] + static_cast<double>(centroids[i]) / scale;
  });
}

std::vector<double> Placement::restored(std::span<const float> centroids) const {
  std::vector<double> all(centroids.size());
  restore(centroids.data(), 0, all.size(), all.data());
  return all;
}

std::vector<double> Placement::restored(const cuda::Buffer<float>& centroids,
                                        const Context& context) const {
  std::vector<double> all = context.centroid_memory(centroids.size());
  const auto receive = [&](const void* chunk, std::size_t at, std::size_t bytes) {
    const std::size_t first = at / sizeof(float);
    restore(static_cast<const float*>(chunk), first, bytes / sizeof(float), all.data() + first);
  };
  cuda::download(centroids.data(), centroids.bytes(), receive, context.stream);
  return all;
}

}  // namespace lloyd::fast
