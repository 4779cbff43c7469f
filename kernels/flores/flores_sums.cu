// flores_sums: the sums on the GPU too.
//
// Parent   flores_distribution.
// Idea     Each block copies its points to shared memory, labels them, and sums them there with
//          atomics of block scope (atomicAdd_block). Then one thread per cluster adds the block's
//          sums to the global ones. The host divides.
// Why      flores_distribution spends most of its time on copying the labels to the host and
//          summing there. Here only 4·k·(dim + 1) B are copied. Atomics of block scope need not be
//          visible outside the block, and a block adds each cluster to the global sums once, not
//          once per point.
// Limits   4·(threads_per_block × samples_per_thread × dim + k × (dim + 1)) B of shared memory per
//          block, without opting in to more. The report gives 20 KB for its best block of 512 × 5
//          points, which counts the points alone.
// Study    RTX 3070, 20 iterations, total time: n = 1e8, k = 64 in 3.63 s, against
//          flores_distribution's 7.44 s. Most of it is the generation of the points on the host.
#include "kernels/flores/sums_limits.h"

#if LLOYD_CUDA
#include "kernels/flores/sums.cuh"
#endif

namespace lloyd::flores {
namespace {

LLOYD_CUDA_VERSION(Sums, {.name = "flores_sums",
                          .family = "flores",
                          .backend = Backend::cuda,
                          .parent = "flores_distribution",
                          .axes = {"threads_per_block", "samples_per_thread"},
                          .precisions = {Precision::fp32},
                          .distance = Distance::direct,
                          .study = "flores_alves",
                          .summary = "points and sums of a block in shared memory, atomics of "
                                     "block scope; division on the host",
                          .unsupported = sums_unsupported});

}  // namespace
}  // namespace lloyd::flores
