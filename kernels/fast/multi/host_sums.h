// Arrays are added up on the host: for tests with several shards on one GPU, and as a reference for
// the faster ways.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "kernels/core/device_sums.h"
#include "kernels/fast/multi/thread_group.h"

namespace lloyd::fast {

class HostSums : public cuda::DeviceSums {
 public:
  explicit HostSums(ThreadGroup& group) : group_(group) {}

  void add_up(int member, std::span<const cuda::Terms> arrays, cudaStream_t stream) override {
    for (const cuda::Terms& terms : arrays) {
      using Type = cuda::Terms::Type;
      if (terms.type == Type::int64)
        add<unsigned long long>(member, terms, stream);  // wraps around, as on the device
      else if (terms.type == Type::uint32)
        add<unsigned>(member, terms, stream);
      else if (terms.type == Type::fp32)
        add<float>(member, terms, stream);
      else
        add<double>(member, terms, stream);
    }
  }
  void abandon() noexcept override {}  // the group wakes those that wait

 private:
  template <typename T>
  void add(int member, const cuda::Terms& terms, cudaStream_t stream) {
    std::vector<T> values(terms.count);
    LLOYD_CUDA_CHECK(
        cudaMemcpyAsync(values.data(), terms.data, terms.bytes(), cudaMemcpyDeviceToHost, stream));
    LLOYD_CUDA_CHECK(cudaStreamSynchronize(stream));
    group_.combine(member, std::span(values), std::plus<>());
    LLOYD_CUDA_CHECK(
        cudaMemcpyAsync(terms.data, values.data(), terms.bytes(), cudaMemcpyHostToDevice, stream));
    LLOYD_CUDA_CHECK(cudaStreamSynchronize(stream));
  }

  ThreadGroup& group_;
};

}  // namespace lloyd::fast
