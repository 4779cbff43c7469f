// What fast_assign and fast_private share: several points of few dimensions in a thread's registers, the nearest of all
// centroids by brute force, and the loop around them.
#pragma once

#include <cmath>
#include <cstring>
#include <type_traits>
#include <vector>

#include "kernels/core/cuda.h"
#include "kernels/core/version.h"
#include "kernels/fast/placement.cuh"
#include "kernels/fast/small_limits.h"

namespace lloyd::fast {

// The table of table_bytes(): of each group of 4·Quads centroids its D rows of −2·c[t] and its row of ‖c‖², so that four
// centroids are one 16-byte read and all reads of a group have one base. Centroids past k have the score infinity.
template <int D, int Quads>
__device__ void fill_table(float4* table, int quads, const float* centroids, int k, int dim) {
  constexpr int kRow = 4 * Quads;
  float* terms = reinterpret_cast<float*>(table);
  for (int j = threadIdx.x; j < 4 * quads; j += blockDim.x) {
    float* group = terms + j / kRow * (D + 1) * kRow + j % kRow;
    float norm = j < k ? 0.0f : INFINITY;
#pragma unroll
    for (int t = 0; t < D; ++t) {
      const float c = j < k && t < dim ? centroids[j * dim + t] : 0.0f;
      group[t * kRow] = -2 * c;
      norm = fmaf(c, c, norm);
    }
    group[D * kRow] = norm;
  }
}

/// ‖c‖² − 2 c·x of the q-th four centroids of a group. Always these operations in this order: the same bits wherever it is
/// asked.
template <int D, int Quads>
__device__ __forceinline__ void read_terms(const float4* group, int q, float4 (&terms)[D + 1]) {
#pragma unroll
  for (int t = 0; t <= D; ++t) terms[t] = group[t * Quads + q];
}
template <int D>
__device__ __forceinline__ float4 scores(const float4 (&terms)[D + 1], const float (&x)[D]) {
  float4 s = terms[D];
#pragma unroll
  for (int t = 0; t < D; ++t) {
    s.x = fmaf(terms[t].x, x[t], s.x);
    s.y = fmaf(terms[t].y, x[t], s.y);
    s.z = fmaf(terms[t].z, x[t], s.z);
    s.w = fmaf(terms[t].w, x[t], s.w);
  }
  return s;
}

/// The nearest centroid of each of a thread's P points, the lowest index among equal scores. The minimum is kept for groups
/// of 4·Quads centroids, little more than one operation a score instead of the three of compare and select twice; which
/// one of the winning group it was is found by computing that group's scores again.
template <int D, int P, int Quads>
__device__ __forceinline__ void nearest(const float4* table, int quads, const float (&x)[P][D],
                                        int (&label)[P]) {
  float best[P];
  int winner[P];
#pragma unroll
  for (int p = 0; p < P; ++p) {
    best[p] = INFINITY;
    winner[p] = 0;
  }
  const int groups = quads / Quads;
  for (int g = 0; g < groups; ++g) {
    const float4* group = table + g * (D + 1) * Quads;
    float smallest[P];
#pragma unroll
    for (int q = 0; q < Quads; ++q) {
      float4 terms[D + 1];
      read_terms<D, Quads>(group, q, terms);
#pragma unroll
      for (int p = 0; p < P; ++p) {
        const float4 s = scores<D>(terms, x[p]);
        const float least = fminf(fminf(s.x, s.y), fminf(s.z, s.w));
        smallest[p] = q == 0 ? least : fminf(smallest[p], least);
      }
    }
#pragma unroll
    for (int p = 0; p < P; ++p) {
      if (smallest[p] < best[p]) winner[p] = g;
      best[p] = fminf(best[p], smallest[p]);
    }
  }
#pragma unroll
  for (int p = 0; p < P; ++p) {
    const float4* group = table + winner[p] * (D + 1) * Quads;
    int within = 0;  // stays when every score is NaN
#pragma unroll
    for (int q = Quads - 1; q >= 0; --q) {
      float4 terms[D + 1];
      read_terms<D, Quads>(group, q, terms);
      const float4 s = scores<D>(terms, x[p]);
      if (s.w == best[p]) within = 4 * q + 3;
      if (s.z == best[p]) within = 4 * q + 2;
      if (s.y == best[p]) within = 4 * q + 1;
      if (s.x == best[p]) within = 4 * q;
    }
    label[p] = winner[p] * 4 * Quads + within;
  }
}

/// A block's tile of blockDim.x·P points, of which each thread has P. Two-dimensional points go in pairs, 16 bytes a read.
template <int D, int P>
struct Tile {
  static constexpr int kPair = D == 2 && P % 2 == 0 ? 2 : 1;
  std::int64_t first;  // point
  int points;          // up to blockDim.x·P: the last tile is ragged

  __device__ Tile(std::int64_t tile, std::int64_t n)
      : first(tile * blockDim.x * P),
        points(static_cast<int>(min(n - first, static_cast<std::int64_t>(blockDim.x) * P))) {}

  __device__ bool is_full() const { return points == blockDim.x * P; }

  /// Where in the tile the thread's p-th point is.
  __device__ int at(int p) const {
    return (p / kPair * blockDim.x + threadIdx.x) * kPair + p % kPair;
  }

