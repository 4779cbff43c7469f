// Sums over arrays of several GPUs: what the GPUs that solve a problem together exchange.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "kernels/core/cuda.h"

namespace lloyd::cuda {

/// An array on a device whose numbers are added to those of the same array on other devices.
struct Terms {
  enum class Type { int64, uint32, fp32, fp64 };  // int64: two's complement, so uint64, too

  template <typename T>
  Terms(T* array, std::size_t size) : data(array), count(size), type(type_of<T>()) {}
  template <typename T>
  explicit Terms(const Buffer<T>& buffer) : Terms(buffer.data(), buffer.size()) {}

  std::size_t bytes() const { return count * (type == Type::int64 || type == Type::fp64 ? 8 : 4); }

  void* data;
  std::size_t count;
  Type type;

 private:
  template <typename T>
  static constexpr Type type_of() {
    if constexpr (std::is_integral_v<T> && sizeof(T) == 8)
      return Type::int64;
    else if constexpr (std::is_same_v<T, unsigned>)
      return Type::uint32;
    else if constexpr (std::is_same_v<T, float>)
      return Type::fp32;
    else {
      static_assert(std::is_same_v<T, double>, "no such sums");
      return Type::fp64;
    }
  }
};

/// One way to add up arrays over the members of a group, each of which is a GPU with a host thread.
class DeviceSums {
 public:
  virtual ~DeviceSums() = default;
  /// Queues on the member's stream: each array becomes the sum of those of all members, with the
  /// same bits on all. Every member calls this equally often, with arrays of the same types and
  /// sizes in the same order, from its own thread and with its device current. Throws after
  /// abandon().
  virtual void add_up(int member, std::span<const Terms> arrays, cudaStream_t stream) = 0;
  /// Ends what waits, on a device or on the host, for a member that failed. May be called from any
  /// thread, more than once, while other members are in add_up(). The object is of no use then.
  virtual void abandon() noexcept = 0;
};

}  // namespace lloyd::cuda
