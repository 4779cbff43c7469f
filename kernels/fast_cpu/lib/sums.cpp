// Compiled once for each instruction set, as simd/nearest.cpp is.
#include "kernels/fast_cpu/lib/sums.h"

#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_RVV | HWY_SSSE3 | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/fast_cpu/lib/sums.cpp"
#include <hwy/foreach_target.h>  // before highway.h
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace lloyd::fast_cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

HWY_ATTR void add_points(const float* points, int count, const float* centre, int dim,
                         const std::int32_t* labels, float* sums) {
  const hn::ScalableTag<float> d;
  constexpr std::int64_t kLanes = hn::MaxLanes(d);
  for (int p = 0; p < count; ++p, points += dim) {
    if (labels[p] < 0) continue;
    float* sum = sums + static_cast<std::int64_t>(labels[p]) * dim;
    std::int64_t t = 0;
    for (; t + kLanes <= dim; t += kLanes) {
      const auto placed = hn::Sub(hn::LoadU(d, points + t), hn::LoadU(d, centre + t));
      hn::StoreU(hn::Add(hn::LoadU(d, sum + t), placed), d, sum + t);
    }
    for (; t < dim; ++t) sum[t] += points[t] - centre[t];
  }
}

}  // namespace lloyd::fast_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lloyd::fast_cpu {

HWY_EXPORT(add_points);

void add_points(const float* points, int count, const float* centre, int dim,
                const std::int32_t* labels, float* sums) {
  HWY_DYNAMIC_DISPATCH(add_points)(points, count, centre, dim, labels, sums);
}

}  // namespace lloyd::fast_cpu
#endif
