// Which centroids can be nearest to a point of a box: Kanungo's filtering (Kanungo et al. 2002,
// IEEE TPAMI 24:881). For each instruction set once, as Highway has it.
//
// A candidate is dropped only if another one, the owner, is strictly nearer to every point of the
// box, in exact arithmetic. So the labels are right whichever candidate is the owner; the nearest
// to the box's centre prunes most. ‖x − c‖² − ‖x − owner‖² is linear in x, so it is smallest in one
// corner, and signs alone tell which corner. Both distances are computed there, each within a
// factor of (1 ± 2^-24)^(D + 2). The margin covers both errors and that of its own product, so that
// rounding never prunes. Of equal candidates all but the one with the lowest index are dropped. NaN
// and overflow prune nothing. Lists are in ascending order of index, so ties go to the lowest.
#if defined(LLOYD_FAST_CPU_TREE_FILTER) == defined(HWY_TARGET_TOGGLE)
#ifdef LLOYD_FAST_CPU_TREE_FILTER
#undef LLOYD_FAST_CPU_TREE_FILTER
#else
#define LLOYD_FAST_CPU_TREE_FILTER
#endif

#include <hwy/highway.h>

#include <limits>

#include "kernels/fast_cpu/tree/assign.h"

HWY_BEFORE_NAMESPACE();
namespace lloyd::fast_cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Lanes = hn::CappedTag<float, kFan>;
using Indices = hn::RebindToSigned<Lanes>;
constexpr std::int64_t kLanes = hn::MaxLanes(Lanes());
static_assert(kFan % kLanes == 0 && kLeaf % kLanes == 0);
using Floats = hn::Vec<Lanes>;
using Mask = hn::Mask<Lanes>;

/// A candidate of a box: a centroid, and its position in the list of the piece.
template <int D>
struct Candidate {
  float x[D];
  std::int32_t position;
};

HWY_INLINE std::uint32_t bits_of(Mask mask) {
  std::uint8_t bytes[8] = {};
  hn::StoreMaskBits(Lanes(), mask, bytes);
  return bytes[0] | std::uint32_t{bytes[1]} << 8;
}

/// Vectors of boxes, or one box in all lanes.
template <int D>
struct Boxes {
  Floats low[D], high[D], middle[D];

  void find_middle() {
    for (int t = 0; t < D; ++t)
      middle[t] = hn::Mul(hn::Set(Lanes(), 0.5f), hn::Add(low[t], high[t]));
  }
};

template <int D>
HWY_INLINE Floats squared_distance(const Floats (&a)[D], const Floats (&b)[D]) {
  Floats sum = hn::Zero(Lanes());
  for (int t = 0; t < D; ++t) {
    const Floats difference = hn::Sub(a[t], b[t]);
    sum = hn::MulAdd(difference, difference, sum);
  }
  return sum;
}

/// Where `owner` drops candidate c. Never where c is the owner itself: then both distances are the
/// same, and the caller says that the index is, too.
template <int D>
HWY_INLINE Mask is_dropped(const Boxes<D>& boxes, const Floats (&owner)[D], const Floats (&c)[D],
                           Mask is_owner) {
  const Lanes d;
  constexpr float kMargin = 1 + (D + 4) * 0x1p-23f, kUnderflow = D * 0x1p-126f;
  Floats own = hn::Zero(d), other = hn::Zero(d);
  Mask equal = hn::Not(is_owner);
  for (int t = 0; t < D; ++t) {
    const Floats corner = hn::IfThenElse(hn::Gt(owner[t], c[t]), boxes.low[t], boxes.high[t]);
    const Floats to_owner = hn::Sub(corner, owner[t]), to_other = hn::Sub(corner, c[t]);
    own = hn::MulAdd(to_owner, to_owner, own);
    other = hn::MulAdd(to_other, to_other, other);
    equal = hn::And(equal, hn::Eq(owner[t], c[t]));
  }
  const Mask farther = hn::Gt(other, hn::MulAdd(own, hn::Set(d, kMargin), hn::Set(d, kUnderflow)));
  return hn::Or(farther, equal);
}

