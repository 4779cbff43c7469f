// How fast_auto and fast_cpu_auto decide: the version that should take the least time, by
// measurements near the problem.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/core/version.h"

namespace lloyd {

/// One measurement: what an iteration took. A table holds, for each problem that was measured, what
/// the versions took.
struct Measured {
  Precision precision;
  std::int64_t n;
  int k, dim;
  const char* version;
  int threads_per_block;  // 0: the version does not read it
  double iteration_ms;
  int gpus = 1;
};

/// A version, with the tunables of its nearest measurement, and the time that an iteration of the
/// problem should take.
struct Estimate {
  Measured nearest;
  double iteration_ms;
  bool beaten = false;  // surely slower than another one, so it is a last resort
};

/// The versions of `table`, the fastest first as far as can be told: those measured in the
/// problem's precision before others, then by estimated time. The estimate is
///   log t = a + b·log n + c·log k + d·log dim,
/// fitted to the version's measurements in that precision by least squares. Their weights are
/// 1 / (kNearness + r²)², where r is the distance in doublings:
///   r² = log₂²(n / n') + log₂²(k / k') + log₂²(dim / dim').
/// A slope costs kRidge of its square, so few measurements give a plain mean.
std::vector<Estimate> ranked(std::span<const Measured> table, const Problem& problem);
constexpr double kRidge = 0.01, kNearness = 0.25;

/// The order of ranked(). Those that are beaten come last among those of a precision.
void sort_by_time(std::vector<Estimate>& estimates, const Problem& problem);

/// Marks who is beaten and sorts anew. The estimate for several GPUs follows from that of the
/// version's parent on one, so the two have most of their error in common: if one is more than
/// kSure times the other, it is beaten, and no trial has to compare them.
void settle_gpus(std::vector<Estimate>& estimates, const Problem& problem);
constexpr double kSure = 1.3;

/// How many of `ranked`, counted from the first, should take at most kClose times as long as the
/// first, were measured in the same precision and are not beaten. An estimate is not good enough to
/// tell these apart, so a trial has to.
std::size_t close_to_first(std::span<const Estimate> ranked);
constexpr double kClose = 2;

/// What a few iterations of the problem said about a version.
struct Trial {
  Estimate candidate;  // with the time of an iteration that was measured
  double inertia;      // sampled_inertia() of its answer
};

/// The squared distance of points to the centroids that they are labelled with, over at most
/// kSampled points.
double sampled_inertia(const Problem& problem, const Solution& solution);
constexpr std::int64_t kSampled = 65'536;

/// The candidates that were tried, the fastest first, without those that are known to be worse:
/// whose inertia is more than inertia_tolerance() above the smallest one.
std::vector<Estimate> fastest_of(std::span<const Trial> trials, Precision precision);

/// Why a measured version cannot run the problem: what unsupported_reason says, or "is not in this
/// build".
std::optional<std::string> reason_against(const Measured& candidate, const Problem& problem,
                                          const Tunables& tunables, const DeviceLimits& device);

/// `tunables` with those that the measurement was made with.
Tunables as_measured(const Measured& candidate, Tunables tunables);

}  // namespace lloyd
