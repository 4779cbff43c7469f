#include "kernels/fast_cpu/gemm/product.h"

#include <dlfcn.h>

#include <stdexcept>
#include <string>

namespace lloyd::fast_cpu {

const Product* Product::find() {
  static const Product product = [] {
    Product found;
    // It stays open. The last two: Debian 13 and Ubuntu 26.04, without and with libdnnl-dev.
    for (const char* name : {"libdnnl.so.3", "libdnnl.so.2", "libdnnl.so.3.6", "libdnnl.so"}) {
      void* library = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
      if (library == nullptr) continue;
      found.sgemm_ = reinterpret_cast<Sgemm>(dlsym(library, "dnnl_sgemm"));
      if (found.sgemm_ != nullptr) break;
    }
    return found;
  }();
  return product.sgemm_ == nullptr ? nullptr : &product;
}

void Product::multiply(int m, int n, int k, const float* a, const float* b, float* out,
                       int stride) const {
  if (const int status = sgemm_('N', 'T', m, n, k, 1, a, k, b, k, 0, out, stride); status != 0)
    throw std::runtime_error("dnnl_sgemm failed with status " + std::to_string(status));
}

}  // namespace lloyd::fast_cpu
