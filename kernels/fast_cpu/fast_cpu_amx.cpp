// fast_cpu_amx: fp32's exact labels from bf16 products of the tile unit.
//
// Parent   fast_cpu_gemm.
// Idea     Each number is two bf16 parts. Three products of parts (high·high, high·low, low·high)
//          give a score with a proven error bound, which most points' labels survive: their second
//          best score is farther away than the bound. The others are open. The tile unit multiplies
//          them once more, now to list the centroids that the bound leaves, and float64 distances,
//          those of the oracle, decide between them.
// Why      The tile unit makes 16 times as many multiply-adds per cycle as the vector units, which
//          meanwhile compare the scores of the tiles before.
// Limits   Intel CPUs with AMX. Dimensions come in steps of 32. Labels are those of the float64
//          oracle, ties to the lowest index, but where many centroids are equally near, float64
//          decides everything. Twice the memory of the points.
// Floor    3·n·k·dim bf16 multiply-adds at the rate of all tile units, 512 per cycle each.
// More     lib/piece_loop.cpp has the loop around label(), amx/engine-inl.h the products.
//          amx/NOTES.md: the bound and its proof.
#include <hwy/aligned_allocator.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "kernels/core/limits.h"
#include "kernels/core/version.h"
#include "kernels/fast_cpu/amx/bound.h"
#include "kernels/fast_cpu/amx/engine.h"
#include "kernels/fast_cpu/amx/placement.h"
#include "kernels/fast_cpu/lib/piece_loop.h"

namespace lloyd::fast_cpu::amx {
namespace {

template <typename T>
using Array = hwy::AlignedFreeUniquePtr<T[]>;
template <typename T>
Array<T> allocate(std::int64_t count) {
  auto array = hwy::AllocateAligned<T>(static_cast<std::size_t>(count));
  if (!array) throw std::bad_alloc();
  return array;
}

class Amx : public PieceLoop {
 public:
  explicit Amx(const Engine& engine) : engine_(engine) {}

  void prepare(const Problem& problem, Context& context) override {
    divide(problem, context, kVectors, kWholePieces);  // open points are taken out of order
    bound_ = std::make_unique<Bound>(problem.dim);
    steps_ = steps_of(problem.dim);
    groups_ = (problem.k + kVectors - 1) / kVectors;
    place_ = std::make_unique<Placement>(problem, threads_);
    const std::int64_t blocks = (problem.n + kVectors - 1) / kVectors;
    points_ = allocate<std::uint16_t>(blocks * block_values());
    reach_ = allocate<float>(blocks * kVectors);
    norms_ = allocate<float>(blocks * kVectors);
    for_each_piece([this](const Piece& piece) {
      for (std::int64_t first = piece.first; first < piece.last; first += kVectors) pack(first);
    });
    const std::int64_t rows = std::int64_t{groups_} * kVectors;
    centroids_ = allocate<std::uint16_t>(groups_ * block_values());
    std::fill_n(centroids_.get(), groups_ * block_values(), std::uint16_t{0});
    const CentroidBound none = Bound::of_no_centroid();
    starts_.assign(static_cast<std::size_t>(rows), none.start);
    centroid_norms_.assign(static_cast<std::size_t>(rows), none.norm);
    errors_.assign(static_cast<std::size_t>(rows), none.error);
  }

 private:
  // Points whose label the scores do not give, until there are as many as a block has.
  struct Open {
    explicit Open(const Amx& amx)
        : points(allocate<std::uint16_t>(amx.block_values())),
          candidates(static_cast<std::size_t>(amx.groups_) * kVectors) {
      std::fill_n(points.get(), amx.block_values(), std::uint16_t{0});
    }
    int count = 0;
    std::int64_t indices[kVectors];
    Array<std::uint16_t> points;
    alignas(64) float reach[kVectors] = {}, limits[kVectors] = {};
    std::vector<std::uint32_t> candidates;
  };

  // The tile unit's scores have another origin and unit (place_) than the sums, so the argument is
  // not used.
  void set_centroid(int j, const double*) override {
    std::uint16_t* group = centroids_.get() + j / kVectors * block_values();
    PartNorms norms;
    double square = 0;
    const auto coordinate = [&](int t) { return place_->of(centroid(j)[t], t); };
    for (int t = 0; t < problem_.dim; ++t) square += coordinate(t) * coordinate(t);
    const bool is_far = !(square <= kFarthest * kFarthest);
    for (int t = 0; t < problem_.dim; ++t) {
      const Parts parts = norms.add(is_far ? 0 : coordinate(t));
      group[centroid_place(j % kVectors, t, 0)] = parts.high;
      group[centroid_place(j % kVectors, t, 1)] = parts.low;
    }
    const CentroidBound bound =
        is_far ? Bound::of_far_centroid() : bound_->of_centroid(norms, square);
    starts_[j] = bound.start;
    centroid_norms_[j] = bound.norm;
    errors_[j] = bound.error;
  }

