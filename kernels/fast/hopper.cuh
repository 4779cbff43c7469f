// Hopper's own instructions, one function each: barriers in shared memory (mbarrier), bulk copies, matrix products of a
// warpgroup (wgmma). Names and operands are those of the PTX guide. Bulk copies and mbarriers exist from sm_90 on; wgmma and
// setmaxnreg only in code compiled for sm_90a, which kernels/CMakeLists.txt asks for by file (LLOYD_SM90A_VERSIONS).
#pragma once

#include <cuda.h>  // CUtensorMap
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "kernels/core/cuda.h"

// Set where the instructions of this file may be used: device code compiled for sm_90a. (The host pass sees no bodies.)
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define LLOYD_HOPPER_CODE 1
#else
#define LLOYD_HOPPER_CODE 0
#endif

namespace lloyd::fast::hopper {

constexpr int kPanel = 64;  // 16-bit values in the 128 bytes of a swizzled row

#if LLOYD_HOPPER_CODE

__device__ __forceinline__ std::uint32_t shared_address(const void* pointer) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer));
}

// ---- mbarrier: 8 bytes of shared memory. A phase ends when all arrivals and all announced bytes have come.

__device__ __forceinline__ void barrier_init(std::uint64_t* barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)),
               "r"(arrivals));
}

/// After the inits, by the thread that made them, before the block's barrier: bulk copies see them too.
__device__ __forceinline__ void barrier_init_fence() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

__device__ __forceinline__ void barrier_arrive(std::uint64_t* barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier))
               : "memory");
}

/// Arrives, and announces `bytes` that bulk copies will bring.
__device__ __forceinline__ void barrier_arrive_expect(std::uint64_t* barrier, std::uint32_t bytes) {
  asm volatile(
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)),
      "r"(bytes)
      : "memory");
}

/// Waits until the phase of this parity (0 for a barrier's first, then 1, 0, ...) has ended. A fresh barrier's phase "before
/// the first" has ended, so that a producer may start by waiting for parity 1.
__device__ __forceinline__ void barrier_wait(std::uint64_t* barrier, int parity) {
  asm volatile(
      "{\n"
      ".reg .pred done;\n"
      "again:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@!done bra again;\n"
      "}\n" ::"r"(shared_address(barrier)),
      "r"(parity)
      : "memory");
}

// ---- bulk copies, by one thread: 16-byte aligned, a multiple of 16 bytes.

__device__ __forceinline__ void bulk_copy(void* shared, const void* global, std::uint32_t bytes,
                                          std::uint64_t* barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(shared_address(shared)),
      "l"(global), "r"(bytes), "r"(shared_address(barrier))
      : "memory");
}

/// A box of the two-dimensional tensor `map` describes, from column x and row y on; 1024-byte aligned if swizzled.
__device__ __forceinline__ void tensor_copy(void* shared, const CUtensorMap& map, int x, int y,
                                            std::uint64_t* barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, "
      "%3}], [%4];" ::"r"(shared_address(shared)),
      "l"(&map), "r"(x), "r"(y), "r"(shared_address(barrier))
      : "memory");
}

/// To the same places of all blocks of the cluster in `blocks`, a bit each; `barrier` is that of each.
__device__ __forceinline__ void bulk_copy_multicast(void* shared, const void* global,
                                                    std::uint32_t bytes, std::uint64_t* barrier,
                                                    std::uint16_t blocks) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], "
      "[%1], %2, [%3], %4;" ::"r"(shared_address(shared)),
      "l"(global), "r"(bytes), "r"(shared_address(barrier)), "h"(blocks)
      : "memory");
}

/// To the L2 cache.
__device__ __forceinline__ void bulk_prefetch(const void* global, std::uint32_t bytes) {
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(global), "r"(bytes) : "memory");
}

// ---- clusters of blocks.

