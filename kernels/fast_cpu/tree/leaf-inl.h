// The points of a leaf that several centroids share. For each instruction set once, as Highway has
// it.
#if defined(LLOYD_FAST_CPU_TREE_LEAF) == defined(HWY_TARGET_TOGGLE)
#ifdef LLOYD_FAST_CPU_TREE_LEAF
#undef LLOYD_FAST_CPU_TREE_LEAF
#else
#define LLOYD_FAST_CPU_TREE_LEAF
#endif

#include "kernels/fast_cpu/tree/filter-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lloyd::fast_cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// nearest[p]: the place in the list of the candidate that is nearest to point p, the first on
/// ties.
template <int D>
HWY_INLINE void label_leaf(const float* points, const Candidate<D>* list, int count,
                           std::int32_t* nearest) {
  const Lanes d;
  const Indices di;
  constexpr int kVectors = 2;  // that share the loads of a candidate
  static_assert(kLeaf % (kVectors * kLanes) == 0);
  for (int first = 0; first < kLeaf; first += kVectors * kLanes) {
    Floats x[kVectors][D], best[kVectors];
    hn::Vec<Indices> label[kVectors];
    for (int v = 0; v < kVectors; ++v) {
      for (int t = 0; t < D; ++t) x[v][t] = hn::Load(d, points + t * kLeaf + first + v * kLanes);
      best[v] = hn::Set(d, std::numeric_limits<float>::infinity());
      label[v] = hn::Zero(di);
    }
    for (int i = 0; i < count; ++i) {
      Floats c[D];
      for (int t = 0; t < D; ++t) c[t] = hn::Set(d, list[i].x[t]);
      for (int v = 0; v < kVectors; ++v) {
        const Floats distance = squared_distance<D>(x[v], c);
        const Mask nearer = hn::Lt(distance, best[v]);
        best[v] = hn::Min(distance, best[v]);
        label[v] = hn::IfThenElse(hn::RebindMask(di, nearer), hn::Set(di, i), label[v]);
      }
    }
    for (int v = 0; v < kVectors; ++v) hn::Store(label[v], di, nearest + first + v * kLanes);
  }
}

/// Adds the points to the sums of their candidates. nearest[p] < 0: no point. Each candidate's
/// points of this leaf are added up in fp32, in a fixed order, and then in double.
template <int D>
HWY_INLINE void add_leaf(const float* points, const std::int32_t* nearest, const Candidate<D>* list,
                         int count, double* sums) {
  constexpr int kFewCandidates = 8;
  const Lanes d;
  const Indices di;
  if (count > kFewCandidates) {
    for (int p = 0; p < kLeaf && nearest[p] >= 0; ++p) {
      double* to = sums + static_cast<std::int64_t>(list[nearest[p]].position) * (D + 1);
      for (int t = 0; t < D; ++t) to[t] += points[t * kLeaf + p];
      ++to[D];
    }
    return;
  }
  for (int i = 0; i < count; ++i) {
    Floats total[D];
    for (int t = 0; t < D; ++t) total[t] = hn::Zero(d);
    std::size_t found = 0;
    for (int first = 0; first < kLeaf; first += kLanes) {
      const auto has = hn::Eq(hn::Load(di, nearest + first), hn::Set(di, i));
      found += hn::CountTrue(di, has);
      const Mask mask = hn::RebindMask(d, has);
      for (int t = 0; t < D; ++t)
        total[t] =
            hn::Add(total[t], hn::IfThenElseZero(mask, hn::Load(d, points + t * kLeaf + first)));
    }
    if (found == 0) continue;
    double* to = sums + static_cast<std::int64_t>(list[i].position) * (D + 1);
    for (int t = 0; t < D; ++t) to[t] += hn::GetLane(hn::SumOfLanes(d, total[t]));
    to[D] += static_cast<double>(found);
  }
}

}  // namespace lloyd::fast_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
