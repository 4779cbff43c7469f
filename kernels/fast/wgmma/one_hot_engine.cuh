// Few clusters on Hopper: labels and sums from one read of the points. The sums are a product, too:
// sums (clusters × dimensions) += one-hot (clusters × points) · points, where the one-hot matrix
// has a 1 where a point has that label. A slice of 64 points that was multiplied for its scores is
// still in shared memory, and wgmma can read it across (run_across).
//
// A persistent block on each multiprocessor: one thread copies slices, and two to four warpgroups
// take turns at them. Each has the sums of its own slices in registers. While one looks for labels,
// the products of the others run. At the end the sums of a block go to its slot; one_hot_finish.cuh
// adds up the slots. Which block adds up a point, and when, never changes: neither do the bits.
#pragma once

#include <cuda.h>  // CUtensorMap

#include <cstdint>

#include "kernels/fast/lib/dependent_launch.cuh"
#include "kernels/fast/lib/ptx/setmaxnreg.cuh"
#include "kernels/fast/lib/ptx/tma.cuh"
#include "kernels/fast/lib/warp.cuh"
#include "kernels/fast/wgmma/one_hot_consumer.cuh"

namespace lloyd::fast {
namespace {
namespace one_hot {

template <typename T, int kPanels, int kColumns>
using TailOf = Tail<T, Sizes<kPanels, kColumns>::kDepth, Sizes<kPanels, kColumns>::kConsumers>;

#if LLOYD_HOPPER_CODE
// The producer, one thread: copies the block's slices and their norms. No kernel of the loop writes
// them, so it does not wait for the previous one.
template <typename T, int kPanels, int kColumns>
__device__ __forceinline__ void copy_slices(const Assignment& in, const CUtensorMap& map,
                                            char* stages, TailOf<T, kPanels, kColumns>& tail) {
  using Sizes = one_hot::Sizes<kPanels, kColumns>;
  const int slices = static_cast<int>((in.n + kSlice - 1) / kSlice);
  RingPlace<Sizes::kDepth> at;
  for (int slice = blockIdx.x; slice < slices; slice += gridDim.x) {
    tail.ring.acquire(at);
    tail.ring.commit(at, Sizes::kStage + kSlice * 4);
    std::uint64_t* full = &tail.ring.full[at.slot];
    for (int panel = 0; panel < kPanels; ++panel)
      tensor_copy(stages + at.slot * Sizes::kStage + panel * (kSlice * 128), map, panel * kPanel,
                  slice * kSlice, full);
    bulk_copy(tail.half_norms[at.slot], in.half_norms + std::int64_t{slice} * kSlice, kSlice * 4,
              full);
    at.advance();
  }
}
#endif

// kPanels: of 64 dimensions; kColumns: 64 or 128, at least k.
template <typename T, int kPanels, int kColumns>
__global__ void __launch_bounds__(Sizes<kPanels, kColumns>::kThreads, 1)
    assign(const __grid_constant__ Assignment in, const __grid_constant__ CUtensorMap map,
           const __grid_constant__ Slots slots) {
#if LLOYD_HOPPER_CODE
  using Sizes = one_hot::Sizes<kPanels, kColumns>;
  using Tail = TailOf<T, kPanels, kColumns>;
  static_assert(sizeof(Tail) + 1024 <= Sizes::kOther);
  extern __shared__ char raw[];
  char* centroids = raw + panel_padding(raw);
  char* stages = centroids + Sizes::kCentroids;
  auto& tail = *reinterpret_cast<Tail*>(stages + Sizes::kDepth * Sizes::kStage);
  if (threadIdx.x == 0) {
    mbarrier_init(&tail.centroids_full, 1);
    for (int i = 0; i < Sizes::kDepth; ++i) {
      mbarrier_init(&tail.ring.full[i], 1);
      mbarrier_init(&tail.ring.empty[i], 4);  // a lane of each warp of a consumer
    }
    fence_mbarrier_init();
  }
  for (int j = threadIdx.x; j < kMostColumns; j += Sizes::kThreads) tail.counts[j] = 0;
  __syncthreads();
  let_next_kernel_start();
  const int warpgroup = uniform(threadIdx.x / 128);
  if (warpgroup == 0) {
    setmaxnreg_dec<kProducerRegisters>();
    if (threadIdx.x == 0) {
      copy_slices<T, kPanels, kColumns>(in, map, stages, tail);
    } else if (threadIdx.x == 32) {
      wait_for_previous_kernel();
      mbarrier_arrive_expect_tx(&tail.centroids_full, Sizes::kCentroids + kColumns * 4);
      bulk_copy(centroids, in.centroids, Sizes::kCentroids, &tail.centroids_full);
      bulk_copy(tail.bias, in.centroids + Sizes::kCentroids, kColumns * 4, &tail.centroids_full);
    }
  } else {
    setmaxnreg_inc<Sizes::kRegisters>();
    wait_for_previous_kernel();
    Consumer<T, kPanels, kColumns>{in, slots, centroids, stages, tail, warpgroup - 1}.run(stages);
  }
#else
  __trap();
#endif
}

}  // namespace one_hot
}  // namespace
}  // namespace lloyd::fast