  __device__ __forceinline__ void load(float (&x)[P][D], const float* all, int dim) const {
    const float* tile = all + first * dim;
    if (dim == D && is_full()) {
#pragma unroll
      for (int p = 0; p < P; p += kPair) {
        if constexpr (D * kPair == 2) {
          const float2 v = reinterpret_cast<const float2*>(tile)[at(p)];
          x[p][0] = v.x;
          x[p][1] = v.y;
        } else {
          constexpr int kReads = D * kPair / 4;
#pragma unroll
          for (int r = 0; r < kReads; ++r) {
            const float4 v = reinterpret_cast<const float4*>(tile)[at(p) / kPair * kReads + r];
            x[p + 4 * r / D][4 * r % D] = v.x;
            x[p + 4 * r / D][4 * r % D + 1] = v.y;
            x[p + (4 * r + 2) / D][(4 * r + 2) % D] = v.z;
            x[p + (4 * r + 2) / D][(4 * r + 2) % D + 1] = v.w;
          }
        }
      }
    } else {
#pragma unroll
      for (int p = 0; p < P; ++p)
#pragma unroll
        for (int t = 0; t < D; ++t)
          x[p][t] =
              at(p) < points && t < dim ? tile[static_cast<std::int64_t>(at(p)) * dim + t] : 0;
    }
  }
};

/// Points in a thread of D coordinates each, but for registers at most `most`.
constexpr int points_per_thread(int padded_dim, int most) {
  return most * padded_dim <= kCoordinatesPerThread ? most : kCoordinatesPerThread / padded_dim;
}

/// Calls body with the padded dimension as an integral constant.
template <typename Body>
void with_padded_dim(int dim, Body&& body) {
  switch (padded_dim(dim)) {
    case 2:
      return body(std::integral_constant<int, 2>{});
    case 4:
      return body(std::integral_constant<int, 4>{});
    case 8:
      return body(std::integral_constant<int, 8>{});
    case 16:
      return body(std::integral_constant<int, 16>{});
    case 32:
      return body(std::integral_constant<int, 32>{});
  }
}

/// What an iteration says to the stopping rules, and its blocks to each other.
struct Flags {
  unsigned changes;  // points that changed cluster
  unsigned
      largest_move;  // bits of the largest squared move: a non-negative float orders like its bits
  unsigned blocks_done;  // zero between kernels
};

/// The loop, and what it needs whatever the kernels are.
class Small : public Version {
 public:
  void prepare(const Problem& problem, Context& context) override {
    problem_ = problem;
    points_ = cuda::Buffer<float>(problem.points.size());
    initial_ = cuda::Buffer<float>(problem.centroids.size());
    centroids_ = cuda::Buffer<float>(problem.centroids.size());
    flags_ = cuda::Buffer<Flags>(1);
    allocate(context);
    {
      const auto phase = context.phase("transfer");
      points_.upload(problem.points, context.stream);
      LLOYD_CUDA_CHECK(cudaStreamSynchronize(context.stream));
    }
    placement_ = Placement::of<float>(problem, points_.data(), context.stream);
    placement_.require_labels(problem, points_.data(), context.stream);
    placement_.centre(points_, context.stream);
    initial_.upload(placement_.centroids(), context.stream);
  }

  void run(Context& context) override {
    const Stop& stop = problem_.stop;
    const bool has_rule = stop.tolerance > 0 || stop.min_changes > 0;
    LLOYD_CUDA_CHECK(cudaMemcpyAsync(centroids_.data(), initial_.data(), initial_.bytes(),
                                     cudaMemcpyDeviceToDevice, context.stream));
    forget_labels(context);
    for (iterations_ = 0; iterations_ < stop.iterations;) {
      const auto iteration = context.iteration(iterations_);
      if (has_rule) flags_.zero(context.stream);
      step(context, has_rule || iterations_ + 1 == stop.iterations);
      ++iterations_;
      if (!has_rule) continue;
      const auto phase = context.phase("converge");
      Flags flags;
      flags_.download({&flags, 1}, context.stream);
      float squared = 0;
      std::memcpy(&squared, &flags.largest_move, sizeof squared);
      if (stop.tolerance > 0 && std::sqrt(squared) < stop.tolerance) break;
      if (static_cast<std::int64_t>(flags.changes) < stop.min_changes) break;
    }
  }

  Solution fetch(Context& context) override {
    Solution solution;
    solution.iterations = iterations_;
    std::vector<float> centroids(centroids_.size());
    const auto phase = context.phase("transfer");
    solution.labels = fetch_labels(context);
    centroids_.download(centroids, context.stream);
    solution.centroids = placement_.restored(centroids);
    return solution;
  }

 protected:
  virtual void allocate(Context& context) = 0;
  /// No point has a label yet.
  virtual void forget_labels(Context& context) = 0;
  /// One iteration, from centroids_ to centroids_, with flags_ where a stopping rule needs them. Labels are wanted of the
  /// last one, and where a rule may make any the last.
  virtual void step(Context& context, bool wants_labels) = 0;
  virtual std::vector<std::int32_t> fetch_labels(Context& context) = 0;

  Problem problem_;
  cuda::Buffer<float> points_, initial_, centroids_;  // placed
  cuda::Buffer<Flags> flags_;

 private:
  Placement placement_;
  int iterations_ = 0;
};

/// Blocks of a grid that lives through all tiles: as many as the device holds at a time, or as there are tiles.
template <typename Kernel>
int resident_blocks(Kernel kernel, int threads, std::int64_t shared_bytes, std::int64_t tiles,
                    const DeviceLimits& device) {
  LLOYD_CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                        static_cast<int>(shared_bytes)));
  int per_multiprocessor = 0;
  LLOYD_CUDA_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(
      &per_multiprocessor, kernel, threads, static_cast<std::size_t>(shared_bytes)));
  const std::int64_t resident = std::int64_t{per_multiprocessor} * device.multiprocessors;
  return static_cast<int>(std::min(std::max<std::int64_t>(resident, 1), tiles));
}

}  // namespace lloyd::fast
