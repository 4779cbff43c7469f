// Nearest on the current CUDA device. Every operation is the one that nearest_cpu.cpp does.
#include <bit>
#include <cmath>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>

#include "data/sources/seeding.h"
#include "kernels/core/cuda.h"
#include "kernels/core/transfer.h"

namespace lloyd::data {
namespace {

constexpr int kBlock = 256;
constexpr int kRows = kRowsPerSum / kBlock;  // of one thread; a block has one chunk
constexpr int kGroup = 4;                    // centres that share the loads of a point
static_assert(kRows * kBlock == kRowsPerSum);

/// What the kernels know of the rows.
struct RowsView {
  std::int64_t n;
  int dim;
  float* columns;         // dim × n, so that the threads of a warp read neighbours
  const double* weights;  // null: all are 1
  double* squared;
  std::int32_t* center;

  __device__ std::uint64_t integer_mass(std::int64_t row, double scale) const {
    return fixed_point(mass(row, squared[row]), scale);
  }
  __device__ double mass(std::int64_t row, double squared_distance) const {
    return weights == nullptr ? squared_distance : multiply(weights[row], squared_distance);
  }
};

/// There is no centre yet.
__global__ void forget_centers(RowsView rows) {
  const std::int64_t row = std::int64_t{blockIdx.x} * kBlock + threadIdx.x;
  if (row >= rows.n) return;
  rows.squared[row] = 1;
  rows.center[row] = -1;
}

/// Coordinate j of centre c of a group goes to j · width + c. Infinitely far centres fill up the
/// last group.
__global__ void gather(RowsView rows, const std::int64_t* centers, std::int64_t count,
                       std::int64_t size, int width, double* coordinates) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kBlock + threadIdx.x;
  if (i >= size) return;
  const std::int64_t group = i / (std::int64_t{width} * rows.dim);
  const std::int64_t j = i / width % rows.dim, c = group * width + i % width;
  coordinates[i] = c < count ? rows.columns[j * rows.n + centers[c]] : INFINITY;
}

/// Considers `groups` groups of new centres, of which the first has number `first`. Then sums the
/// masses of the block's chunk: `totals` has the sums of all chunks, and then their largest masses
/// as bits. `fresh`: there was no centre before.
template <int kWidth>
__global__ void __launch_bounds__(kBlock)
    consider(RowsView rows, const double* coordinates, std::int64_t groups, std::int64_t first,
             bool fresh, double scale, std::uint64_t* totals) {
  const std::int64_t begin = blockIdx.x * kRowsPerSum + threadIdx.x;
  std::int64_t row[kRows];  // threads past the end repeat the last row
  double best[kRows];
  std::int32_t number[kRows];
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    row[i] = min(begin + i * kBlock, rows.n - 1);
    best[i] = fresh ? INFINITY : rows.squared[row[i]];
    number[i] = -1;
  }
  for (std::int64_t g = 0; g < groups; ++g) {
    double sum[kRows][kWidth] = {};
    for (std::int64_t j = 0; j < rows.dim; ++j) {
      double x[kRows];
#pragma unroll
      for (int i = 0; i < kRows; ++i) x[i] = rows.columns[j * rows.n + row[i]];
#pragma unroll
      for (int c = 0; c < kWidth; ++c) {
        const double coordinate = coordinates[(g * rows.dim + j) * kWidth + c];
#pragma unroll
        for (int i = 0; i < kRows; ++i) {
          const double difference = add(x[i], -coordinate);
          sum[i][c] = add(sum[i][c], multiply(difference, difference));
        }
      }
    }
#pragma unroll
    for (int c = 0; c < kWidth; ++c) {
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
        if (!(sum[i][c] < best[i])) continue;
        best[i] = sum[i][c];
        number[i] = static_cast<std::int32_t>(first + g * kWidth + c);
      }
    }
  }

  std::uint64_t total = 0;
  double largest = 0;
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    if (begin + i * kBlock >= rows.n) break;
    if (number[i] >= 0) {
      rows.squared[row[i]] = best[i];
      rows.center[row[i]] = number[i];
    }
    const double mass = rows.mass(row[i], best[i]);
    total += fixed_point(mass, scale);
    largest = max(largest, mass);
  }
  __shared__ typename cub::BlockReduce<std::uint64_t, kBlock>::TempStorage of_total;
  __shared__ typename cub::BlockReduce<double, kBlock>::TempStorage of_largest;
  total = cub::BlockReduce<std::uint64_t, kBlock>(of_total).Sum(total);
  largest = cub::BlockReduce<double, kBlock>(of_largest).Reduce(largest, [](double a, double b) {
    return max(a, b);
  });
  if (threadIdx.x != 0) return;
  totals[blockIdx.x] = total;
  totals[gridDim.x + blockIdx.x] = static_cast<std::uint64_t>(__double_as_longlong(largest));
}

