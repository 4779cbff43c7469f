// Nearest on the current CUDA device. Every operation is the one that nearest_cpu.cpp does.
#include <bit>
#include <cmath>

#include "data/sources/draw_step.cuh"
#include "data/sources/seeding.h"
#include "kernels/core/cuda.h"
#include "kernels/core/transfer.h"

namespace lloyd::data {
namespace {

constexpr int kBlock = 256;

// A block of consider() compares kTile rows with kTile centres at a time, and each of its threads
// kEach of both.
constexpr int kSide = 16;  // threads along the rows, and along the centres
constexpr int kEach = 4;
constexpr int kTile = kSide * kEach;
constexpr int kDims = 16;  // dimensions in shared memory at a time
static_assert(kSide * kSide == kBlock);

/// A step of fewer rows gives each thread one row, so that there is work for the whole device.
constexpr std::int64_t kFewRows = 1 << 17;

/// There is no centre yet.
__global__ void forget_centers(RowsView rows) {
  const std::int64_t row = std::int64_t{blockIdx.x} * kBlock + threadIdx.x;
  if (row >= rows.n) return;
  rows.squared[row] = 1;
  rows.center[row] = -1;
}

/// Coordinate j of the new centre c goes to j · padded + c. Infinitely far centres fill up the last
/// tile.
__global__ void gather(RowsView rows, const std::int64_t* centers, std::int64_t count,
                       std::int64_t padded, float* coordinates) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kBlock + threadIdx.x;
  if (i >= padded * rows.dim) return;
  const std::int64_t j = i / padded, c = i % padded;
  coordinates[i] = c < count ? rows.columns[j * rows.n + centers[c]] : INFINITY;
}

/// Copies `dims` dimensions of kTile points, from `begin` on, to `tile`. The columns have `count`
/// points each, and the last one is repeated past the end. All loads come first, so that they do
/// not wait for each other.
__device__ void load_tile(const float* columns, std::int64_t count, std::int64_t begin, int dims,
                          double (&tile)[kDims][kTile]) {
  static constexpr int kAtOnce = kBlock / kTile;  // dimensions
  static constexpr int kLoads = kDims / kAtOnce;
  const int own = static_cast<int>(threadIdx.x) / kTile, p = static_cast<int>(threadIdx.x) % kTile;
  const std::int64_t point = min(begin + p, count - 1);
  float values[kLoads];
#pragma unroll
  for (int i = 0; i < kLoads; ++i) {
    const int j = own + i * kAtOnce;
    if (j < dims) values[i] = columns[j * count + point];
  }
#pragma unroll
  for (int i = 0; i < kLoads; ++i) {
    const int j = own + i * kAtOnce;
    if (j < dims) tile[j][p] = values[i];
  }
}

/// Considers `padded` new centres, of which the first has number `first`.
__global__ void __launch_bounds__(kBlock, 3)
    consider(RowsView rows, const float* coordinates, std::int64_t padded, std::int64_t first) {
  __shared__ double points[kDims][kTile], centers[kDims][kTile];
  const int own_row = static_cast<int>(threadIdx.x) / kSide;
  const int own_center = static_cast<int>(threadIdx.x) % kSide;
  const std::int64_t begin = std::int64_t{blockIdx.x} * kTile;
  double best[kEach];
  std::int32_t number[kEach];
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    best[i] = INFINITY;
    number[i] = -1;
  }
  for (std::int64_t at = 0; at < padded; at += kTile) {
    double sum[kEach][kEach] = {};
    for (int j = 0; j < rows.dim; j += kDims) {
      const int dims = min(kDims, rows.dim - j);
      __syncthreads();  // all threads have read the dimensions before
      load_tile(rows.columns + j * rows.n, rows.n, begin, dims, points);
      load_tile(coordinates + j * padded, padded, at, dims, centers);
      __syncthreads();
#pragma unroll 2
      for (int d = 0; d < dims; ++d) {
        double x[kEach];
#pragma unroll
        for (int i = 0; i < kEach; ++i) x[i] = points[d][i * kSide + own_row];
#pragma unroll
        for (int c = 0; c < kEach; ++c) {
          const double coordinate = centers[d][c * kSide + own_center];
#pragma unroll
          for (int i = 0; i < kEach; ++i) {
            const double difference = add(x[i], -coordinate);
            sum[i][c] = add(sum[i][c], multiply(difference, difference));
          }
        }
      }
    }
#pragma unroll
    for (int c = 0; c < kEach; ++c) {
#pragma unroll
      for (int i = 0; i < kEach; ++i) {
        if (!(sum[i][c] < best[i])) continue;
        best[i] = sum[i][c];
        number[i] = static_cast<std::int32_t>(first + at + c * kSide + own_center);
      }
    }
  }
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    // The lanes that differ in these bits have compared the row with the other centres.
    for (int bit = 1; bit < kSide; bit *= 2) {
      const double other = __shfl_xor_sync(0xFFFFFFFFu, best[i], bit);
      const std::int32_t its = __shfl_xor_sync(0xFFFFFFFFu, number[i], bit);
      if (other < best[i] || (other == best[i] && its < number[i])) {
        best[i] = other;
        number[i] = its;
      }
    }
    const std::int64_t row = begin + i * kSide + own_row;
    if (own_center != 0 || row >= rows.n) continue;
    if (first > 0 && !(best[i] < rows.squared[row])) continue;
    rows.squared[row] = best[i];
    rows.center[row] = number[i];
  }
}

