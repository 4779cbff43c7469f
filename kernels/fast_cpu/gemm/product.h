// oneDNN's single-precision product, opened at run time: the program then starts on machines
// without it.
#pragma once

#include <cstdint>

namespace lloyd::fast_cpu {

class Product {
 public:
  /// The library, or null where it is not installed.
  static const Product* find();

  /// out = a · bᵀ, row-major: a is m × k, b is n × k, and a row of out has `stride` values. Call it
  /// from a parallel region whose threads have called omp_set_num_threads(1): each call then runs
  /// on the thread that makes it.
  void multiply(int m, int n, int k, const float* a, const float* b, float* out, int stride) const;

 private:
  // dnnl_sgemm() of oneDNN 2 and 3. dnnl_dim_t is int64_t, dnnl_status_t an enum.
  using Sgemm = int (*)(char, char, std::int64_t, std::int64_t, std::int64_t, float, const float*,
                        std::int64_t, const float*, std::int64_t, float, float*, std::int64_t);
  Sgemm sgemm_ = nullptr;
};

}  // namespace lloyd::fast_cpu
