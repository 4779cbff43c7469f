// A version that runs the fastest of others: what fast_auto and fast_cpu_auto have in common.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/core/auto/choice.h"
#include "kernels/core/chooser.h"
#include "kernels/core/version.h"

namespace lloyd {

/// Why no version of `table` can run the problem. Nothing if one can, as far as is known
/// beforehand.
std::optional<std::string> refusal(std::span<const Measured> table, const Problem& problem,
                                   const Tunables& tunables, const DeviceLimits& device);

/// Ranks the versions of a table by estimate, tries those that are close to the first, and prepares
/// the fastest. If it refuses the problem, the next one has its turn.
///
/// Two trials may end differently, and two versions round differently. So the first choice for a
/// problem holds as long as the process lives: all solves of a point are one version's. With a
/// TrialMemory the trials are made once for a problem on a machine. Without one they would be made
/// each time: a solve that is shorter than its trials is then left to the estimate.
class AutoVersion : public Version, public Chooser {
 public:
  void prepare(const Problem& problem, Context& context) override;
  void run(Context& context) override;
  Solution fetch(Context& context) override { return version_->fetch(context); }
  std::string chosen() const override { return chosen_; }
  std::string chosen_by() const override { return chosen_by_; }

 protected:
  /// A trial solves the problem, at least twice and until `ms` or the estimated time of `solves`
  /// solves are spent. A solve that is estimated to take less than `whole_ms` is tried whole:
  /// versions that keep bounds are slow at first and fast later. Without a TrialMemory such a solve
  /// is not tried at all. Of longer ones a trial makes a few iterations. If a solve takes less than
  /// `ms`, another process may disturb all of a trial, so each version has two.
  struct Trials {
    int iterations;
    double ms;
    double whole_ms = 0;
    double solves = 5;
  };
  /// `name` and `table` must outlive this object.
  AutoVersion(const char* name, std::span<const Measured> table, Trials trials)
      : name_(name), table_(table), trials_(trials) {}

  /// What run() of `version` takes.
  virtual double run_ms(Version& version, Context& context) = 0;
  /// Every version that may be chosen, the fastest first.
  virtual std::vector<Estimate> estimates(const Problem& problem, const Tunables&) const {
    return ranked(table_, problem);
  }
  std::span<const Measured> table() const { return table_; }

 private:
  void try_first(std::size_t count, std::vector<Estimate>& candidates,
                 std::vector<std::string>& reasons, const Problem& problem, const Context& context);
  Trial try_out(Estimate candidate, const Problem& problem, Context context);
  static double solve_ms(const Estimate& estimate, const Problem& problem) {
    return estimate.iteration_ms * problem.stop.iterations;
  }
  bool is_short(const Estimate& first, const Problem& problem) const {
    return solve_ms(first, problem) <= trials_.whole_ms;
  }

  // All that a choice depends on in one build: the sizes, some of the points, threads and GPUs.
  std::string question(const Problem& problem, const Tunables& tunables) const;

  const char* name_;
  std::span<const Measured> table_;
  Trials trials_;
  std::unique_ptr<Version> version_;
  Tunables tunables_;
  std::string chosen_, chosen_by_;
};

}  // namespace lloyd
