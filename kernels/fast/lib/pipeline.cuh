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

  /// kStep must divide kDepth.
  template <int kStep = 1>
  __device__ __forceinline__ void advance() {
    if ((slot += kStep) == kDepth) slot = 0, parity ^= 1;
  }
};

/// The place of the count-th use of a ring of 1 or 2 stages, for who counts anyway.
template <int kDepth>
__device__ __forceinline__ RingPlace<kDepth> ring_place(int count) {
  static_assert(kDepth == 1 || kDepth == 2);
  return kDepth == 1 ? RingPlace<kDepth>{0, count & 1}
                     : RingPlace<kDepth>{count & 1, count >> 1 & 1};
}

/// The barriers of a ring of kDepth stages, in shared memory.
template <int kDepth>
struct Ring {
  std::uint64_t full[kDepth], empty[kDepth];

#if LLOYD_HOPPER_CODE
  /// By one thread, before fence_mbarrier_init() and the block's barrier. `producers` and
  /// `consumers`: how many threads commit and release a stage.
  __device__ __forceinline__ void init(int producers, int consumers) {
    for (int slot = 0; slot < kDepth; ++slot) {
      ptx::mbarrier_init(&full[slot], producers);
      ptx::mbarrier_init(&empty[slot], consumers);
    }
  }

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
  /// Producer that has written the stage by its own stores.
  template <typename Place>
  __device__ __forceinline__ void commit(Place at) {
    ptx::mbarrier_arrive(&full[at.slot]);
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
