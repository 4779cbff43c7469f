// cuBLAS opened at run time: the program starts on machines without it, and a bundle need not carry half a gigabyte.
#pragma once

#include <cuda_runtime.h>

#include <memory>

namespace lloyd::fast {

class Cublas {
 public:
  /// Throws Unsupported when libcublas of the toolkit's major version cannot be had.
  explicit Cublas(cudaStream_t stream);
  ~Cublas();
  Cublas(const Cublas&) = delete;

  /// c = alpha · aᵀ · b + beta · c, column-major, fp32 with fp32 products (no TF32): a is k × m, b is k × n, c is m × n.
  void gemm_tn(int m, int n, int k, float alpha, const float* a, const float* b, float beta,
               float* c);

 private:
  struct Library;
  std::unique_ptr<Library> library_;
};

}  // namespace lloyd::fast
