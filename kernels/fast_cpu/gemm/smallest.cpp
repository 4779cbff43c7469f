// Compiled once for each instruction set, as simd/nearest.cpp is.
#include "kernels/fast_cpu/gemm/smallest.h"

#include "kernels/core/lane_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/fast_cpu/gemm/smallest.cpp"
#include <hwy/foreach_target.h>  // before highway.h
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace lloyd::fast_cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Lanes = hn::ScalableTag<float>;
using Indices = hn::RebindToSigned<Lanes>;
constexpr std::int64_t kLanes = hn::MaxLanes(Lanes());
constexpr std::int64_t kVectors = 4;  // enough comparisons in flight
static_assert(kBlock % (kLanes * kVectors) == 0);

HWY_ATTR void keep_smallest(const float (*products)[kBlock], const float* starts, int first,
                            int count, Smallest& smallest) {
  const Lanes d;
  const Indices di;
  for (std::int64_t p = 0; p < kBlock; p += kLanes * kVectors) {
    hn::Vec<Lanes> best[kVectors];
    hn::Vec<Indices> label[kVectors];
#pragma GCC unroll 8
    for (std::int64_t v = 0; v < kVectors; ++v) {
      best[v] = hn::Load(d, smallest.score + p + v * kLanes);
      label[v] = hn::Load(di, smallest.label + p + v * kLanes);
    }
    for (int j = 0; j < count; ++j) {
      const auto start = hn::Set(d, starts[j]);
      const auto index = hn::Set(di, first + j);
#pragma GCC unroll 8
      for (std::int64_t v = 0; v < kVectors; ++v) {
        const auto score = hn::Sub(start, hn::Load(d, products[j] + p + v * kLanes));
        const auto nearer = hn::Lt(score, best[v]);
        best[v] = hn::Min(score, best[v]);
        label[v] = hn::IfThenElse(hn::RebindMask(di, nearer), index, label[v]);
      }
    }
#pragma GCC unroll 8
    for (std::int64_t v = 0; v < kVectors; ++v) {
      hn::Store(best[v], d, smallest.score + p + v * kLanes);
      hn::Store(label[v], di, smallest.label + p + v * kLanes);
    }
  }
}

}  // namespace lloyd::fast_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lloyd::fast_cpu {

HWY_EXPORT(keep_smallest);

void keep_smallest(const float (*products)[kBlock], const float* starts, int first, int count,
                   Smallest& smallest) {
  HWY_DYNAMIC_DISPATCH(keep_smallest)(products, starts, first, count, smallest);
}

}  // namespace lloyd::fast_cpu
#endif
