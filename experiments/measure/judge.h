// Judges all answers of a point: the first one in full before anything is timed, then every timed one, and the last in full.
#pragma once

#include <memory>
#include <optional>
#include <stdexcept>

#include "experiments/measure/session.h"
#include "experiments/measure/verify.h"

namespace lloyd {

/// An answer is wrong, or imprecise; its verdict says which.
struct Incorrect : std::runtime_error {
  explicit Incorrect(Verdict what_was_found)
      : std::runtime_error(what_was_found.reason), verdict(std::move(what_was_found)) {}
  Verdict verdict;
};

class Judge {
 public:
  /// What it is given must outlive it. With `verify` false only the form of answers is looked at, and their iterations.
  Judge(const Session& session, const VersionInfo& version, VersionFactory make,
        const Problem& problem, bool verify);

  /// Verifies `first`, the answer of a solve that was not timed, by more solves in `context`. Throws Incorrect.
  void begin(Solution first, Context& context, const std::optional<ExpectedRun>& known);
  /// The reference's run, when begin() had to compute something of it.
  const std::optional<ExpectedRun>& computed() const { return computed_; }

  /// Judges a timed answer: form, iterations, means, centroids; all bits of a version that promises them. `waited_ms` is
  /// what the harness waited for it, and `reported_ms` what the version says itself. Throws Incorrect.
  void check(Solution answer, double waited_ms, std::optional<double> reported_ms);
  /// The last answer in full, and the version's own times. Throws Incorrect, and std::runtime_error for times that are none.
  void finish();

  const Verdict& verdict() const { return verdict_; }

 private:
  Reference& reference();

  const Session& session_;
  const VersionInfo& version_;
  VersionFactory make_;
  const Problem& problem_;
  bool verify_;
  std::unique_ptr<Reference> reference_;
  std::optional<ExpectedRun> expected_, computed_;
  std::optional<Solution> first_;  // kept where all bits are promised
  std::optional<Solution> last_;
  Verdict verdict_;
  // Of the answer that the version's own time leaves the least unexplained of.
  double least_unexplained_ms_ = 0, its_waited_ms_ = 0, its_reported_ms_ = 0;
  int reports_ = 0;
};

/// What of a wait for a solve a version's own time may leave out: 10 ms for the way to its process and back, and half. On
/// a machine that was eight times overbooked an honest version left out 9 of 56 ms and 23 of 188 in its best of three solves.
double unexplained_allowed_ms(double waited_ms);

}  // namespace lloyd
