// The GPU's arithmetic: FMA units, and tensor cores through cuBLAS or WMMA.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

#include <cstddef>
#include <memory>
#include <string>

#include "kernels/core/cublas.h"
#include "kernels/core/cuda.h"
#include "profiling/ceilings_gpu_parts.h"
#include "profiling/ceilings_gpu_random.h"

// <mma.h> declares this tag only for compute capability 8.0 and newer. Template arguments below
// name it for older GPUs too, but their code does not use it.
namespace nvcuda::wmma::precision {
struct tf32;
}

namespace lloyd::profiling {
namespace {

// Eight chains per thread hide the latency of an FMA even at a quarter of the full occupancy.
constexpr int kChains = 8, kFmasPerRound = 32;

template <typename T>
__global__ void __launch_bounds__(kBlock) fma_chains(T a, T b, int rounds, T* sink) {
  T x[kChains];
#pragma unroll
  for (int i = 0; i < kChains; ++i) x[i] = static_cast<T>(threadIdx.x + i);
#pragma unroll 1
  for (int round = 0; round < rounds; ++round) {
#pragma unroll
    for (int u = 0; u < kFmasPerRound; ++u)
#pragma unroll
      for (int i = 0; i < kChains; ++i) x[i] = x[i] * a + b;
  }
  T sum = 0;
#pragma unroll
  for (int i = 0; i < kChains; ++i) sum += x[i];
  if (sum < 0) *sink = sum;  // never: a, b and x are positive
}

// Independent sums of each warp, so that a product need not wait for the one before.
constexpr int kAccumulators = 4;

// Multiplies fragments that stay in registers, by the warp-level instruction (WMMA). It is slower
// than Hopper's warpgroup instructions, so this kernel runs only where cuBLAS is not available.
template <typename Stored, typename Fragment, typename Sum, int m, int n, int k>
__global__ void __launch_bounds__(kBlock) wmma_chains(int rounds, Sum* sink) {
#if __CUDA_ARCH__ >= 800
  using namespace nvcuda::wmma;
  fragment<matrix_a, m, n, k, Fragment, row_major> a;
  fragment<matrix_b, m, n, k, Fragment, col_major> b;
  fragment<accumulator, m, n, k, Sum> sums[kAccumulators];
  fill_fragment(a, static_cast<Stored>(1.0f / (1 + threadIdx.x)));
  fill_fragment(b, static_cast<Stored>(1.0f / (2 + threadIdx.x)));
#pragma unroll
  for (int s = 0; s < kAccumulators; ++s) fill_fragment(sums[s], static_cast<Sum>(0));
#pragma unroll 1
  for (int round = 0; round < rounds; ++round)
#pragma unroll
    for (int s = 0; s < kAccumulators; ++s) mma_sync(sums[s], a, b, sums[s]);
  Sum all = 0;  // uses every element, or the compiler would drop products
#pragma unroll
  for (int s = 0; s < kAccumulators; ++s)
    for (int i = 0; i < sums[s].num_elements; ++i) all += sums[s].x[i];
  if (all < static_cast<Sum>(0)) *sink = all;
#endif
}

template <typename T>
void measure_fma_of(CeilingBench& bench, const char* name) {
  constexpr int kRounds = 2048;
  const int blocks = bench.resident_blocks(fma_chains<T>);
  bench.measure(
      name, "TFLOP/s",
      text("kernel: ", kChains, " chains of FMAs a thread, ", blocks, " blocks of ", kBlock),
      2.0 * kChains * kFmasPerRound * kRounds * kBlock * blocks, [&] {
        fma_chains<T><<<blocks, kBlock, 0, bench.stream()>>>(
            static_cast<T>(0.999), static_cast<T>(0.5), kRounds, bench.sink<T>());
        LLOYD_CUDA_CHECK_LAUNCH();
      });
}

template <typename T>
void measure_gemm(CeilingBench& bench, const char* name, cuda::Cublas::Tensor tensor,
                  cuda::Cublas& cublas) {
  constexpr int kSize = 8192;
  constexpr std::size_t kCount = std::size_t{kSize} * kSize;
  const auto a = random_buffer<T>(kCount, bench.stream());
  const auto b = random_buffer<T>(kCount, bench.stream());
  const cuda::Buffer<T> c(kCount);
  for (const bool transpose_a : {false, true})
    bench.measure(
        name, "TFLOP/s",
        text("cublasGemmEx, ", kSize, "×", kSize, "×", kSize, ", ", transpose_a ? "TN" : "NN",
             ", random data"),
        2.0 * kSize * kSize * kSize,
        [&] { cublas.square_gemm(tensor, transpose_a, kSize, a.data(), b.data(), c.data()); },
        CeilingBench::Pace::bursts);
}

template <typename Stored, typename Fragment, typename Sum, int m, int n, int k>
void measure_wmma(CeilingBench& bench, const char* name, const std::string& why_no_cublas) {
  constexpr int kRounds = 4096;
  const auto kernel = wmma_chains<Stored, Fragment, Sum, m, n, k>;
  const int blocks = bench.resident_blocks(kernel);
  bench.measure(name, "TFLOP/s",
                text("kernel: WMMA ", m, "×", n, "×", k, " in registers, ", blocks, " blocks of ",
                     kBlock, ", because cuBLAS ", why_no_cublas),
                2.0 * m * n * k * kAccumulators * kRounds * (kBlock / 32) * blocks, [&] {
                  kernel<<<blocks, kBlock, 0, bench.stream()>>>(kRounds, bench.sink<Sum>());
                  LLOYD_CUDA_CHECK_LAUNCH();
                });
}

}  // namespace

void measure_fma(CeilingBench& bench) {
  measure_fma_of<float>(bench, "fp32_fma");
  measure_fma_of<double>(bench, "fp64_fma");
}

void measure_tensor_cores(CeilingBench& bench) {
  using Tensor = cuda::Cublas::Tensor;
  std::unique_ptr<cuda::Cublas> cublas;
  std::string why_no_cublas;
  try {
    cublas = std::make_unique<cuda::Cublas>(bench.stream(), cuda::Cublas::Math::standard);
  } catch (const Unsupported& absent) {
    why_no_cublas = absent.what();
  }
  const int capability = bench.device().compute_capability;
  if (capability < 80) {
    for (const char* name : {"bf16_tensor", "tf32_tensor", "fp64_tensor"})
      bench.skip(name, "TFLOP/s",
                 text("such tensor cores come with compute capability 8.0, this GPU has ",
                      capability / 10, '.', capability % 10));
    if (cublas)
      measure_gemm<__half>(bench, "fp16_tensor", Tensor::fp16, *cublas);
    else
      bench.skip("fp16_tensor", "TFLOP/s", why_no_cublas);
  } else if (cublas) {
    measure_gemm<__half>(bench, "fp16_tensor", Tensor::fp16, *cublas);
    measure_gemm<__nv_bfloat16>(bench, "bf16_tensor", Tensor::bf16, *cublas);
    measure_gemm<float>(bench, "tf32_tensor", Tensor::tf32, *cublas);
    measure_gemm<double>(bench, "fp64_tensor", Tensor::fp64, *cublas);
  } else {
    using nvcuda::wmma::precision::tf32;
    measure_wmma<__half, __half, float, 16, 16, 16>(bench, "fp16_tensor", why_no_cublas);
    measure_wmma<__nv_bfloat16, __nv_bfloat16, float, 16, 16, 16>(bench, "bf16_tensor",
                                                                  why_no_cublas);
    measure_wmma<float, tf32, float, 16, 16, 8>(bench, "tf32_tensor", why_no_cublas);
    measure_wmma<double, double, double, 8, 8, 4>(bench, "fp64_tensor", why_no_cublas);
  }
}

}  // namespace lloyd::profiling
