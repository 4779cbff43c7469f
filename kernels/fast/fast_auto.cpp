// fast_auto: the version of this ladder that was the fastest on the nearest problem that was measured.
//
// Parent   none: it has no kernel of its own.
// What     kernels/fast/auto_table.inc has the fastest versions of each measured problem, written by `python -m analysis tune`
//          from recorded runs. Of the versions of the nearest one (in log n, log k, log dim; the same precision first) the
//          fastest that does not say unsupported, in unsupported() or in prepare(), is handed the problem; then those of
//          the next nearest. The row says which it was (`chosen`).
// Why      no version is the best everywhere: which one is, is known from measurements, not from a formula.
// Limits   the measurements are one GPU's, and of random data: skewed data may have another order, above all between versions
//          that prune and those that do not. Judged as an expanded distance, the loosest of what it may choose.
// Floor    that of the version it chooses; the choice itself is made in prepare().
// Predicted  on a problem that was measured, the time of its fastest version; between two such problems nothing is promised.
// Measured H200, 2026-11-21, data/recorded/nvidia-h200/fast_regimes: as fast as what it chose (n = 1e7, k = 1000, dim 2: 3.20 ms,
//          fast_optin alone 3.20), but by an older table, which knew fast_optin and fast_cublas only. Not yet by this one.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
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

std::vector<Measured> ranked(std::span<const Measured> table, const Problem& problem) {
  const auto distance = [&](const Measured& m) {
    const auto squared_log = [](auto a, auto b) {
      const double log = std::log2(static_cast<double>(a) / static_cast<double>(b));
      return log * log;
    };
    return squared_log(m.n, problem.n) + squared_log(m.k, problem.k) +
           squared_log(m.dim, problem.dim);
  };
  const auto key = [&](const Measured& m) {
    return std::make_tuple(m.precision != problem.precision, distance(m), m.iteration_ms);
  };
  std::vector<Measured> all(table.begin(), table.end());
  std::stable_sort(all.begin(), all.end(),
                   [&](const Measured& a, const Measured& b) { return key(a) < key(b); });
  std::set<std::string_view> seen;
  std::erase_if(all, [&](const Measured& m) { return !seen.insert(m.version).second; });
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
    for (const Measured& candidate : ranked(measured(), problem)) {
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

LLOYD_CUDA_VERSION(Auto,
                   {.name = "fast_auto",
                    .family = "fast",
                    .backend = Backend::cuda,
                    .precisions = {Precision::fp32, Precision::fp16, Precision::bf16},
                    .distance = Distance::expanded,
                    .summary = "the fastest of the others on the nearest problem that was measured",
                    .unsupported = [](const Problem& problem, const Tunables& tunables,
                                      const DeviceLimits& device) -> std::optional<std::string> {
                      std::vector<std::string> reasons;
                      for (const Measured& candidate : ranked(measured(), problem)) {
                        const auto reason = reason_against(candidate, problem, tunables, device);
                        if (!reason) return std::nullopt;
                        reasons.push_back(fmt::format("{}: {}", candidate.version, *reason));
                      }
                      return refusal(reasons);
                    }});

}  // namespace
}  // namespace lloyd::fast
