// Set-up: which integers the coordinates become, and the few of them that two integers do not hold.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "kernels/core/cuda.h"
#include "kernels/fast/lib/exact_sum.cuh"
#include "kernels/fast/resident/layout.h"

namespace lloyd::fast {
namespace {

using exact::Sum;

/// What a Split leaves of a coordinate that is small beside the largest: about 10 of 2 million
/// normal ones. They are added to sums of their own.
struct Rest {
  int point, coordinate;
  long long value;
};

/// Finds the largest magnitude of each coordinate, as bits. Threads along x take coordinates.
__global__ void find_largest(const float* points, std::int64_t n, int dim, unsigned* largest) {
  for (int t = threadIdx.x; t < dim; t += blockDim.x) {
    float most = 0;
    for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.y + threadIdx.y; i < n;
         i += static_cast<std::int64_t>(gridDim.x) * blockDim.y)
      most = fmaxf(most, fabsf(points[i * dim + t]));
    atomicMax(&largest[t], __float_as_uint(most));
  }
}

/// Lists the rests in any order. Counts those too that `list` has no room for.
__global__ void find_rests(const float* points, std::int64_t n, int dim,
                           exact::SplitUnits split_units, Rest* list, unsigned room,
                           unsigned* found) {
  const std::int64_t e = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (e >= n * dim) return;
  const auto t = static_cast<int>(e % dim);
  const float rest = exact::Split(points[e], split_units.scales[t], split_units.second).rest;
  if (rest == 0) return;
  const unsigned at = atomicAdd(found, 1u);
  const double in_units =
      rest * static_cast<double>(1LL << (exact::kFirstBits + split_units.second_bits)) /
      split_units.rest_scale;
  if (at < room) list[at] = {static_cast<int>(e / dim), t, __double2ll_rn(in_units)};
}

struct Units {
  cuda::Buffer<float> scales;
  exact::SplitUnits split_units{};
  cuda::Buffer<Rest> rests;       // by point
  cuda::Buffer<int> first_rests;  // of each block, and their end
  bool has_rests = false;

  Units() = default;
  Units(const cuda::Buffer<float>& points, const Problem& problem, const Layout& layout,
        cudaStream_t stream)
      : scales(static_cast<std::size_t>(problem.dim)) {
    choose_scales(points, problem, layout, stream);
    const std::vector<Rest> found = all_rests(points, problem, stream);
    has_rests = !found.empty();
    if (!has_rests) return;
    rests.upload(found, stream);
    std::vector<int> first;
    for (int block = 0; block <= layout.blocks; ++block) {
      const auto is_before = [&](const Rest& rest) {
        return rest.point < std::int64_t{block} * layout.points_per_block;
      };
      first.push_back(static_cast<int>(std::partition_point(found.begin(), found.end(), is_before) -
                                       found.begin()));
    }
    first_rests = cuda::Buffer<int>(first.size());
    first_rests.upload(first, stream);
    LLOYD_CUDA_CHECK(cudaStreamSynchronize(stream));
  }

 private:
  void choose_scales(const cuda::Buffer<float>& points, const Problem& problem,
                     const Layout& layout, cudaStream_t stream) {
    const auto dim = static_cast<std::size_t>(problem.dim);
    cuda::Buffer<unsigned> largest(dim);
    largest.zero(stream);
    const auto lanes = static_cast<unsigned>(layout.lanes);
    find_largest<<<256, dim3(lanes, 256 / lanes), 0, stream>>>(points.data(), problem.n,
                                                               problem.dim, largest.data());
    LLOYD_CUDA_CHECK_LAUNCH();
    std::vector<unsigned> bits(dim);
    largest.download(bits, stream);
    std::vector<float> powers(dim);
    for (std::size_t t = 0; t < dim; ++t) {
      float most = 0;
      std::memcpy(&most, &bits[t], sizeof most);
      powers[t] = std::ldexp(1.0f, -std::max(exact::exponent_above(most), -126));
    }
    scales.upload(powers, stream);
    int n_bits = 0;
    while (std::int64_t{1} << n_bits < problem.n) ++n_bits;
    split_units = {.scales = scales.data(),
                   .second_bits = std::min(exact::kSecondBits, 40 - n_bits)};
    split_units.second = std::ldexp(1.5f, 23 - exact::kFirstBits - split_units.second_bits);
    split_units.rest_scale = std::ldexp(1.0, n_bits - 62);
  }

  // Sorted by point. Leaves `rests` with room for them.
  std::vector<Rest> all_rests(const cuda::Buffer<float>& points, const Problem& problem,
                              cudaStream_t stream) {
    cuda::Buffer<unsigned> counter(1);
    unsigned count = 0, room = 4096;
    for (;; room = count) {
      rests = cuda::Buffer<Rest>(room);
      counter.zero(stream);
      find_rests<<<cuda::blocks_for(problem.n * problem.dim, 256), 256, 0, stream>>>(
          points.data(), problem.n, problem.dim, split_units, rests.data(), room, counter.data());
      LLOYD_CUDA_CHECK_LAUNCH();
      counter.download({&count, 1}, stream);
      if (count <= room) break;
    }
    if (count == 0) return {};
    std::vector<Rest> found(room);
    rests.download(found, stream);
    found.resize(count);
    std::sort(found.begin(), found.end(),
              [](const Rest& a, const Rest& b) { return a.point < b.point; });
    return found;
  }
};

}  // namespace
}  // namespace lloyd::fast
