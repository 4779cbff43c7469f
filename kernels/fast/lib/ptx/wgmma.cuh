// PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions: wgmma". sm_90a.
//
// D (64 × N, fp32) += A (64 × 16) · B (N × 16)ᵀ, by the 128 threads of a warpgroup.
//   D   With warp w = t / 32, group g = t % 32 / 4 and quad lane q = t % 4, thread t of the
//       warpgroup holds, for each block b of 8 columns, d[4b] and d[4b+1]: row 16w + g, columns 8b
//       + 2q and 8b + 2q + 1; d[4b+2] and d[4b+3]: row 16w + g + 8.
//   A   In registers as for mma.m16n8k16 (mma.cuh), or in shared memory, laid out as B.
//   B   In shared memory, K-major and swizzled (layout.cuh), in panels of as many k as a swizzled
//       row holds. Panels start at multiples of 1024 bytes.
// The order is: wgmma_fence, products, wgmma_commit, wgmma_wait.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <type_traits>

#include "kernels/fast/lib/ptx/target.cuh"

namespace lloyd::fast::ptx {
#if LLOYD_HOPPER_CODE

/// Needed before the first product, and after registers of a product were written by other code.
__device__ __forceinline__ void wgmma_fence() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

/// Ends a group of products.
__device__ __forceinline__ void wgmma_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

/// Waits until at most kPending of the latest groups are unfinished. Wait for 0 at the end of a
/// loop's body: ptxas 13.0 serialises every product of a kernel (warning C7514, shown only under
/// -v) when one is in flight over a loop's back edge and its accumulators are read in the next
/// turn.
template <int kPending>
__device__ __forceinline__ void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}

/// Ties accumulators to this place: the compiler may move neither their reads before a preceding
/// wait nor their writes behind a following fence.
__device__ __forceinline__ void hold(float& value) { asm volatile("" : "+f"(value)::"memory"); }
template <int kCount>
__device__ __forceinline__ void hold(float (&values)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) hold(values[i]);
}

/// Makes this thread's writes to shared memory visible to products and bulk copies (PTX ISA,
/// "membar, fence": the async proxy).
__device__ __forceinline__ void fence_proxy_async() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/// Describes a panel whose rows are kSwizzle bytes (128, 64 or 32) and swizzled within them. Add
/// step_offset() for the next 16 k.
template <int kSwizzle = 128>
__device__ __forceinline__ std::uint64_t wgmma_descriptor(const void* panel) {
  static_assert(kSwizzle == 128 || kSwizzle == 64 || kSwizzle == 32);
  constexpr std::uint64_t kMode = kSwizzle == 128 ? 1 : kSwizzle == 64 ? 2 : 3;
  constexpr std::uint64_t kGroupStride = 8 * kSwizzle >> 4;  // from 8 rows to the next 8
  constexpr std::uint64_t kLeading = 1;                      // unused with a swizzle
  return kMode << 62 | kGroupStride << 32 | kLeading << 16 |
         ((shared_address(panel) & 0x3ffff) >> 4);
}

/// What to add to the descriptor of panels with `rows` rows of 128 bytes for step `s` of 16 k.
/// Descriptors count in 16 bytes: a step is 32 bytes further in the panel, and four are a panel.
__host__ __device__ constexpr int step_offset(int rows, int s) {
  return s / 4 * (rows * 128 >> 4) + s % 4 * 2;
}

/// Describes the same panels read across: the product's k runs over 16 rows, and its columns over
/// the values of these rows, from panel to panel where it has more than 64. (PTX ISA, "Strides":
/// of a matrix that is not K-major, the leading offset is that from panel to panel.) Add 128 for
/// the next 16 rows. `panel_bytes`: a multiple of 1024.
__device__ __forceinline__ std::uint64_t wgmma_across_descriptor(const void* panel,
                                                                 int panel_bytes) {
  constexpr std::uint64_t kMode = 1;                 // rows of 128 bytes
  constexpr std::uint64_t kGroupStride = 1024 >> 4;  // from 8 rows to the next 8
  return kMode << 62 | kGroupStride << 32 | static_cast<std::uint64_t>(panel_bytes >> 4) << 16 |
         ((shared_address(panel) & 0x3ffff) >> 4);
}

