// Highway compiles what is between HWY_BEFORE_NAMESPACE and HWY_AFTER_NAMESPACE once for each
// instruction set (foreach_target.h includes this file again), and chooses one at run time.
#include "kernels/fast_cpu/bounds/steps.h"

#include <limits>

#include "kernels/core/lane_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/fast_cpu/bounds/steps.cpp"
#include <hwy/foreach_target.h>  // before highway.h
#include <hwy/highway.h>

#ifndef LLOYD_FAST_CPU_BOUNDS_ONCE
#define LLOYD_FAST_CPU_BOUNDS_ONCE
namespace lloyd::fast_cpu {

/// More than rounding takes from an upper bound, or adds to a lower one, in one step.
constexpr float kUp = 1 + 0x1p-21f, kDown = 1 - 0x1p-21f;

}  // namespace lloyd::fast_cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace lloyd::fast_cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Lanes = hn::ScalableTag<float>;
using Indices = hn::RebindToSigned<Lanes>;
constexpr std::int64_t kLanes = hn::MaxLanes(Lanes());

HWY_ATTR std::uint64_t loosen(const TileBounds& bounds, const std::int32_t* nearest,
                              const Slack& slack) {
  const Lanes d;
  std::uint64_t open = 0;
  for (std::int64_t p = 0; p < kTile; p += kLanes) {
    const auto label = hn::LoadU(Indices(), nearest + p);
    const auto upper =
        hn::Mul(hn::Add(hn::LoadU(d, bounds.upper + p), hn::GatherIndex(d, slack.moves, label)),
                hn::Set(d, kUp));
    const auto lower =
        hn::Mul(hn::Sub(hn::LoadU(d, bounds.lower + p), hn::GatherIndex(d, slack.others, label)),
                hn::Set(d, kDown));
    hn::StoreU(upper, d, bounds.upper + p);
    hn::StoreU(lower, d, bounds.lower + p);
    const auto half = hn::GatherIndex(d, slack.halves, label);
    const auto closed = hn::Or(hn::Lt(upper, lower), hn::Lt(upper, half));
    std::uint8_t bytes[8] = {};
    hn::StoreMaskBits(d, hn::Not(closed), bytes);
    const std::uint64_t bits = bytes[0] | std::uint64_t{bytes[1]} << 8;
    open |= (bits & ((std::uint64_t{1} << kLanes) - 1)) << p;
  }
  return open;
}

HWY_ATTR void set_bounds(const TileBounds& bounds, const float* lengths, const float* scores,
                         const Scale& scale) {
  const Lanes d;
  const bool is_expanded = scale.score == Score::expanded;
  const auto infinity = hn::Set(d, std::numeric_limits<float>::infinity());
  for (std::int64_t p = 0; p < kTile; p += kLanes) {
    const auto length = hn::LoadU(d, lengths + p);
    const auto sum = hn::Add(length, hn::Set(d, scale.reach));
    const auto error = hn::MulAdd(hn::Mul(sum, sum), hn::Set(d, 2 * scale.relative_error()),
                                  hn::Set(d, scale.underflow()));
    const auto base = is_expanded ? hn::Mul(length, length) : hn::Zero(d);
    const auto factor = hn::Set(d, is_expanded ? 2.0f : 1.0f);
    const auto first = hn::Add(hn::MulAdd(factor, hn::LoadU(d, scores + p), base), error);
    const auto second = hn::Sub(hn::MulAdd(factor, hn::LoadU(d, scores + kTile + p), base), error);
    // Comparisons with NaN are false: infinity above, 0 below.
    const auto upper = hn::IfThenElse(hn::Lt(first, infinity), first, infinity);
    const auto lower = hn::IfThenElseZero(hn::Gt(second, hn::Zero(d)), second);
    hn::StoreU(hn::Mul(hn::Sqrt(hn::Max(upper, hn::Zero(d))), hn::Set(d, kUp)), d,
               bounds.upper + p);
    hn::StoreU(hn::Mul(hn::Sqrt(lower), hn::Set(d, kDown)), d, bounds.lower + p);
  }
}

HWY_ATTR void own_distances(const float* points, const float* centre, int dim,
                            const float* centroids, const std::int32_t* nearest,
                            const std::int32_t* which, int count, float* squared) {
  const Lanes d;
  for (int i = 0; i < count; ++i) {
    const float* x = points + static_cast<std::int64_t>(which[i]) * dim;
    const float* c = centroids + static_cast<std::int64_t>(nearest[which[i]]) * dim;
    auto sum = hn::Zero(d);
    std::int64_t t = 0;
    for (; t + kLanes <= dim; t += kLanes) {
      const auto placed = hn::Sub(hn::LoadU(d, x + t), hn::LoadU(d, centre + t));
      const auto difference = hn::Sub(placed, hn::LoadU(d, c + t));
      sum = hn::MulAdd(difference, difference, sum);
    }
    float total = hn::GetLane(hn::SumOfLanes(d, sum));
    for (; t < dim; ++t) {
      const float difference = (x[t] - centre[t]) - c[t];
      total += difference * difference;
    }
    squared[i] = total;
  }
}

}  // namespace lloyd::fast_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lloyd::fast_cpu {

HWY_EXPORT(loosen);
HWY_EXPORT(set_bounds);
HWY_EXPORT(own_distances);

std::uint64_t loosen(const TileBounds& bounds, const std::int32_t* nearest, const Slack& slack) {
  return HWY_DYNAMIC_DISPATCH(loosen)(bounds, nearest, slack);
}

void set_bounds(const TileBounds& bounds, const float* lengths, const float* scores,
                const Scale& scale) {
  HWY_DYNAMIC_DISPATCH(set_bounds)(bounds, lengths, scores, scale);
}

void own_distances(const float* points, const float* centre, int dim, const float* centroids,
                   const std::int32_t* nearest, const std::int32_t* which, int count,
                   float* squared) {
  HWY_DYNAMIC_DISPATCH(own_distances)
  (points, centre, dim, centroids, nearest, which, count, squared);
}

}  // namespace lloyd::fast_cpu
#endif
