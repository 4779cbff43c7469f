// Checks the labels of one step: the centroid that a label names must be the nearest one, within
// the rounding errors of the version's distance.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "experiments/measure/checked_points.h"
#include "experiments/measure/vectors.h"
#include "kernels/core/reference.h"
#include "kernels/core/version.h"

namespace lloyd {

/// The regret of a label, D_label − D_min, relative to the scale s of the rounding errors of the
/// version's distance. D are squared distances in float64, to the label's centroid and to the
/// nearest one.
///   direct    s = D_label + D_min
///   expanded  s = (‖x‖ + ‖c‖)², c the longer of the two centroids
/// dim·2^-126 of the regret are ignored if fp32 may flush an underflow to zero. Returns 0 for a
/// label that is as near as the nearest. NaN remains NaN.
double relative_regret(Distance distance, Precision precision, int dim, double label_distance,
                       double min_distance, double point_norm, double centroid_norm);

/// The bound on relative_regret, with u of `precision` and v = 2^-24:
///  - fp64, fp32: γ = (dim + 4)·u for a direct distance, 2γ for an expanded one (Higham 2002, lemma
///    3.1, with two operations to spare). It always holds, and it is useful up to millions of
///    dimensions.
///  - tf32, fp16, bf16: 4u + (dim + 4)·v direct, 4u + 4·(dim + 4)·v expanded. Each operand is
///    rounded once. Products are added in fp32 (Blanchard et al. 2020, SIAM J. Sci. Comput. 42(3),
///    C124, theorem 3.2; twice the γ of fp32 because tensor cores truncate). ‖c‖² and the score may
///    be rounded once more: by Cauchy-Schwarz, this is at most 2u·(‖x‖ + ‖c‖)² for each of the two
///    distances in any dimension. The bound also holds for tf32 operands that are truncated instead
///    of rounded.
/// No version adds in 16 bits. Such a version would need a bound with dim·u in it.
double regret_bound(Distance distance, Precision precision, int dim);

/// The oracle's assignment for a set of centroids. All arguments but `reference` must outlive it.
class Nearest {
 public:
  Nearest(Reference& reference, Centroids centroids, const Problem& problem);

  std::span<const std::int32_t> labels() const {
    return {labels_.get(), static_cast<std::size_t>(problem_.n)};
  }
  /// The sum() of all squared distances.
  double inertia() const { return inertia_; }
  /// The squared distance of a point to its nearest centroid, computed when it is asked for: only
  /// points whose label is in doubt need it.
  double distance(std::size_t at) const;

 private:
  Centroids centroids_;
  const Problem& problem_;
  // Not a vector, which would write every page once more, in one thread.
  std::unique_ptr<std::int32_t[]> labels_;
  double inertia_;
};

struct LabelsVerdict {
  std::optional<std::string> wrong;
  std::size_t wrong_clusters = 0;  // have a wrong label, or lack a point because of one
  std::int64_t mismatches = 0;
  double max_regret = 0;
};

class LabelCheck {
 public:
  /// `nearest` is the oracle's assignment of `points` for `centroids`. `slack`: how far each
  /// centroid that the version used may be from the one in `centroids`; empty means not at all. All
  /// references must outlive this object.
  LabelCheck(const CheckedPoints& points, Distance distance, Centroids centroids,
             const Nearest& nearest, std::vector<double> slack = {});

  /// `all_labels`: those of all points of the problem, whether they are checked or not.
  LabelsVerdict judge(std::span<const std::int32_t> all_labels) const;

  /// Among random labels that are farther away than the nearest: the share whose regret is at most
  /// `regret`.
  double random_labels_within(double regret) const;

 private:
  double squared_distance(std::size_t at, std::int32_t label) const;
  double regret_of(std::size_t at, std::int32_t label, bool may_have_moved) const;

  const CheckedPoints& points_;
  const Problem& problem_;  // of these points
  Distance distance_;
  Centroids centroids_;
  const Nearest& nearest_;
  std::vector<double> slack_;
  std::size_t dim_;
  std::vector<double> norms_;
};

/// Returns a message if a cluster without a label is not where it was `before`, up to `slack` for
/// each coordinate. All labels must be in range.
std::optional<std::string> empty_cluster_moved(const Solution& solution, Centroids before, int k,
                                               double slack);

}  // namespace lloyd