// The accumulators as operands (D) and as their numbers in the text (R). The numbers of A's, B's
// and the predicate's operands follow.
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
#define LLOYD_WGMMA_RS(columns, type, sign, across, count, a0, a1, a2, a3, b, k)     \
  asm volatile("{\n.reg .pred keep;\nsetp.ne.b32 keep, %" #k                         \
               ", 0;\n"                                                              \
               "wgmma.mma_async.sync.aligned.m64n" #columns "k16.f32." type "." type \
               " {" LLOYD_R##count "}, {%" #a0 ",%" #a1 ",%" #a2 ",%" #a3 "}, %" #b  \
                                   ", keep, " sign ", 1, " across ";\n}\n"           \
               : LLOYD_D##count                                                      \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b_descriptor), "r"(keep))
#define LLOYD_WGMMA_SS(columns, type, sign, count, a, b, k)                             \
  asm volatile("{\n.reg .pred keep;\nsetp.ne.b32 keep, %" #k                            \
               ", 0;\n"                                                                 \
               "wgmma.mma_async.sync.aligned.m64n" #columns "k16.f32." type "." type    \
               " {" LLOYD_R##count "}, %" #a ", %" #b ", keep, " sign ", 1, 0, 0;\n}\n" \
               : LLOYD_D##count                                                         \
               : "l"(a_descriptor), "l"(b_descriptor), "r"(keep))
#define LLOYD_WGMMA(columns, count, o0, o1, o2, o3, o4, o5)                                    \
  template <typename T, int kSign>                                                             \
  struct Wgmma<T, columns, kSign> {                                                            \
    static constexpr bool kHalf = std::is_same_v<T, __half>;                                   \
    static constexpr int kRegisters = count;                                                   \
    static __device__ __forceinline__ void run(float (&d)[count], const std::uint32_t (&a)[4], \
                                               std::uint64_t b_descriptor, int keep) {         \
      if constexpr (kHalf && kSign == 1)                                                       \
        LLOYD_WGMMA_RS(columns, "f16", "1", "0", count, o0, o1, o2, o3, o4, o5);               \
      else if constexpr (kHalf)                                                                \
        LLOYD_WGMMA_RS(columns, "f16", "-1", "0", count, o0, o1, o2, o3, o4, o5);              \
      else if constexpr (kSign == 1)                                                           \
        LLOYD_WGMMA_RS(columns, "bf16", "1", "0", count, o0, o1, o2, o3, o4, o5);              \
      else                                                                                     \
        LLOYD_WGMMA_RS(columns, "bf16", "-1", "0", count, o0, o1, o2, o3, o4, o5);             \
    }                                                                                          \
    static __device__ __forceinline__ void run_across(float (&d)[count],                       \
                                                      const std::uint32_t (&a)[4],             \
                                                      std::uint64_t b_descriptor, int keep) {  \
      static_assert(kSign == 1);                                                               \
      if constexpr (kHalf)                                                                     \
        LLOYD_WGMMA_RS(columns, "f16", "1", "1", count, o0, o1, o2, o3, o4, o5);               \
      else                                                                                     \
        LLOYD_WGMMA_RS(columns, "bf16", "1", "1", count, o0, o1, o2, o3, o4, o5);              \
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

/// Wgmma<T, columns, sign>::run(d, a, b, keep): D += sign · A · Bᵀ, or D = sign · A · Bᵀ without
/// `keep`. T: __half or __nv_bfloat16; columns: 64, 112, 128 or 256; sign: 1 or −1. `a` is a
/// descriptor or four registers, which must not change until the product is done.
/// run_across(d, a, b, keep): D += A · B, where `b` is a wgmma_across_descriptor().
template <typename T, int kColumns, int kSign = 1>
struct Wgmma;
LLOYD_WGMMA(64, 32, 32, 33, 34, 35, 36, 37);
LLOYD_WGMMA(112, 56, 56, 57, 58, 59, 60, 61);
LLOYD_WGMMA(128, 64, 64, 65, 66, 67, 68, 69);
LLOYD_WGMMA(256, 128, 128, 129, 130, 131, 132, 133);

#undef LLOYD_WGMMA
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

#endif
}  // namespace lloyd::fast::ptx
