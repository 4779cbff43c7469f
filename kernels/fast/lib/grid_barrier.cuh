// A barrier of all blocks of a cooperative launch.
#pragma once

#include <cuda/atomic>

namespace lloyd::fast {

/// Every block is resident, so it may wait for the others: until `arrived`, which only counts up,
/// has reached `wanted`. What they did before is seen after.
__device__ __forceinline__ void wait_for_all_blocks(unsigned* arrived, unsigned wanted) {
  __syncthreads();
  if (threadIdx.x == 0) {
    const ::cuda::atomic_ref<unsigned, ::cuda::thread_scope_device> count(*arrived);
    count.fetch_add(1, ::cuda::memory_order_release);
    while (count.load(::cuda::memory_order_acquire) < wanted) {
    }
  }
  __syncthreads();
}

/// The same for up to 2^16 − 1 blocks and a counter that is 0 before. Returns whether any thread of
/// any block came with `raised`. The upper half of the counter counts the blocks that have one.
__device__ __forceinline__ bool any_of_all_blocks(unsigned* arrived, bool raised) {
  constexpr unsigned kRaised = 1u << 16;
  raised = __syncthreads_or(raised) != 0;
  if (threadIdx.x == 0) {
    const ::cuda::atomic_ref<unsigned, ::cuda::thread_scope_device> count(*arrived);
    count.fetch_add(raised ? kRaised + 1 : 1, ::cuda::memory_order_release);
    unsigned seen;
    do {
      seen = count.load(::cuda::memory_order_acquire);
    } while (seen % kRaised < gridDim.x);
    raised = seen >= kRaised;
  }
  return __syncthreads_or(raised && threadIdx.x == 0) != 0;
}

}  // namespace lloyd::fast
