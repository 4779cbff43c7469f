// fast_auto: the version of this ladder that should be the fastest, by what was measured near the problem.
//
// Parent   none: it has no kernel of its own.
// What     kernels/fast/auto_table.inc has what the versions took for some hundred problems, written by `python -m analysis
//          tune` from recorded runs. From the measurements near the problem it estimates what each version would take
//          (auto_choice.h). Those that should be within a factor of 2 of the fastest it tries out in prepare(), the others it
//          does not look at; what says unsupported, in unsupported() or in prepare(), is none of them, and neither is what
//          ends its trial with a worse inertia than another. The row says which one it was (`chosen`).
// Why      no version is the best everywhere: which one is, is known from measurements, not from a formula; and where two
//          versions cross, from measurements of the problem itself.
// Limits   the measurements are one GPU's, and of random data: skewed data may have another order, above all between versions
//          that prune and those that do not. Judged as an expanded distance, the loosest of what it may choose.
// Floor    that of the version it chooses; choice and trials are set-up (runs of ten iterations, two and 10 ms at least, for each
//          version that is tried).
// Predicted  the fastest version, or one within 5% of it. By estimates alone, left out of the table one at a time, 126 of its 135
//          problems with several versions get one within 5%, and the others, where two versions cross, lose up to a factor of
//          2.1. With trials none does, and 74 need one. The tests hold the table to both.
// Measured H200, 2026-11-22, ten iterations. By estimates alone, of a table that had none of fast_auto's 60 problems: 3 got a
//          version that loses more than 5% (22, 24 and 51%). With trials, data/recorded's fast_auto and fast_unseen (whose 60
//          problems no table has): all 120 got the fastest version, or one within 5% of it. Two rows are 10 and 19% behind the
//          chosen version's own, of 9 µs an iteration, which the host launches: another process. With trials from a factor of
//          1.5 on one in 120 lost 12%. `python -m analysis choices DIR` says what each choice of a run lost.
#include <fmt/format.h>

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>

#include "kernels/core/chooser.h"
#include "kernels/core/limits.h"
#include "kernels/fast/auto_choice.h"

#if LLOYD_CUDA
#include "kernels/core/cuda.h"
#endif

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

