// fast_auto: the version of this ladder that should be the fastest, by what was measured near the
// problem.
//
// Parent   none: it has no kernel of its own.
// What     table.inc has what the versions took for some hundred problems. From the measurements
//          near the problem it estimates what each version would take (choice.h). In prepare() it
//          tries those within a factor of 2 of the fastest, and takes the fastest of these. A
//          version that says unsupported is out, and so is one whose trial ends with a worse
//          inertia. The row says which version it was (`chosen`).
// Why      No version is the best everywhere. Which one is, measurements tell and no formula; where
//          two versions cross, measurements of the problem itself.
// Limits   The measurements are one GPU's, and of random data: skewed data may have another order,
//          above all between versions that prune and those that do not. Judged as an expanded
//          distance, the loosest of what it may choose.
// Floor    That of the version it chooses. Choice and trials are set-up.
// More     NOTES.md.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "kernels/core/chooser.h"
#include "kernels/core/limits.h"
#include "kernels/fast/auto/choice.h"

#if LLOYD_CUDA
#include "kernels/core/cuda.h"
#endif

namespace lloyd::fast {
namespace {

std::string against(const Estimate& e, std::string_view reason) {
  return fmt::format("{}: {}", e.nearest.version, reason);
}

// Those of ranked() that are able to, as far as is known beforehand. Adds the reasons against the
// others to `reasons`.
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
      } catch (const Unsupported& error) {  // only trying could tell
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
  // A trial has this many iterations. It is repeated at least once, and until this time is spent.
  static constexpr int kTrialIterations = 10;
  static constexpr double kTrialMs = 10;

  static Context with(const Measured& candidate, Context context) {
    context.tunables = as_measured(candidate, context.tunables);
    return context;
  }

  // Tries the first `count` candidates. Those that are able to and not worse than another stay, the
  // fastest first. If one refuses the problem, its points are such that a version's arithmetic
  // matters, so all others are tried, too.
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

  // Solves the problem a few times with few iterations, without observers. Throws Unsupported where
  // the version cannot.
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
