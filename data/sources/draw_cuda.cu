// Draws points on the current CUDA device. Their bits are those of generate.cpp, because
// random_numbers.h rounds each operation alone on both.
#include <algorithm>
#include <variant>

#include "data/sources/dataset.h"
#include "kernels/core/cuda.h"
#include "kernels/core/random_values.h"
#include "kernels/core/transfer.h"

namespace lloyd::data {
namespace {

constexpr int kBlock = 256;
constexpr std::int64_t kValuesAtOnce = std::int64_t{16} << 20;  // 64 MiB on the device

/// Each thread draws four values of a row, as the generators do.
template <typename Values>
__global__ void draw(Values values, std::int64_t first, std::int64_t rows, int dim, float* points) {
  const std::int64_t quads = (dim + 3) / 4;
  const std::int64_t own = std::int64_t{blockIdx.x} * kBlock + threadIdx.x;
  const std::int64_t row = own / quads, quad = own % quads;
  if (row >= rows) return;
  float four[4];
  values(first + row, static_cast<std::uint32_t>(quad), four);
  for (int i = 0; i < 4 && 4 * quad + i < dim; ++i) points[row * dim + 4 * quad + i] = four[i];
}

}  // namespace

void draw_on_gpu(const Generator& generator, std::int64_t first, std::span<float> out, int dim,
                 int) {
  const std::int64_t n = static_cast<std::int64_t>(out.size()) / dim;
  const std::int64_t most = std::max<std::int64_t>(1, kValuesAtOnce / dim);
  const cuda::Buffer<float> drawn(static_cast<std::size_t>(std::min(n, most) * dim));
  for (std::int64_t begin = 0; begin < n; begin += most) {
    const std::int64_t rows = std::min(most, n - begin);
    const unsigned blocks = cuda::blocks_for(rows * ((dim + 3) / 4), kBlock);
    std::visit(
        [&](const auto& values) {
          draw<<<blocks, kBlock>>>(values, first + begin, rows, dim, drawn.data());
        },
        generator.values);
    LLOYD_CUDA_CHECK_LAUNCH();
    cuda::download(
        drawn.data(),
        out.subspan(static_cast<std::size_t>(begin * dim), static_cast<std::size_t>(rows * dim)),
        nullptr);
  }
}

}  // namespace lloyd::data
