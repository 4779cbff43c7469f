#include "profiling/driver.h"

#include <dlfcn.h>
#include <fmt/format.h>

namespace lloyd::profiling {

void* driver_function(const char* name) {
  static void* const library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
  return library == nullptr ? nullptr : dlsym(library, name);
}

std::string driver_version() {
  int version = 0;
  if (driver_call("cuDriverGetVersion", &version) != CUDA_SUCCESS) return "no driver";
  return fmt::format("the driver's CUDA {}.{}", version / 1000, version % 1000 / 10);
}

}  // namespace lloyd::profiling