__device__ __forceinline__ int cluster_rank() {
  int rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

/// By all threads of all blocks of the cluster.
__device__ __forceinline__ void cluster_sync() {
  asm volatile(
      "barrier.cluster.arrive.release.aligned;\n"
      "barrier.cluster.wait.acquire.aligned;\n" ::
          : "memory");
}

/// At the barrier that stands in block `rank` where `barrier` stands in this one. Orders no memory operations, for to release
/// them to another block is a MEMBAR.ALL.GPU (streamed.cuh says what that cost): only to tell what a wait has made certain.
__device__ __forceinline__ void barrier_arrive_at(std::uint64_t* barrier, int rank) {
  asm volatile(
      "{\n"
      ".reg .b32 there;\n"
      "mapa.shared::cluster.u32 there, %0, %1;\n"
      "mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [there];\n"
      "}\n" ::"r"(shared_address(barrier)),
      "r"(rank)
      : "memory");
}

// ---- sums in global memory.

/// sums[0..3] += value, in one instruction; 16-byte aligned.
__device__ __forceinline__ void add4(float* sums, float4 value) {
  asm volatile("red.relaxed.gpu.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(sums),
               "f"(value.x), "f"(value.y), "f"(value.z), "f"(value.w)
               : "memory");
}

// ---- registers: by all warps of a warpgroup.

template <int kRegisters>
__device__ __forceinline__ void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
template <int kRegisters>
__device__ __forceinline__ void give_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

// ---- wgmma. D (64 × N, fp32) += A (64 × 16) · B (N × 16)ᵀ, by the 128 threads of a warpgroup.
//
// D        thread t of the warpgroup (warp w = t / 32, group g = t % 32 / 4, lane q = t % 4) holds, for each block b of 8
//          columns, d[4b], d[4b+1]: row 16w + g, columns 8b + 2q, 8b + 2q + 1; d[4b+2], d[4b+3]: row 16w + g + 8.
// A        in registers as for mma.m16n8k16: a0 (row g, k 2q, 2q+1), a1 (row g+8), a2 (row g, k 2q+8, 2q+9), a3 (row g+8).
//          Or in shared memory, laid out as B.
// B        in shared memory, K-major with the 128-byte swizzle: panels of 64 k (128 bytes a row), within one the 16-byte
//          chunk c of row n stands at n·128 + (c ^ n % 8)·16. Panels start at multiples of 1024 bytes.

/// Order: fence, products, commit, wait. The fence before the first product and after registers were written otherwise.
__device__ __forceinline__ void wgmma_fence() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ __forceinline__ void wgmma_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
/// Until at most `kPending` of the latest groups are unfinished. ptxas 13.0 serialises every product of a kernel (C7514, which
/// it only says under -v) when one is in flight over a loop's back edge and its accumulators are read in the next turn:
/// wait for 0 at the end of a loop's body.
template <int kPending>
__device__ __forceinline__ void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}
/// Ties a register to this place: the compiler may not move its reads before the wait above, nor its writes after the fence.
__device__ __forceinline__ void hold(float& value) { asm volatile("" : "+f"(value)::"memory"); }

/// Of rows in the layout above; add 2 for the next 16 k of the panel (32 bytes), panel bytes / 16 for the next panel.
__device__ __forceinline__ std::uint64_t descriptor(const void* panel) {
  constexpr std::uint64_t kSwizzle128 = std::uint64_t{1} << 62;
  constexpr std::uint64_t kGroupStride = std::uint64_t{1024 >> 4} << 32;  // 8 rows further
  constexpr std::uint64_t kLeading = std::uint64_t{1} << 16;              // unused with a swizzle
  return kSwizzle128 | kGroupStride | kLeading | ((shared_address(panel) & 0x3ffff) >> 4);
}

/// Of rows of 32 k (64 bytes) with the 64-byte swizzle: the 16-byte chunk c of row n stands at n·64 + (c ^ n / 2 % 4)·16.
__device__ __forceinline__ std::uint64_t descriptor64(const void* panel) {
  constexpr std::uint64_t kSwizzle64 = std::uint64_t{2} << 62;
  constexpr std::uint64_t kGroupStride = std::uint64_t{512 >> 4} << 32;  // 8 rows further
  constexpr std::uint64_t kLeading = std::uint64_t{1} << 16;             // unused with a swizzle
  return kSwizzle64 | kGroupStride | kLeading | ((shared_address(panel) & 0x3ffff) >> 4);
}