std::size_t close_to_first(std::span<const Estimate> ranked) {
  const auto far = [&](const Estimate& e) {
    return e.nearest.precision != ranked[0].nearest.precision ||
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
  const double worse = unit_roundoff(precision) > unit_roundoff(Precision::fp32) ? 1.05 : 1.01;
  std::vector<Estimate> kept;
  for (const Trial& trial : trials)
    if (trial.inertia <= worse * least) kept.push_back(trial.candidate);
  std::ranges::stable_sort(kept, {}, &Estimate::iteration_ms);
  return kept;
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

std::string against(const Estimate& e, std::string_view reason) {
  return fmt::format("{}: {}", e.nearest.version, reason);
}

// Of ranked(), those that can as far as is known beforehand; `reasons` against the others.
std::vector<Estimate> able(const Problem& problem, const Tunables& tunables,
                           const DeviceLimits& device, std::vector<std::string>& reasons) {
  std::vector<Estimate> all = ranked(measured(), problem);
  std::erase_if(all, [&](const Estimate& e) {
    const auto reason = reason_against(e.nearest, problem, tunables, device);
    if (reason) reasons.push_back(against(e, *reason));
    return reason.has_value();
  });
  return all;
}

std::string refusal(const std::vector<std::string>& reasons) {
  return fmt::format("none of the measured versions can: {}", fmt::join(reasons, "; "));
}

#if LLOYD_CUDA
class Auto : public Version, public Chooser {
 public:
  void prepare(const Problem& problem, Context& context) override {
    version_.reset();  // gives its memory back before another asks for it
    std::vector<std::string> reasons;
    std::vector<Estimate> candidates = able(problem, context.tunables, context.device, reasons);
    const std::size_t close = close_to_first(candidates);
    if (close > 1) try_first(close, candidates, reasons, problem, context);
    while (!candidates.empty()) {
      const Estimate e = candidates.front();
      Context own = with(e.nearest, context);
      version_ = find_version(e.nearest.version)->make();
      try {
        version_->prepare(problem, own);
      } catch (const Unsupported& error) {  // what only trying can tell
        reasons.push_back(against(e, error.what()));
        version_.reset();
        candidates.erase(candidates.begin());
        try_first(candidates.size(), candidates, reasons, problem, context);
        continue;
      }
      tunables_ = own.tunables;
      chosen_ = e.nearest.version;
      if (e.nearest.threads_per_block > 0)
        chosen_ += fmt::format("/threads_per_block:{}", e.nearest.threads_per_block);
      return;
    }
    throw Unsupported(refusal(reasons));
  }

  void run(Context& context) override {
    Context own = context;
    own.tunables = tunables_;
    version_->run(own);
  }

  Solution fetch(Context& context) override { return version_->fetch(context); }

  std::string chosen() const override { return chosen_; }

 private:
  // A trial: so many iterations, twice at least and for so long.
  static constexpr int kTrialIterations = 10;
  static constexpr double kTrialMs = 10;

  static Context with(const Measured& candidate, Context context) {
    context.tunables = as_measured(candidate, context.tunables);
    return context;
  }

  // Tries the first `count` candidates: those that can and are not worse than another stay, the fastest first. If one
  // refuses the problem, its points are such that a version's arithmetic matters: then all others are tried.
  static void try_first(std::size_t count, std::vector<Estimate>& candidates,
                        std::vector<std::string>& reasons, const Problem& problem,
                        const Context& context) {
    std::vector<Trial> trials;
    std::size_t tried = 0;
    for (; tried < count; ++tried) {
      const Estimate& e = candidates[tried];
      try {
        trials.push_back(try_out(e, problem, with(e.nearest, context)));
      } catch (const Unsupported& error) {
        reasons.push_back(against(e, error.what()));
        count = candidates.size();
      }
    }
    candidates.erase(candidates.begin(), candidates.begin() + static_cast<std::ptrdiff_t>(tried));
    const std::vector<Estimate> best = fastest_of(trials, problem.precision);
    candidates.insert(candidates.begin(), best.begin(), best.end());
  }

  // Solves the problem a few times with few iterations, without observers. Throws Unsupported where the version cannot.
  static Trial try_out(Estimate candidate, Problem problem, Context context) {
    problem.stop.iterations = std::min(problem.stop.iterations, kTrialIterations);
    context.observers.clear();
    const std::unique_ptr<Version> version = find_version(candidate.nearest.version)->make();
    version->prepare(problem, context);
    cuda::Event start, stop;
    const auto run_ms = [&] {
      LLOYD_CUDA_CHECK(cudaStreamSynchronize(context.stream));
      start.record(context.stream);
      version->run(context);
      stop.record(context.stream);
      LLOYD_CUDA_CHECK(cudaStreamSynchronize(context.stream));
      return stop.ms_since(start);
    };
    double spent = run_ms(), fastest = INFINITY;  // the first one loads code and wakes the clocks
    do {
      const double ms = run_ms();
      spent += ms;
      fastest = std::min(fastest, ms);
    } while (spent < kTrialMs);
    candidate.iteration_ms = fastest / problem.stop.iterations;
    return {candidate, sampled_inertia(problem, version->fetch(context))};
  }

  std::unique_ptr<Version> version_;
  Tunables tunables_;
  std::string chosen_;
};
#endif

LLOYD_CUDA_VERSION(Auto,
                   {.name = "fast_auto",
                    .family = "fast",
                    .backend = Backend::cuda,
                    .precisions = {Precision::fp32, Precision::fp16, Precision::bf16},
                    .distance = Distance::expanded,
                    .summary = "the fastest of the others by what was measured near the problem, "
                               "by trial where versions are close",
                    .unsupported = [](const Problem& problem, const Tunables& tunables,
                                      const DeviceLimits& device) -> std::optional<std::string> {
                      std::vector<std::string> reasons;
                      if (!able(problem, tunables, device, reasons).empty()) return std::nullopt;
                      return refusal(reasons);
                    }});

}  // namespace
}  // namespace lloyd::fast
