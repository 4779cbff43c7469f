// A ring of stages in shared memory between a producer, which fills them by bulk copies, and
// consumers, which read them.
//
//   producer                              consumer
//   ring.acquire(at);                     ring.wait(at);
//   ring.commit(at, bytes);               … reads stage at.slot …
//   … starts bulk copies to at.slot …     ring.release(at);
//   at.advance();                         at.advance();
#pragma once

#include <cstdint>

#include "kernels/fast/lib/ptx/mbarrier.cuh"

namespace lloyd::fast {

/// A place in a ring of kDepth stages: the slot, and the parity of the barriers' phase in this
/// round.
template <int kDepth>
struct RingPlace {
  int slot = 0, parity = 0;

  __device__ __forceinline__ void advance() {
    if (++slot == kDepth) slot = 0, parity ^= 1;
  }
};

/// The barriers of a ring of kDepth stages, in shared memory. One thread inits full[] for 1 arrival
/// and empty[] for the number of threads that release a stage. fence_mbarrier_init() and the
/// block's barrier must follow. (If a ring is not the first member of its struct, ptxas computes
/// its address again in these methods. The engines whose loops would change have their own arrays
/// `full` and `empty`, and use them in the same way.)
template <int kDepth>
struct Ring {
  std::uint64_t full[kDepth], empty[kDepth];

#if LLOYD_HOPPER_CODE
  /// Producer: waits until all consumers have released the stage; the first time, not at all.
  template <typename Place>
  __device__ __forceinline__ void acquire(Place at) {
    ptx::mbarrier_wait(&empty[at.slot], at.parity ^ 1);
  }
  /// Producer: announces the bytes that will fill the stage; copies count towards full[slot].
  template <typename Place>
  __device__ __forceinline__ void commit(Place at, std::uint32_t bytes) {
    ptx::mbarrier_arrive_expect_tx(&full[at.slot], bytes);
  }
  /// Consumer: waits until the stage is full.
  template <typename Place>
  __device__ __forceinline__ void wait(Place at) {
    ptx::mbarrier_wait(&full[at.slot], at.parity);
  }
  /// Consumer: this thread no longer reads the stage.
  __device__ __forceinline__ void release(int slot) { ptx::mbarrier_arrive(&empty[slot]); }
#endif
};

}  // namespace lloyd::fast