/// Of rows of 16 k (32 bytes) with the 32-byte swizzle: the 16-byte chunk c of row n stands at n·32 + (c ^ n / 4 % 2)·16.
__device__ __forceinline__ std::uint64_t descriptor32(const void* panel) {
  constexpr std::uint64_t kSwizzle32 = std::uint64_t{3} << 62;
  constexpr std::uint64_t kGroupStride = std::uint64_t{256 >> 4} << 32;  // 8 rows further
  constexpr std::uint64_t kLeading = std::uint64_t{1} << 16;             // unused with a swizzle
  return kSwizzle32 | kGroupStride | kLeading | ((shared_address(panel) & 0x3ffff) >> 4);
}

// The accumulators as operands, and by their numbers; A's, B's and the predicate's operands follow them.
#define LLOYD_D8(i)                                                                   \
  "+f"(d[i]), "+f"(d[(i) + 1]), "+f"(d[(i) + 2]), "+f"(d[(i) + 3]), "+f"(d[(i) + 4]), \
      "+f"(d[(i) + 5]), "+f"(d[(i) + 6]), "+f"(d[(i) + 7])
#define LLOYD_D32 LLOYD_D8(0), LLOYD_D8(8), LLOYD_D8(16), LLOYD_D8(24)
#define LLOYD_D56 LLOYD_D32, LLOYD_D8(32), LLOYD_D8(40), LLOYD_D8(48)
#define LLOYD_D64 LLOYD_D56, LLOYD_D8(56)
#define LLOYD_D128                                                                                \
  LLOYD_D64, LLOYD_D8(64), LLOYD_D8(72), LLOYD_D8(80), LLOYD_D8(88), LLOYD_D8(96), LLOYD_D8(104), \
      LLOYD_D8(112), LLOYD_D8(120)
#define LLOYD_R32                                                                              \
  "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24," \
  "%25,%26,%27,%28,%29,%30,%31"
#define LLOYD_R56                                                                 \
  LLOYD_R32                                                                       \
  ",%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50," \
  "%51,%52,%53,%54,%55"
#define LLOYD_R64 LLOYD_R56 ",%56,%57,%58,%59,%60,%61,%62,%63"
#define LLOYD_R128                                                                              \
  LLOYD_R64                                                                                     \
  ",%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79,%80,%81,%82,%83,%84,%85,"   \
  "%86,%87,%88,%89,%90,%91,%92,%93,%94,%95,%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106," \
  "%107,%108,%109,%110,%111,%112,%113,%114,%115,%116,%117,%118,%119,%120,%121,%122,%123,%124,%" \
  "125,%126,%127"
