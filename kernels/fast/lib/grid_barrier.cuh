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

}  // namespace lloyd::fast
