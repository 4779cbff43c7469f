// Sums over the GPUs of one host by kernels that store into each other's memory (peer_link.cuh):
// for arrays so small that latency decides.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "kernels/core/cuda.h"
#include "kernels/core/device_sums.h"

namespace lloyd::fast {

struct PeerLink;

constexpr int kMostShards = 8;

class PeerExchange : public cuda::DeviceSums {
 public:
  /// `devices`: of each member. Several members may have one device. `capacity`: how many values of
  /// 8 bytes one exchange can take; add_up() makes several of what is larger. Throws Unsupported
  /// where a device cannot reach the memory of another one, or for more than kMostShards members.
  PeerExchange(std::span<const int> devices, std::int64_t capacity);
  ~PeerExchange() override;

  void add_up(int member, std::span<const cuda::Terms> arrays, cudaStream_t stream) override;
  void abandon() noexcept override;

  /// How many members have the device of this one.
  int sharers(int member) const;
  /// For a kernel that exchanges values itself.
  PeerLink link(int member) const;
  /// The number of the member's next exchange, of which each has one. Throws once a member has
  /// failed.
  unsigned next(int member);
  /// Throws where a kernel waited in vain. Call it when the member's stream is done: until then an
  /// answer may be arbitrary.
  void check() const;

 private:
  struct Member;
  std::vector<Member> members_;
  std::int64_t capacity_;
  std::unique_ptr<unsigned, cudaError_t (*)(void*)> failed_;  // pinned: kernels and hosts share it
};

}  // namespace lloyd::fast