#define LLOYD_WGMMA_RS(columns, type, sign, count, a0, a1, a2, a3, b, k)             \
  asm volatile("{\n.reg .pred keep;\nsetp.ne.b32 keep, %" #k                         \
               ", 0;\n"                                                              \
               "wgmma.mma_async.sync.aligned.m64n" #columns "k16.f32." type "." type \
               " {" LLOYD_R##count "}, {%" #a0 ",%" #a1 ",%" #a2 ",%" #a3 "}, %" #b  \
                                   ", keep, " sign ", 1, 0;\n}\n"                    \
               : LLOYD_D##count                                                      \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b_descriptor), "r"(keep))
#define LLOYD_WGMMA_SS(columns, type, sign, count, a, b, k)                             \
  asm volatile("{\n.reg .pred keep;\nsetp.ne.b32 keep, %" #k                            \
               ", 0;\n"                                                                 \
               "wgmma.mma_async.sync.aligned.m64n" #columns "k16.f32." type "." type    \
               " {" LLOYD_R##count "}, %" #a ", %" #b ", keep, " sign ", 1, 0, 0;\n}\n" \
               : LLOYD_D##count                                                         \
               : "l"(a_descriptor), "l"(b_descriptor), "r"(keep))
#define LLOYD_PRODUCT(columns, count, o0, o1, o2, o3, o4, o5)                                  \
  template <typename T, int kSign>                                                             \
  struct Product<T, columns, kSign> {                                                          \
    static constexpr bool kHalf = std::is_same_v<T, __half>;                                   \
    static constexpr int kRegisters = count;                                                   \
    static __device__ __forceinline__ void run(float (&d)[count], const std::uint32_t (&a)[4], \
                                               std::uint64_t b_descriptor, int keep) {         \
      if constexpr (kHalf && kSign == 1)                                                       \
        LLOYD_WGMMA_RS(columns, "f16", "1", count, o0, o1, o2, o3, o4, o5);                    \
      else if constexpr (kHalf)                                                                \
        LLOYD_WGMMA_RS(columns, "f16", "-1", count, o0, o1, o2, o3, o4, o5);                   \
      else if constexpr (kSign == 1)                                                           \
        LLOYD_WGMMA_RS(columns, "bf16", "1", count, o0, o1, o2, o3, o4, o5);                   \
      else                                                                                     \
        LLOYD_WGMMA_RS(columns, "bf16", "-1", count, o0, o1, o2, o3, o4, o5);                  \
    }                                                                                          \
    static __device__ __forceinline__ void run(float (&d)[count], std::uint64_t a_descriptor,  \
                                               std::uint64_t b_descriptor, int keep) {         \
      if constexpr (kHalf && kSign == 1)                                                       \
        LLOYD_WGMMA_SS(columns, "f16", "1", count, o0, o1, o2);                                \
      else if constexpr (kHalf)                                                                \
        LLOYD_WGMMA_SS(columns, "f16", "-1", count, o0, o1, o2);                               \
      else if constexpr (kSign == 1)                                                           \
        LLOYD_WGMMA_SS(columns, "bf16", "1", count, o0, o1, o2);                               \
      else                                                                                     \
        LLOYD_WGMMA_SS(columns, "bf16", "-1", count, o0, o1, o2);                              \
    }                                                                                          \
  }

/// Product<T, columns, sign>::run(d, a, b, keep): D += sign·A·Bᵀ for 64, 112, 128 or 256 columns, T __half or __nv_bfloat16, sign
/// 1 or −1; without `keep` D is cleared first. `a` is four registers, which must not change until the product is done, or
/// a descriptor.
template <typename T, int kColumns, int kSign = 1>
struct Product;
LLOYD_PRODUCT(64, 32, 32, 33, 34, 35, 36, 37);
LLOYD_PRODUCT(112, 56, 56, 57, 58, 59, 60, 61);
LLOYD_PRODUCT(128, 64, 64, 65, 66, 67, 68, 69);
LLOYD_PRODUCT(256, 128, 128, 129, 130, 131, 132, 133);

#undef LLOYD_PRODUCT
#undef LLOYD_WGMMA_SS
#undef LLOYD_WGMMA_RS
#undef LLOYD_R128
#undef LLOYD_R64
#undef LLOYD_R56
#undef LLOYD_R32
#undef LLOYD_D128
#undef LLOYD_D64
#undef LLOYD_D56
#undef LLOYD_D32
#undef LLOYD_D8

#endif  // LLOYD_HOPPER_CODE

/// How the copy engine reads `rows` rows of `padded` values (a multiple of kPanel): in boxes of box_rows rows and a panel, with
/// the 128-byte swizzle.
template <typename T>
CUtensorMap map_of(const T* points, std::int64_t rows, int padded, int box_rows) {
  void* encode = nullptr;
  cudaDriverEntryPointQueryResult found{};
  LLOYD_CUDA_CHECK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &encode, 12'000,
                                                    cudaEnableDefault, &found));
  const cuuint64_t sizes[] = {static_cast<cuuint64_t>(padded), static_cast<cuuint64_t>(rows)};
  const cuuint64_t pitch[] = {static_cast<cuuint64_t>(padded) * sizeof(T)};
  const cuuint32_t box[] = {kPanel, static_cast<cuuint32_t>(box_rows)}, steps[] = {1, 1};
  CUtensorMap map{};
  const CUresult result =
      found != cudaDriverEntryPointSuccess
          ? CUDA_ERROR_NOT_FOUND
          : reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(encode)(
                &map,
                std::is_same_v<T, __half> ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16
                                          : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
                2, const_cast<T*>(points), sizes, pitch, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
                CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS)
    throw std::runtime_error("cuTensorMapEncodeTiled: error " + std::to_string(result));
  return map;
}

}  // namespace lloyd::fast::hopper