/// Lanes are the kFan boxes of a block. kept[i]: the boxes, as bits, that candidate i may own a
/// point of. owners[b]: the candidate nearest to the centre of box b. Returns the boxes that have
/// no other candidate left.
template <int D>
HWY_INLINE std::uint32_t filter_children(const float* block, const Candidate<D>* list, int count,
                                         std::uint16_t* kept, std::int32_t* owners) {
  const Lanes d;
  const Indices di;
  std::uint32_t owned = 0;
  for (int first = 0; first < kFan; first += kLanes) {
    Boxes<D> boxes;
    for (int t = 0; t < D; ++t) {
      boxes.low[t] = hn::Load(d, block + t * kFan + first);
      boxes.high[t] = hn::Load(d, block + (D + t) * kFan + first);
    }
    boxes.find_middle();

    Floats best = hn::Set(d, std::numeric_limits<float>::infinity());
    hn::Vec<Indices> owner = hn::Zero(di);
    Floats owner_at[D];
    for (int t = 0; t < D; ++t) owner_at[t] = hn::Set(d, list[0].x[t]);
    for (int i = 0; i < count; ++i) {
      Floats c[D];
      for (int t = 0; t < D; ++t) c[t] = hn::Set(d, list[i].x[t]);
      const Floats distance = squared_distance<D>(boxes.middle, c);
      const Mask nearer = hn::Lt(distance, best);
      best = hn::IfThenElse(nearer, distance, best);
      owner = hn::IfThenElse(hn::RebindMask(di, nearer), hn::Set(di, i), owner);
      for (int t = 0; t < D; ++t) owner_at[t] = hn::IfThenElse(nearer, c[t], owner_at[t]);
    }
    hn::StoreU(owner, di, owners + first);

    std::uint32_t seen = 0, seen_twice = 0;
    for (int i = 0; i < count; ++i) {
      Floats c[D];
      for (int t = 0; t < D; ++t) c[t] = hn::Set(d, list[i].x[t]);
      const Mask is_owner = hn::RebindMask(d, hn::Eq(owner, hn::Set(di, i)));
      const std::uint32_t keep =
          bits_of(hn::Not(is_dropped<D>(boxes, owner_at, c, is_owner))) & ((1u << kLanes) - 1);
      kept[i] = static_cast<std::uint16_t>((first == 0 ? 0 : kept[i]) | keep << first);
      seen_twice |= seen & keep;
      seen |= keep;
    }
    owned |= (seen & ~seen_twice) << first;
  }
  return owned;
}

/// Lanes are centroids. `ids`: those that may be nearest to a point of the box, ascending, with
/// room for kLanes more. Returns their number.
template <int D>
HWY_INLINE int filter_box(const float* low, const float* high, const PlacedCentroids& centroids,
                          std::int32_t* ids) {
  const Lanes d;
  const Indices di;
  const int k = centroids.k();
  Boxes<D> box;
  for (int t = 0; t < D; ++t) {
    box.low[t] = hn::Set(d, low[t]);
    box.high[t] = hn::Set(d, high[t]);
  }
  box.find_middle();
  const auto coordinates = [&](int first, Floats(&c)[D]) HWY_ATTR {
    for (int t = 0; t < D; ++t) c[t] = hn::Load(d, centroids.column(t) + first);
  };

  Floats best = hn::Set(d, std::numeric_limits<float>::infinity());
  hn::Vec<Indices> nearest = hn::Zero(di);
  for (int first = 0; first < k; first += kLanes) {
    Floats c[D];
    coordinates(first, c);
    const Floats distance = squared_distance<D>(box.middle, c);
    const Mask nearer =
        hn::And(hn::Lt(distance, best), hn::FirstN(d, static_cast<std::size_t>(k - first)));
    best = hn::IfThenElse(nearer, distance, best);
    nearest = hn::IfThenElse(hn::RebindMask(di, nearer), hn::Iota(di, first), nearest);
  }
  float distances[kLanes];
  std::int32_t indices[kLanes];
  hn::StoreU(best, d, distances);
  hn::StoreU(nearest, di, indices);
  int lane = 0;
  for (int i = 1; i < kLanes; ++i)
    if (distances[i] < distances[lane] ||
        (distances[i] == distances[lane] && indices[i] < indices[lane]))
      lane = i;
  const std::int32_t owner = indices[lane];
  Floats owner_at[D];
  for (int t = 0; t < D; ++t) owner_at[t] = hn::Set(d, centroids.column(t)[owner]);

  int count = 0;
  for (int first = 0; first < k; first += kLanes) {
    Floats c[D];
    coordinates(first, c);
    const hn::Vec<Indices> index = hn::Iota(di, first);
    const Mask is_owner = hn::RebindMask(d, hn::Eq(index, hn::Set(di, owner)));
    const Mask keep = hn::And(hn::Not(is_dropped<D>(box, owner_at, c, is_owner)),
                              hn::FirstN(d, static_cast<std::size_t>(k - first)));
    count += static_cast<int>(hn::CompressStore(index, hn::RebindMask(di, keep), di, ids + count));
  }
  return count;
}

}  // namespace lloyd::fast_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
