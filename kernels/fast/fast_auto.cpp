// fast_auto: the version of this ladder that should be the fastest, by what was measured near the problem.
//
// Parent   none: it has no kernel of its own.
// What     kernels/fast/auto_table.inc has what the versions took for some hundred problems, written by `python -m analysis
//          tune` from recorded runs. From the measurements near the problem it estimates what each version would take
//          (auto_choice.h), and hands the problem to the fastest that does not say unsupported, in unsupported() or in
//          prepare(). The row says which it was (`chosen`).
// Why      no version is the best everywhere: which one is, is known from measurements, not from a formula.
// Limits   the measurements are one GPU's, and of random data: skewed data may have another order, above all between versions
//          that prune and those that do not. Judged as an expanded distance, the loosest of what it may choose.
// Floor    that of the version it chooses; the choice itself is made in prepare().
// Predicted  within 5% of the fastest on a problem that was measured, and on nine of ten that were not: left out of the table
//          one at a time, 129 of its 135 problems with several versions still get one within 5%. The 6 lie where two
//          versions cross, and lose up to a factor of 1.7. The tests hold the table to both.
// Measured H200, 2026-11-22, by a table of fast_tune alone, on fast_auto's 60 problems, which that table had not: 3 got a version
//          that loses more than 5% (22, 24 and 51%). The table has fast_auto's rows too since then, and a problem's nearest
//          measurements weigh more (kNearness was 1: 8 of the 135 lost more than 5%).
//          `python -m analysis choices DIR` says what each choice of a run lost.
#include <fmt/format.h>

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>

#include "kernels/chooser.h"
#include "kernels/fast/auto_choice.h"
#include "kernels/limits.h"

namespace lloyd::fast {

std::span<const Measured> measured() {
  static constexpr Measured kTable[] = {
#include "kernels/fast/auto_table.inc"
  };
  return kTable;
}

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
  std::ranges::stable_sort(all, {}, [&](const Estimate& e) {
    return std::pair(other_precision(e.nearest), e.iteration_ms);
  });
  return all;
}

Tunables as_measured(const Measured& candidate, Tunables tunables) {
  if (candidate.threads_per_block > 0) tunables.threads_per_block = candidate.threads_per_block;
  return tunables;
}

std::optional<std::string> reason_against(const Measured& candidate, const Problem& problem,
                                          const Tunables& tunables, const DeviceLimits& device) {
  const RegisteredVersion* version = find_version(candidate.version);
  if (version == nullptr) return "is not in this build";
  return unsupported_reason(version->info, problem, as_measured(candidate, tunables), device);
}

namespace {

std::string refusal(const std::vector<std::string>& reasons) {
  return fmt::format("none of the measured versions can: {}", fmt::join(reasons, "; "));
}

#if LLOYD_CUDA
class Auto : public Version, public Chooser {
 public:
  void prepare(const Problem& problem, Context& context) override {
    version_.reset();  // gives its memory back before another asks for it
    std::vector<std::string> reasons;
    const Tunables given = context.tunables;
    for (const auto& [candidate, _] : ranked(measured(), problem)) {
      std::optional<std::string> reason = reason_against(candidate, problem, given, context.device);
      if (!reason) {
        tunables_ = context.tunables = as_measured(candidate, given);
        try {
          version_ = find_version(candidate.version)->make();
          version_->prepare(problem, context);
        } catch (const Unsupported& error) {  // what only trying can tell
          reason = error.what();
          version_.reset();
        }
        context.tunables = given;
      }
      if (version_) {
        chosen_ = candidate.version;
        if (candidate.threads_per_block > 0)
          chosen_ += fmt::format("/threads_per_block:{}", candidate.threads_per_block);
        return;
      }
      reasons.push_back(fmt::format("{}: {}", candidate.version, *reason));
    }
    throw Unsupported(refusal(reasons));
  }

  void run(Context& context) override {
    const Tunables given = std::exchange(context.tunables, tunables_);
    version_->run(context);
    context.tunables = given;
  }

  Solution fetch(Context& context) override { return version_->fetch(context); }

  std::string chosen() const override { return chosen_; }

 private:
  std::unique_ptr<Version> version_;
  Tunables tunables_;
  std::string chosen_;
};
#endif

LLOYD_CUDA_VERSION(
    Auto,
    {.name = "fast_auto",
     .family = "fast",
     .backend = Backend::cuda,
     .precisions = {Precision::fp32, Precision::fp16, Precision::bf16},
     .distance = Distance::expanded,
     .summary =
         "the one of the others that should be the fastest, by what was measured near the problem",
     .unsupported = [](const Problem& problem, const Tunables& tunables,
                       const DeviceLimits& device) -> std::optional<std::string> {
       std::vector<std::string> reasons;
       for (const auto& [candidate, _] : ranked(measured(), problem)) {
         const auto reason = reason_against(candidate, problem, tunables, device);
         if (!reason) return std::nullopt;
         reasons.push_back(fmt::format("{}: {}", candidate.version, *reason));
       }
       return refusal(reasons);
     }});

}  // namespace
}  // namespace lloyd::fast
