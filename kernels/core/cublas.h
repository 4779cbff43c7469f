// cuBLAS, opened at run time: the program then starts on machines without it, and a bundle need not
// contain half a gigabyte of library.
#pragma once

#include <cuda_runtime.h>

#include <memory>

namespace lloyd::cuda {

class Cublas {
 public:
  enum class Math {
    pedantic,  // fp32 with fp32 products: no TF32, no emulation
    standard,
  };
  /// What the tensor cores multiply. The sums are fp32, or fp64 for fp64.
  enum class Tensor { fp16, bf16, tf32, fp64 };

  /// Throws Unsupported when there is no libcublas of the toolkit's major version.
  Cublas(cudaStream_t stream, Math math);
  ~Cublas();
  Cublas(const Cublas&) = delete;

  /// c = alpha · aᵀ · b + beta · c, column-major, fp32: a is k × m, b is k × n, c is m × n.
  void gemm_tn(int m, int n, int k, float alpha, const float* a, const float* b, float beta,
               float* c);

  /// c = a · b or aᵀ · b, column-major. All are size × size and of the type that `tensor` stores
  /// (float for tf32).
  void square_gemm(Tensor tensor, bool transpose_a, int size, const void* a, const void* b,
                   void* c);

 private:
  struct Library;
  std::unique_ptr<Library> library_;
};

}  // namespace lloyd::cuda