/// Bit i of chosen[w] says whether row 32 w + i is chosen.
__global__ void choose_rows(RowsView rows, std::uint64_t seed, std::uint32_t round, double total,
                            double oversampling, std::uint32_t* chosen) {
  const std::int64_t row = std::int64_t{blockIdx.x} * kBlock + threadIdx.x;
  const bool mine =
      row < rows.n && chosen_in_round(seed, round, row, rows.squared[row], total, oversampling);
  const std::uint32_t bits = __ballot_sync(0xFFFFFFFFu, mine);
  if (row % 32 == 0 && row < rows.n) chosen[row / 32] = bits;
}

__global__ void count_rows(RowsView rows, unsigned long long* counts) {
  const std::int64_t row = std::int64_t{blockIdx.x} * kBlock + threadIdx.x;
  if (row < rows.n) atomicAdd(&counts[rows.center[row]], 1ull);
}

class CudaNearest : public Nearest {
 public:
  CudaNearest(std::span<const float> points, std::int64_t n, int dim,
              std::span<const double> weights)
      : rows_per_thread_(n < kFewRows ? 1 : 4),
        columns_(points.size()),
        squared_(static_cast<std::size_t>(n)),
        weights_(weights.size()),
        drawn_center_(static_cast<std::size_t>(dim)),
        center_(squared_.size()),
        sums_(cuda::blocks_for(n, kStepBlock * rows_per_thread_)),
        device_state_(1),
        rows_{n,
              dim,
              columns_.data(),
              weights.empty() ? nullptr : weights_.data(),
              squared_.data(),
              center_.data()} {
    if (!weights.empty()) weights_.upload(weights, nullptr);
    cuda::upload_columns(points, n, dim, columns_.data(), nullptr);
    forget_centers<<<cuda::blocks_for(n, kBlock), kBlock>>>(rows_);
    LLOYD_CUDA_CHECK_LAUNCH();
  }

  void add(std::span<const std::int64_t> rows) override {
    const auto count = static_cast<std::int64_t>(rows.size());
    const std::int64_t padded = (count + kTile - 1) / kTile * kTile;
    const std::int64_t size = padded * rows_.dim;
    cuda::Buffer<std::int64_t> centers(rows.size());
    const cuda::Buffer<float> coordinates(static_cast<std::size_t>(size));
    centers.upload(rows, nullptr);
    gather<<<cuda::blocks_for(size, kBlock), kBlock>>>(rows_, centers.data(), count, padded,
                                                       coordinates.data());
    LLOYD_CUDA_CHECK_LAUNCH();
    consider<<<cuda::blocks_for(rows_.n, kTile), kBlock>>>(rows_, coordinates.data(), padded,
                                                           state_.centers);
    LLOYD_CUDA_CHECK_LAUNCH();
    state_.centers += count;
    run_steps(0);
  }

