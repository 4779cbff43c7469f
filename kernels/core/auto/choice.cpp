#include "kernels/core/auto/choice.h"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>
#include <tuple>

#include "kernels/core/inertia_tolerance.h"
#include "kernels/core/limits.h"

namespace lloyd {

namespace {

double doublings(double a, double b) { return std::log2(a / b); }

// From the problem to a measurement, in doublings of each size.
Eigen::Vector3d offset(const Measured& m, const Problem& problem) {
  return {doublings(static_cast<double>(m.n), static_cast<double>(problem.n)),
          doublings(m.k, problem.k), doublings(m.dim, problem.dim)};
}

// At the problem itself the fit's slopes have nothing to add: its constant is the answer.
double estimate(std::span<const Measured> of_a_version, const Problem& problem) {
  Eigen::Matrix4d normal = Eigen::Matrix4d::Zero();
  normal.diagonal().tail<3>().setConstant(kRidge);
  Eigen::Vector4d right = Eigen::Vector4d::Zero();
  for (const Measured& m : of_a_version) {
    Eigen::Vector4d row;
    row << 1, offset(m, problem);
    const double near = 1 / (kNearness + row.tail<3>().squaredNorm());
    normal += near * near * row * row.transpose();
    right += near * near * std::log(m.iteration_ms) * row;
  }
  return std::exp(normal.ldlt().solve(right)(0));
}

}  // namespace

std::vector<Estimate> ranked(std::span<const Measured> table, const Problem& problem) {
  const auto other_precision = [&](const Measured& m) { return m.precision != problem.precision; };
  const auto far = [&](const Measured& m) { return offset(m, problem).squaredNorm(); };
  std::map<std::string_view, std::vector<Measured>> by_version;
  for (const Measured& m : table) by_version[m.version].push_back(m);
  std::vector<Estimate> all;
  for (auto& [version, of_it] : by_version) {
    if (!std::ranges::all_of(of_it, other_precision)) std::erase_if(of_it, other_precision);
    all.push_back({*std::ranges::min_element(of_it, {}, far), estimate(of_it, problem)});
  }
  sort_by_time(all, problem);
  return all;
}

void sort_by_time(std::vector<Estimate>& estimates, const Problem& problem) {
  std::ranges::stable_sort(estimates, {}, [&](const Estimate& e) {
    return std::tuple(e.nearest.precision != problem.precision, e.beaten, e.iteration_ms);
  });
}

void settle_gpus(std::vector<Estimate>& estimates, const Problem& problem) {
  for (Estimate& several : estimates) {
    if (several.nearest.gpus == 1) continue;
    const std::string& parent = find_version(several.nearest.version)->info.parent;
    const auto alone = std::ranges::find_if(estimates, [&](const Estimate& e) {
      return e.nearest.gpus == 1 && e.nearest.version == parent;
    });
    if (alone == estimates.end()) continue;
    several.beaten = several.iteration_ms > kSure * alone->iteration_ms;
    alone->beaten = alone->iteration_ms > kSure * several.iteration_ms;
  }
  sort_by_time(estimates, problem);
}

std::size_t close_to_first(std::span<const Estimate> ranked) {
  const auto far = [&](const Estimate& e) {
    return e.nearest.precision != ranked[0].nearest.precision || e.beaten ||
           e.iteration_ms > kClose * ranked[0].iteration_ms;
  };
  return static_cast<std::size_t>(std::ranges::find_if(ranked, far) - ranked.begin());
}

double sampled_inertia(const Problem& problem, const Solution& solution) {
  const std::int64_t step = (problem.n + kSampled - 1) / kSampled;
  double inertia = 0;
  for (std::int64_t i = 0; i < problem.n; i += step) {
    const std::int64_t label = solution.labels[static_cast<std::size_t>(i)];
    for (std::int64_t t = 0; t < problem.dim; ++t) {
      const double x = problem.points[static_cast<std::size_t>(i * problem.dim + t)];
      const double c = solution.centroids[static_cast<std::size_t>(label * problem.dim + t)];
      inertia += (x - c) * (x - c);
    }
  }
  return inertia;
}

std::vector<Estimate> fastest_of(std::span<const Trial> trials, Precision precision) {
  double least = INFINITY;
  for (const Trial& trial : trials) least = std::fmin(least, trial.inertia);
  const double worse = 1 + inertia_tolerance(precision);
  std::vector<Estimate> kept;
  for (const Trial& trial : trials)
    if (trial.inertia <= worse * least) kept.push_back(trial.candidate);
  std::ranges::stable_sort(kept, {}, &Estimate::iteration_ms);
  return kept;
}

Tunables as_measured(const Measured& candidate, Tunables tunables) {
  if (candidate.threads_per_block > 0) tunables.threads_per_block = candidate.threads_per_block;
  tunables.gpus = candidate.gpus;
  return tunables;
}

std::optional<std::string> reason_against(const Measured& candidate, const Problem& problem,
                                          const Tunables& tunables, const DeviceLimits& device) {
  const RegisteredVersion* version = find_version(candidate.version);
  if (version == nullptr) return "is not in this build";
  return unsupported_reason(version->info, problem, as_measured(candidate, tunables), device);
}

}  // namespace lloyd