/// One block. Thread t has the consecutive rows t · kRows … of the chunk.
__global__ void __launch_bounds__(kBlock)
    find_row(RowsView rows, std::int64_t chunk, std::uint64_t target, double scale,
             std::int64_t* found) {
  const std::int64_t begin = chunk * kRowsPerSum + std::int64_t{threadIdx.x} * kRows;
  const std::int64_t end = min(begin + kRows, rows.n);
  std::uint64_t own = 0, before;
  for (std::int64_t row = begin; row < end; ++row) own += rows.integer_mass(row, scale);
  __shared__ typename cub::BlockScan<std::uint64_t, kBlock>::TempStorage storage;
  cub::BlockScan<std::uint64_t, kBlock>(storage).ExclusiveSum(own, before);
  if (target < before || target - before >= own) return;
  target -= before;
  std::int64_t row = begin;
  for (; target >= rows.integer_mass(row, scale); ++row) target -= rows.integer_mass(row, scale);
  *found = row;
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
      : columns_(points.size()),
        squared_(static_cast<std::size_t>(n)),
        weights_(weights.size()),
        center_(squared_.size()),
        totals_(2 * static_cast<std::size_t>((n + kRowsPerSum - 1) / kRowsPerSum)),
        found_(1),
        host_totals_(totals_.size()),
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

  Masses add(std::span<const std::int64_t> rows, int exponent) override {
    const int width = rows.size() == 1 ? 1 : kGroup;
    const auto count = static_cast<std::int64_t>(rows.size());
    const std::int64_t groups = (count + width - 1) / width;
    const std::int64_t size = groups * width * rows_.dim;
    if (new_centers_.size() < rows.size()) new_centers_ = cuda::Buffer<std::int64_t>(rows.size());
    if (coordinates_.size() < static_cast<std::size_t>(size))
      coordinates_ = cuda::Buffer<double>(static_cast<std::size_t>(size));
    new_centers_.upload(rows, nullptr);
    gather<<<cuda::blocks_for(size, kBlock), kBlock>>>(rows_, new_centers_.data(), count, size,
                                                       width, coordinates_.data());
    LLOYD_CUDA_CHECK_LAUNCH();
    launch(width, groups, centers_ == 0, exponent);
    centers_ += count;
    return result();
  }

  Masses masses(int exponent) override {
    launch(1, 0, false, exponent);
    return result();
  }

  std::int64_t row_at(std::int64_t chunk, std::uint64_t target, int exponent) override {
    find_row<<<1, kBlock>>>(rows_, chunk, target, scale_of(exponent), found_.data());
    LLOYD_CUDA_CHECK_LAUNCH();
    std::int64_t row = -1;
    found_.download({&row, 1}, nullptr);
    return row;
  }

  std::vector<std::int64_t> choose(std::uint64_t seed, std::uint32_t round, double total,
                                   double oversampling) override {
    std::vector<std::uint32_t> words(static_cast<std::size_t>((rows_.n + 31) / 32));
    const cuda::Buffer<std::uint32_t> chosen(words.size());
    choose_rows<<<cuda::blocks_for(rows_.n, kBlock), kBlock>>>(rows_, seed, round, total,
                                                               oversampling, chosen.data());
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
  static double scale_of(int exponent) { return std::ldexp(1.0, kFractionBits - exponent); }

  void launch(int width, std::int64_t groups, bool fresh, int exponent) {
    const auto kernel = width == 1 ? consider<1> : consider<kGroup>;
    kernel<<<cuda::blocks_for(rows_.n, kRowsPerSum), kBlock>>>(
        rows_, coordinates_.data(), groups, centers_, fresh, scale_of(exponent), totals_.data());
    LLOYD_CUDA_CHECK_LAUNCH();
  }

  Masses result() {
    totals_.download(host_totals_, nullptr);
    const std::size_t chunks = host_totals_.size() / 2;
    const std::span<const std::uint64_t> totals = host_totals_;
    std::uint64_t largest = 0;  // the bits of positive float64 have their order
    for (const std::uint64_t bits : totals.last(chunks)) largest = std::max(largest, bits);
    return {std::bit_cast<double>(largest), totals.first(chunks)};
  }

  cuda::Buffer<float> columns_;
  cuda::Buffer<double> squared_, weights_, coordinates_;
  cuda::Buffer<std::int32_t> center_;
  cuda::Buffer<std::uint64_t> totals_;
  cuda::Buffer<std::int64_t> found_, new_centers_;
  std::vector<std::uint64_t> host_totals_;
  RowsView rows_;
  std::int64_t centers_ = 0;
};

}  // namespace

std::unique_ptr<Nearest> make_cuda_nearest(std::span<const float> points, std::int64_t n, int dim,
                                           std::span<const double> weights, int) {
  return std::make_unique<CudaNearest>(points, n, dim, weights);
}

}  // namespace lloyd::data