  void label(Part& part) override {
    const Centroids centroids = shown();
    Open open(*this);
    Nearest nearest;
    std::int32_t labels[kVectors];
    for (std::int64_t first = part.first; first < part.last; first += kVectors) {
      const int count = static_cast<int>(std::min<std::int64_t>(kVectors, part.last - first));
      const std::uint16_t* block = block_of(first);
      const Ahead ahead = {block + block_values(), point(first)};
      engine_.nearest(block, reach_.get() + first, centroids, ahead, nearest);
      for (int p = 0; p < count; ++p) {
        const int j = nearest.label[p];
        const float limit = bound_->limit(nearest.best[p], {reach_[first + p], norms_[first + p]},
                                          centroid_norms_[j], errors_[j]);
        // `best` and `second` are lower bounds. If `second` is above `limit`, so are those of all
        // other centroids, and j is certainly the nearest.
        labels[p] = nearest.second[p] > limit ? j : -1;
        if (labels[p] < 0) {
          leave_open(open, first + p, limit);
          if (open.count == kVectors) decide(open, part);
        }
      }
      take(part, first, count, labels);
    }
    decide(open, part);
  }

  void leave_open(Open& open, std::int64_t i, float limit) const {
    const auto from = static_cast<int>(i % kVectors), to = open.count++;
    open.indices[to] = i;
    open.reach[to] = reach_[i];
    open.limits[to] = limit;
    const std::uint16_t* block = block_of(i - from);
    for (int t = 0; t < problem_.dim; ++t)
      for (const int part : {0, 1})
        open.points[point_place(to, t, part)] = block[point_place(from, t, part)];
  }

  /// Labels the open points by float64 distances to their candidates.
  void decide(Open& open, Part& part) {
    if (open.count == 0) return;
    engine_.candidates(open.points.get(), open.reach, open.limits, shown(), open.candidates.data());
    double nearest[kVectors];
    std::int32_t labels[kVectors];
    std::fill_n(nearest, kVectors, std::numeric_limits<double>::infinity());
    std::fill_n(labels, kVectors, 0);
    const std::uint32_t used = ~0u >> (kVectors - open.count);
    for (int j = 0; j < problem_.k; ++j)
      for (std::uint32_t left = open.candidates[j] & used; left != 0; left &= left - 1) {
        const int p = std::countr_zero(left);
        const double distance = exact_distance(point(open.indices[p]), centroid(j));
        if (!(distance < nearest[p])) continue;
        nearest[p] = distance;
        labels[p] = j;
      }
    for (int p = 0; p < open.count; ++p) take(part, open.indices[p], 1, labels + p);
    open.count = 0;
  }

  /// The bits of kernels/core/reference.cpp: one rounding per operation, dimensions in order.
  double exact_distance(const float* x, const double* c) const {
    double sum = 0;
    for (int t = 0; t < problem_.dim; ++t) sum += (x[t] - c[t]) * (x[t] - c[t]);
    return sum;
  }

  /// Splits the points of a block into parts, in their place. What the block has no points or
  /// dimensions for is 0.
  void pack(std::int64_t first) {
    std::uint16_t* block = points_.get() + first / kVectors * block_values();
    std::fill_n(block, block_values(), std::uint16_t{0});
    for (int p = 0; p < kVectors; ++p) {
      PartNorms norms;
      if (first + p < problem_.n)
        for (int t = 0; t < problem_.dim; ++t) {
          const Parts parts = norms.add(place_->of(point(first + p)[t], t));
          block[point_place(p, t, 0)] = parts.high;
          block[point_place(p, t, 1)] = parts.low;
        }
      const PointBound bound = bound_->of_point(norms);
      reach_[first + p] = bound.reach;
      norms_[first + p] = bound.norm;
    }
  }

  Centroids shown() const {
    return {centroids_.get(), starts_.data(), centroid_norms_.data(), groups_, steps_};
  }
  std::int64_t block_values() const { return steps_ * kStepValues; }
  const std::uint16_t* block_of(std::int64_t first) const {
    return points_.get() + first / kVectors * block_values();
  }

  const Engine& engine_;
  std::unique_ptr<Bound> bound_;
  int steps_ = 0, groups_ = 0;
  std::unique_ptr<Placement> place_;
  Array<std::uint16_t> points_, centroids_;
  Array<float> reach_, norms_;                           // of each point
  std::vector<float> starts_, centroid_norms_, errors_;  // of each centroid, and of those that pad
};

[[maybe_unused]] const bool is_registered = [] {
  VersionInfo info = {
      .name = "fast_cpu_amx",
      .family = "fast_cpu",
      .parent = "fast_cpu_gemm",
      .axes = {"threads"},
      .distance = Distance::direct,
      .spherical = true,
      .reproducible = true,
      .summary = "bf16 products of tiles with a certified bound; float64 decides the rest",
      .unsupported = [](const Problem& problem, const Tunables&,
                        const DeviceLimits&) -> std::optional<std::string> {
        if (problem.dim > kMostDimensions)
          return "bounds the error of at most " + with_commas(kMostDimensions) +
                 " dimensions, not " + with_commas(problem.dim);
        return std::nullopt;
      }};
  if (const auto reason = why_not()) return register_unavailable(std::move(info), *reason);
  return register_version(std::move(info), [] { return make_version(hardware()); });
}();

}  // namespace

std::unique_ptr<Version> make_version(const Engine& engine) {
  return std::make_unique<Amx>(engine);
}

}  // namespace lloyd::fast_cpu::amx
