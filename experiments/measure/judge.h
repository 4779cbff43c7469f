// Judges all answers of a point: the first one in full before anything is timed, then every timed
// one, and the last one in full.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <vector>

#include "experiments/measure/checked_points.h"
#include "experiments/measure/expected_run.h"
#include "experiments/measure/session.h"
#include "experiments/measure/verdict.h"

namespace lloyd {

/// An answer is wrong or imprecise. Its verdict says which.
struct Incorrect : std::runtime_error {
  explicit Incorrect(Verdict what_was_found)
      : std::runtime_error(what_was_found.reason), verdict(std::move(what_was_found)) {}
  Verdict verdict;
};

/// How much of an answer is verified.
struct Verification {
  bool any = true;          // false: only the form of the answers and their iterations
  std::int64_t sample = 0;  // of each problem, the labels of so many points; 0: of all
  std::uint64_t seed = 0;   // of the sample; that of a batch's problem i is seed + i
};

class Judge {
 public:
  /// All arguments must outlive this object. Every problem of a batch is judged by itself.
  Judge(const Session& session, const VersionInfo& version, VersionFactory make,
        const Problem& problem, Verification verification);

  /// Verifies `first`, the answer of an untimed solve. This makes more solves in `context`. Throws
  /// Incorrect.
  void begin(Solution first, Context& context, const std::vector<ExpectedRun>& known);
  /// The runs of the reference, one for each problem, if begin() had to compute any part of them.
  /// Empty also if those of a batch have more than ExpectedRun::kMostCells coordinates together.
  const std::vector<ExpectedRun>& computed() const { return computed_; }

  /// Judges the form, iterations, means and centroids of a timed answer. For a version that
  /// promises identical bits, compares all of them. `waited_ms` is how long the harness waited for
  /// the answer, and `reported_ms` the time that the version reports. Throws Incorrect.
  void check(Solution answer, double waited_ms, std::optional<double> reported_ms);
  /// Judges the last answer in full, and the times that the version reported. Returns that answer.
  /// Throws Incorrect, and std::runtime_error for implausible times.
  Solution finish();

  /// Of a batch: sums of inertia and mismatches, and the largest errors and excess.
  const Verdict& verdict() const { return verdict_; }

 private:
  CheckedPoints checked(int index, const Problem& problem) const;
  std::unique_ptr<Reference> reference(const CheckedPoints& points) const;
  // The oracle's run of a problem; null if only a sample is checked.
  const ExpectedRun* run_of(std::size_t index) const {
    return expected_.empty() ? nullptr : &expected_.at(index);
  }
  // Calls body(index, problem, answer) for each problem of the batch.
  template <typename Body>
  void for_each(const Solution& answer, Body&& body) const;
  [[noreturn]] void reject(int index, Verdict verdict) const;
  // Adds the run of plain fp32 sums to what an answer is compared with, for an answer that is too
  // far from the oracle's run. False if it cannot explain that, or is there already.
  bool add_plain_sums(std::size_t index, const Problem& problem, Reference& nearest);
  void tell_lengths() const;

  const Session& session_;
  const VersionInfo& version_;
  VersionFactory make_;
  const Problem& problem_;
  Verification verification_;
  std::vector<ExpectedRun> expected_, computed_;
  std::optional<Solution> first_;  // kept if identical bits are promised
  std::optional<Solution> last_;
  std::vector<Verdict> verdicts_;  // of each problem
  Verdict verdict_;
  // These belong to the answer whose reported time leaves the least of the wait unexplained.
  double least_unexplained_ms_ = 0, its_waited_ms_ = 0, its_reported_ms_ = 0;
  int reports_ = 0;
};

/// How much of the wait for a solve the reported time may leave out: half of it, and 10 ms for the
/// communication with the process. On a machine whose cores were overcommitted eight times, an
/// honest version left out 9 of 56 ms and 23 of 188 ms in its best of three solves.
double unexplained_allowed_ms(double waited_ms);

}  // namespace lloyd
