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
constexpr int kRows = 8;   // of one thread in consider()
constexpr int kGroup = 4;  // centres that share the loads of a point

/// A step of fewer rows gives each thread one row, so that there is work for the whole device.
constexpr std::int64_t kFewRows = 1 << 17;

/// There is no centre yet.
__global__ void forget_centers(RowsView rows) {
  const std::int64_t row = std::int64_t{blockIdx.x} * kBlock + threadIdx.x;
  if (row >= rows.n) return;
  rows.squared[row] = 1;
  rows.center[row] = -1;
}

/// Coordinate j of centre c of a group goes to j · kGroup + c. Infinitely far centres fill up the
/// last group.
__global__ void gather(RowsView rows, const std::int64_t* centers, std::int64_t count,
                       std::int64_t size, double* coordinates) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kBlock + threadIdx.x;
  if (i >= size) return;
  const std::int64_t group = i / (std::int64_t{kGroup} * rows.dim);
  const std::int64_t j = i / kGroup % rows.dim, c = group * kGroup + i % kGroup;
  coordinates[i] = c < count ? rows.columns[j * rows.n + centers[c]] : INFINITY;
}

/// Considers `groups` groups of new centres, of which the first has number `first`.
__global__ void __launch_bounds__(kBlock)
    consider(RowsView rows, const double* coordinates, std::int64_t groups, std::int64_t first) {
  const std::int64_t begin = std::int64_t{blockIdx.x} * (kRows * kBlock) + threadIdx.x;
  std::int64_t row[kRows];  // threads past the end repeat the last row
  double best[kRows];
  std::int32_t number[kRows];
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    row[i] = min(begin + i * kBlock, rows.n - 1);
    best[i] = first == 0 ? INFINITY : rows.squared[row[i]];
    number[i] = -1;
  }
  for (std::int64_t g = 0; g < groups; ++g) {
    double sum[kRows][kGroup] = {};
    for (std::int64_t j = 0; j < rows.dim; ++j) {
      double x[kRows];
#pragma unroll
      for (int i = 0; i < kRows; ++i) x[i] = rows.columns[j * rows.n + row[i]];
#pragma unroll
      for (int c = 0; c < kGroup; ++c) {
        const double coordinate = coordinates[(g * rows.dim + j) * kGroup + c];
#pragma unroll
        for (int i = 0; i < kRows; ++i) {
          const double difference = add(x[i], -coordinate);
          sum[i][c] = add(sum[i][c], multiply(difference, difference));
        }
      }
    }
#pragma unroll
    for (int c = 0; c < kGroup; ++c) {
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
        if (!(sum[i][c] < best[i])) continue;
        best[i] = sum[i][c];
        number[i] = static_cast<std::int32_t>(first + g * kGroup + c);
      }
    }
  }
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    if (begin + i * kBlock >= rows.n) break;
    if (number[i] < 0) continue;
    rows.squared[row[i]] = best[i];
    rows.center[row[i]] = number[i];
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
    const std::int64_t groups = (count + kGroup - 1) / kGroup;
    const std::int64_t size = groups * kGroup * rows_.dim;
    cuda::Buffer<std::int64_t> centers(rows.size());
    const cuda::Buffer<double> coordinates(static_cast<std::size_t>(size));
    centers.upload(rows, nullptr);
    gather<<<cuda::blocks_for(size, kBlock), kBlock>>>(rows_, centers.data(), count, size,
                                                       coordinates.data());
    LLOYD_CUDA_CHECK_LAUNCH();
    consider<<<cuda::blocks_for(rows_.n, kRows * kBlock), kBlock>>>(rows_, coordinates.data(),
                                                                    groups, state_.centers);
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
