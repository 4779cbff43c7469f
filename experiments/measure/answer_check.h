// Checks an answer without the oracle: its form, its means, and whether a rerun gives the same
// bits.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "experiments/measure/verdict.h"
#include "kernels/core/reference.h"
#include "kernels/core/version.h"

namespace lloyd {

/// True if a rule may end the loop before all iterations are done.
bool may_stop_early(const Stop& stop);

/// Checks the form of an answer: sizes, labels in range, finite coordinates, and iterations between
/// 1 and those requested, or all of them if no rule may stop the loop. It may be an answer to a
/// batch. Returns the first error, or nullopt.
std::optional<std::string> wrong_form(const Problem& problem, const Solution& solution);

/// Checks form and means (means.h). Returns the first error, or nullopt. `clusters` receives the
/// sums for the labels. Updates verdict.max_mean_error and, if the means prove nothing,
/// verdict.unverified.
std::optional<std::string> wrong_answer(const Problem& problem, const Solution& solution,
                                        Verdict& verdict, ClusterSums& clusters);

/// Compares the bits of two runs' answers to the same problem. Returns how they differ, beginning
/// with the first difference, or nullopt if they are identical, as a `reproducible` version
/// promises.
std::optional<std::string> difference(const Solution& first, const Solution& again);

}  // namespace lloyd
