// goldsborough_thrust: goldsborough_atomic with its arrays in Thrust vectors.
//
// Parent   goldsborough_atomic.
// Idea     Every array is a thrust::device_vector, and thrust::fill zeroes it. The kernels are
//          atomic's own. (The study's are the same too, with thrust::device_ptr for every pointer.)
// Why      Not to be faster: a container allocates and frees the memory, so "the nasty memory
//          management" is gone.
// Limits   As atomic. Nothing is allocated in the loop. The vectors allocate through
//          cuda::allocate, which tells a device that is too small from one that is taken.
// Fixed    The fills are queued on the version's stream without waiting (par_nosync); the study
//          waits for each.
// Study    "slightly lower" than atomic at n = 100 and equal at n = 1e5 (no numbers).
#include "kernels/core/limits.h"

#if LLOYD_CUDA
#include <thrust/device_malloc_allocator.h>
#include <thrust/device_vector.h>
#include <thrust/execution_policy.h>
#include <thrust/fill.h>

#include "kernels/goldsborough/atomic_kernels.cuh"
#endif

namespace lloyd::goldsborough {
namespace {

#if LLOYD_CUDA
template <typename T>
struct Allocator : thrust::device_malloc_allocator<T> {
  using pointer = thrust::device_ptr<T>;
  template <typename U>
  struct rebind {
    using other = Allocator<U>;
  };
  pointer allocate(std::size_t size) {
    return pointer(static_cast<T*>(cuda::allocate(size * sizeof(T))));
  }
  void deallocate(pointer data, std::size_t size) noexcept {
    cuda::release(data.get(), size * sizeof(T));
  }
};

/// Thrust's vector with the members of cuda::Buffer.
template <typename T>
class Vector {
 public:
  Vector() = default;
  explicit Vector(std::size_t size) : values_(size) {}

  T* data() { return thrust::raw_pointer_cast(values_.data()); }
  std::size_t size() const { return values_.size(); }
  std::size_t bytes() const { return size() * sizeof(T); }

  // Not with thrust::copy, which uses only the default stream between host and device.
  void upload(std::span<const T> host, cudaStream_t stream) {
    LLOYD_CUDA_CHECK(
        cudaMemcpyAsync(data(), host.data(), host.size_bytes(), cudaMemcpyHostToDevice, stream));
  }
  void download(std::span<T> host, cudaStream_t stream) {
    LLOYD_CUDA_CHECK(
        cudaMemcpyAsync(host.data(), data(), host.size_bytes(), cudaMemcpyDeviceToHost, stream));
    LLOYD_CUDA_CHECK(cudaStreamSynchronize(stream));
  }
  void zero(cudaStream_t stream) {
    thrust::fill(thrust::cuda::par_nosync.on(stream), values_.begin(), values_.end(), T{0});
  }

 private:
  thrust::device_vector<T, Allocator<T>> values_;
};

using Thrust = GlobalAtomics<Vector>;
#endif

LLOYD_CUDA_VERSION(Thrust, {.name = "goldsborough_thrust",
                            .family = "goldsborough",
                            .backend = Backend::cuda,
                            .parent = "goldsborough_atomic",
                            .axes = {"threads_per_block"},
                            .precisions = {Precision::fp32},
                            .distance = Distance::direct,
                            .study = "goldsborough",
                            .summary = "atomic with its arrays in thrust::device_vector, zeroed by "
                                       "thrust::fill",
                            .unsupported = [](const Problem& problem, const Tunables&,
                                              const DeviceLimits&) -> std::optional<std::string> {
                              return no_change_count(problem.stop);
                            }});

}  // namespace
}  // namespace lloyd::goldsborough
