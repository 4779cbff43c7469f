// How one ceiling of the GPU is timed. ceilings_gpu_parts.h lists what runs.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "kernels/core/cuda.h"
#include "kernels/core/stream.h"
#include "kernels/core/version.h"
#include "profiling/ceilings.h"
#include "profiling/nvml.h"

namespace lloyd::profiling {

/// The threads per block of all kernels that measure a ceiling.
inline constexpr int kBlock = 256;

/// Replaces fmt::format, because nvcc 13.0 miscompiles some of its consteval format strings in
/// ceilings_gpu_*.cu.
template <typename... Parts>
std::string text(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return out.str();
}

inline std::string mib(std::size_t bytes) { return text(bytes >> 20, " MiB"); }

/// Times methods on one GPU, which must be the current device, and collects the results.
class CeilingBench {
 public:
  /// Enqueues the work of a method on stream().
  using Launch = std::function<void()>;
  /// When samples are taken: one after the other, or each as a burst after a pause, which keeps
  /// the GPU below its power limit.
  enum class Pace { back_to_back, bursts };

  /// `nvml` may be null.
  CeilingBench(const DeviceLimits& device, Nvml* nvml, const Announce& announce);

  /// Measures the ceiling `name` by one method. One call of `launch` moves `work` bytes (unit GB/s)
  /// or does `work` floating-point operations (unit TFLOP/s).
  void measure(const std::string& name, const std::string& unit, std::string method, double work,
               const Launch& launch, Pace pace = Pace::back_to_back);
  /// Records why the ceiling `name` has no samples.
  void skip(const std::string& name, const std::string& unit, const std::string& reason);
  /// Later ceilings are measured under sustained load. Their names end in kSustained. Only the
  /// method that was the fastest without the load is measured again, to save seconds.
  void begin_sustained() { sustained_ = true; }
  std::vector<Ceiling> take_results() { return std::move(results_); }

  const DeviceLimits& device() const { return device_; }
  cudaStream_t stream() const { return stream_; }
  /// The number of blocks that are resident at once, so that no block has to wait.
  template <typename Kernel>
  int resident_blocks(Kernel kernel) const {
    int blocks = 0;
    LLOYD_CUDA_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, kBlock, 0));
    return blocks * device_.multiprocessors;
  }
  /// The target of the kernels' stores, which never execute. Without the stores the compiler would
  /// remove the work.
  template <typename T>
  T* sink() const {
    static_assert(sizeof(T) <= sizeof(double));
    return reinterpret_cast<T*>(sink_.data());
  }

 private:
  std::string full_name(const std::string& name) const;
  int fastest_method(const std::string& name) const;
  double timed_ms(int count, const Launch& launch, GpuState* state = nullptr);
  double warm_up(double load_ms, const Launch& launch);

  const DeviceLimits& device_;
  Nvml* nvml_;
  const Announce& announce_;
  bool sustained_ = false;
  std::map<std::string, int> methods_so_far_;  // by the ceiling's full name
  cuda::Stream stream_;
  cuda::Event start_, end_;
  cuda::Buffer<double> sink_{1};
  std::vector<Ceiling> results_;
};

}  // namespace lloyd::profiling