  std::vector<std::int64_t> draw(std::int64_t count, Draws& draws) override {
    if (count == 0) return {};
    if (drawn_.size() < static_cast<std::size_t>(count))
      drawn_ = cuda::Buffer<std::int64_t>(static_cast<std::size_t>(count));
    state_.draws = draws;
    run_steps(count);
    draws = state_.draws;
    std::vector<std::int64_t> rows(static_cast<std::size_t>(count));
    drawn_.download(rows, nullptr);
    return rows;
  }

  std::vector<std::int64_t> choose(std::uint64_t seed, std::uint32_t round,
                                   double oversampling) override {
    std::vector<std::uint32_t> words(static_cast<std::size_t>((rows_.n + 31) / 32));
    const cuda::Buffer<std::uint32_t> chosen(words.size());
    choose_rows<<<cuda::blocks_for(rows_.n, kBlock), kBlock>>>(
        rows_, seed, round, total_mass(state_.total, state_.exponent), oversampling, chosen.data());
    LLOYD_CUDA_CHECK_LAUNCH();
    chosen.download(words, nullptr);
    std::vector<std::int64_t> rows;
    for (std::size_t w = 0; w < words.size(); ++w)
      for (std::uint32_t left = words[w]; left != 0; left &= left - 1)
        rows.push_back(static_cast<std::int64_t>(32 * w) + std::countr_zero(left));
    return rows;
  }

  std::vector<std::int64_t> counts(std::int64_t centers) override {
    std::vector<unsigned long long> host(static_cast<std::size_t>(centers));
    cuda::Buffer<unsigned long long> counts(host.size());
    counts.zero(nullptr);
    count_rows<<<cuda::blocks_for(rows_.n, kBlock), kBlock>>>(rows_, counts.data());
    LLOYD_CUDA_CHECK_LAUNCH();
    counts.download(host, nullptr);
    return {host.begin(), host.end()};
  }

 private:
  /// Takes steps until the total is settled and `wanted` rows are drawn. The host waits only after
  /// as many steps as that takes if the exponent stays the same.
  void run_steps(std::int64_t wanted) {
    state_.wanted = wanted;
    state_.drawn = 0;
    device_state_.upload({&state_, 1}, nullptr);
    const auto step = rows_per_thread_ == 1 ? draw_step<1> : draw_step<4>;
    do {
      for (std::int64_t left = std::max<std::int64_t>(wanted - state_.drawn, 1); left > 0; --left) {
        step<<<static_cast<unsigned>(sums_.size()), kStepBlock>>>(
            rows_, drawn_center_.data(), device_state_.data(), sums_.data(), drawn_.data());
        LLOYD_CUDA_CHECK_LAUNCH();
      }
      device_state_.download({&state_, 1}, nullptr);
    } while (!state_.settled || state_.drawn < wanted);
  }

  int rows_per_thread_;  // in a step
  cuda::Buffer<float> columns_;
  cuda::Buffer<double> squared_, weights_, drawn_center_;
  cuda::Buffer<std::int32_t> center_;
  cuda::Buffer<std::uint64_t> sums_;  // of the integer masses, per block of a step
  cuda::Buffer<std::int64_t> drawn_;
  cuda::Buffer<DrawState> device_state_;
  DrawState state_;
  RowsView rows_;
};

}  // namespace

std::unique_ptr<Nearest> make_cuda_nearest(std::span<const float> points, std::int64_t n, int dim,
                                           std::span<const double> weights, int) {
  return std::make_unique<CudaNearest>(points, n, dim, weights);
}

}  // namespace lloyd::data
