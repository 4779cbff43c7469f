// What verification finds out about an answer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/core/status.h"

namespace lloyd {

struct Verdict {
  bool correct = false;    // no check failed
  bool imprecise = false;  // every single step is right, but the run ends too high
  std::string reason;      // the first check that failed, with the numbers
  // The whole run is farther from the oracle's than disturbed runs are, and nothing else is wrong.
  bool outside_spread = false;
  /// Why the answer counts as unverified although no check failed: the bounds on its labels or its
  /// means are too wide to prove anything.
  std::string unverified;
  std::optional<std::int64_t> label_mismatches;  // unlike the oracle's, but within the bound
  // Points whose labels were compared with the oracle's; of a batch, of all its problems.
  std::optional<std::int64_t> verified_points;
  std::optional<double> inertia;         // of the version's final centroids, in float64
  std::string no_inertia;                // why inertia is empty although something was verified
  std::optional<double> inertia_excess;  // (inertia − the float64 run's)/the float64 run's
  std::string no_excess;                 // why inertia_excess is empty
  // The largest regret in the two single steps, relative to the scale of the version's distance,
  // and its bound.
  std::optional<double> max_regret, regret_bound;
  // The largest |coordinate − mean of its points| / mean|x| of the cluster and coordinate, over all
  // checked answers.
  std::optional<double> max_mean_error;
  std::vector<int> lengths;  // iterations of the additional solves, drawn at random
  // The seconds that a check of the last iteration by itself would take, if it was left out.
  std::optional<double> last_would_take;

  bool verified() const { return correct && unverified.empty(); }
  /// The status in the rows: ok, incorrect or imprecise.
  const char* status() const {
    return correct ? status::ok : imprecise ? status::imprecise : status::incorrect;
  }
};

}  // namespace lloyd
