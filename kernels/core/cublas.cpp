#include "kernels/core/cublas.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <string>

#include "kernels/core/version.h"

namespace lloyd::cuda {

// The few declarations of cublas_v2.h that we need (cuBLAS library guide, chapter 2; the ABI of a
// major version is stable).
struct Cublas::Library {
  using Handle = void*;
  static constexpr int kSuccess = 0, kTranspose = 1, kNoTranspose = 0, kPedanticMath = 2;
  static constexpr int kDefaultAlgorithm = -1;

  void* library = nullptr;
  Handle handle = nullptr;

  template <typename... Arguments>
  void call(const char* name, Arguments... arguments) const {
    auto* function = reinterpret_cast<int (*)(Arguments...)>(dlsym(library, name));
    if (function == nullptr) throw std::runtime_error(fmt::format("libcublas has no {}", name));
    if (const int status = function(arguments...); status != kSuccess)
      throw std::runtime_error(fmt::format("{} failed with status {}", name, status));
  }
};

Cublas::Cublas(cudaStream_t stream, Math math) : library_(std::make_unique<Library>()) {
  const std::string name = fmt::format("libcublas.so.{}", CUDART_VERSION / 1000);
  library_->library = dlopen(name.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (library_->library == nullptr)
    throw Unsupported(
        fmt::format("needs {}, which is not installed (name its folder in LD_LIBRARY_PATH)", name));
  library_->call("cublasCreate_v2", &library_->handle);
  library_->call("cublasSetStream_v2", library_->handle, stream);
  if (math == Math::pedantic)
    library_->call("cublasSetMathMode", library_->handle, Library::kPedanticMath);
}

Cublas::~Cublas() {
  if (library_->handle == nullptr) return;
  auto* destroy = reinterpret_cast<int (*)(void*)>(dlsym(library_->library, "cublasDestroy_v2"));
  destroy(library_->handle);  // the library stays open: it cannot be opened again
}

void Cublas::gemm_tn(int m, int n, int k, float alpha, const float* a, const float* b, float beta,
                     float* c) {
  library_->call("cublasSgemm_v2", library_->handle, Library::kTranspose, Library::kNoTranspose, m,
                 n, k, static_cast<const float*>(&alpha), a, k, b, k,
                 static_cast<const float*>(&beta), c, m);
}

void Cublas::square_gemm(Tensor tensor, bool transpose_a, int size, const void* a, const void* b,
                         void* c) {
  // cudaDataType and cublasComputeType_t: CUBLAS_COMPUTE_32F, _32F_FAST_TF32 and _64F.
  const auto [type, compute] = [&]() -> std::pair<int, int> {
    switch (tensor) {
      case Tensor::fp16:
        return {CUDA_R_16F, 68};
      case Tensor::bf16:
        return {CUDA_R_16BF, 68};
      case Tensor::tf32:
        return {CUDA_R_32F, 77};
      case Tensor::fp64:
        return {CUDA_R_64F, 70};
    }
    throw std::logic_error("no such type");
  }();
  const float one = 1, zero = 0;
  const double one_fp64 = 1, zero_fp64 = 0;
  const bool wide = tensor == Tensor::fp64;
  const void* alpha = wide ? static_cast<const void*>(&one_fp64) : &one;
  const void* beta = wide ? static_cast<const void*>(&zero_fp64) : &zero;
  library_->call("cublasGemmEx", library_->handle,
                 transpose_a ? Library::kTranspose : Library::kNoTranspose, Library::kNoTranspose,
                 size, size, size, alpha, a, type, size, b, type, size, beta, c, type, size,
                 compute, static_cast<int>(Library::kDefaultAlgorithm));
}

}  // namespace lloyd::cuda
