#include "experiments/measure/judge.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <iostream>
#include <utility>

#include "experiments/measure/answer_check.h"
#include "experiments/measure/trials.h"
#include "experiments/measure/verify.h"
#include "kernels/core/batch.h"

namespace lloyd {

namespace {

// A message about one problem. Names it if it has others beside it.
std::string in_batch(int index, int batch, const std::string& message) {
  return batch == 1 ? message : fmt::format("problem {} of the batch: {}", index, message);
}

std::size_t cells_of(const std::vector<ExpectedRun>& runs) {
  std::size_t cells = 0;
  for (const ExpectedRun& run : runs) cells += run.centroids.size();
  return cells;
}

template <typename T>
void keep_larger(std::optional<T>& value, const std::optional<T>& other) {
  if (other && (!value || *other > *value)) value = other;
}

template <typename T>
void add_up(std::optional<T>& value, const std::optional<T>& other) {
  if (other) value = value.value_or(0) + *other;
}

// The verdict on a batch whose problems have these. The largest excess counts.
Verdict of_batch(const std::vector<Verdict>& verdicts) {
  Verdict all = verdicts.front();
  const auto batch = static_cast<int>(verdicts.size());
  for (int i = 1; i < batch; ++i) {
    const Verdict& one = verdicts[static_cast<std::size_t>(i)];
    all.correct &= one.correct;
    if (all.unverified.empty() && !one.unverified.empty())
      all.unverified = in_batch(i, batch, one.unverified);
    if (all.no_excess.empty() && !one.no_excess.empty())
      all.no_excess = in_batch(i, batch, one.no_excess);
    add_up(all.label_mismatches, one.label_mismatches);
    add_up(all.inertia, one.inertia);
    add_up(all.verified_points, one.verified_points);
    keep_larger(all.inertia_excess, one.inertia_excess);
    keep_larger(all.max_regret, one.max_regret);
    keep_larger(all.max_mean_error, one.max_mean_error);
  }
  if (!all.no_excess.empty()) all.inertia_excess.reset();
  return all;
}

}  // namespace

double unexplained_allowed_ms(double waited_ms) { return 10 + waited_ms / 2; }

Judge::Judge(const Session& session, const VersionInfo& version, VersionFactory make,
             const Problem& problem, Verification verification)
    : session_(session),
      version_(version),
      make_(std::move(make)),
      problem_(problem),
      verification_(verification) {}

CheckedPoints Judge::checked(int index, const Problem& problem) const {
  return CheckedPoints(problem, verification_.sample,
                       verification_.seed + static_cast<std::uint64_t>(index));
}

std::unique_ptr<Reference> Judge::reference(const CheckedPoints& points) const {
  return reference_of(session_, points.problem());
}

template <typename Body>
void Judge::for_each(const Solution& answer, Body&& body) const {
  if (problem_.batch == 1) return body(0, problem_, answer);
  for (int i = 0; i < problem_.batch; ++i)
    body(i, problem_of(problem_, i), solution_of(answer, problem_, i));
}

void Judge::reject(int index, Verdict verdict) const {
  verdict.reason = in_batch(index, problem_.batch, verdict.reason);
  throw Incorrect(std::move(verdict));
}

bool Judge::add_plain_sums(std::size_t index, const Problem& problem, Reference& nearest) {
  if (expected_.empty() || problem.precision == Precision::fp64) return false;
  ExpectedRun& expected = expected_.at(index);
  if (expected.plain_sums) return false;
  expected.plain_sums = plain_sums_spread(nearest, problem, expected);
  return true;
}

void Judge::begin(Solution first, Context& context, const std::vector<ExpectedRun>& known) {
  if (!verification_.any || problem_.batch > 1)
    if (auto why = wrong_form(problem_, first)) {
      verdict_.reason = "whole solve: " + *why;
      throw Incorrect(verdict_);
    }
  if (!verification_.any) return;
  const bool all = CheckedPoints::are_all(problem_.n, verification_.sample);
  if (all) {
    expected_ = known;
    expected_.resize(static_cast<std::size_t>(problem_.batch));
  }
  bool is_new = false;
  Trials trials(make_, problem_, context, first);
  for_each(first, [&](int i, const Problem& problem, const Solution& answer) {
    const CheckedPoints points = checked(i, problem);
    const std::unique_ptr<Reference> nearest = reference(points);
    if (all) {
      ExpectedRun& expected = expected_.at(static_cast<std::size_t>(i));
      if (!expected.spread(version_.distance)) {
        const bool has_run = expected.direct || expected.expanded;
        expected = expected_run(*nearest, problem, version_.distance,
                                has_run ? std::optional(std::move(expected)) : std::nullopt);
        is_new = true;
      }
    }
    trials.take(i);
    const Oracle oracle{points, *nearest, run_of(static_cast<std::size_t>(i))};
    const auto verdict = [&] {
      return verify(answer, trials, problem, version_.distance, oracle,
                    i > 0 ? &verdicts_.front().lengths : nullptr);
    };
    verdicts_.push_back(verdict());
    if (verdicts_.back().outside_spread &&
        add_plain_sums(static_cast<std::size_t>(i), problem, *nearest))
      verdicts_.back() = verdict();
    if (!verdicts_.back().correct) {
      tell_lengths();
      reject(i, verdicts_.back());
    }
  });
  if (is_new && (problem_.batch == 1 || cells_of(expected_) <= ExpectedRun::kMostCells))
    computed_ = expected_;
  verdict_ = of_batch(verdicts_);
  tell_lengths();
  if (version_.reproducible) first_ = std::move(first);
}

void Judge::tell_lengths() const {
  const Verdict& first = verdicts_.front();
  if (!first.lengths.empty())
    std::cerr << fmt::format("also verified: the iterations {} (drawn at random)",
                             fmt::join(first.lengths, ", "))
              << std::endl;
  if (first.last_would_take)
    std::cerr << fmt::format(
                     "not verified by itself: the last iteration, because a solve of one less "
                     "takes about {:.0f} s",
                     *first.last_would_take)
              << std::endl;
}

void Judge::check(Solution answer, double waited_ms, std::optional<double> reported_ms) {
  const auto wrong = [&](const std::string& why) {
    Verdict broken = verdict_;
    broken.correct = false;
    broken.reason = why;
    return Incorrect(std::move(broken));
  };
  if (!verification_.any || problem_.batch > 1)
    if (auto why = wrong_form(problem_, answer)) throw wrong("a timed solve: " + *why);
  if (verification_.any) {
    for_each(answer, [&](int i, const Problem& problem, const Solution& part) {
      const auto at = static_cast<std::size_t>(i);
      const auto quick = [&] {
        return Recheck(problem, version_.distance, run_of(at)).quick(part, verdicts_[at]);
      };
      auto why = quick();
      if (why && add_plain_sums(at, problem, *reference_of(session_, problem))) why = quick();
      verdict_ = of_batch(verdicts_);
      if (why) throw wrong("a timed solve: " + in_batch(i, problem_.batch, *why));
    });
  }
  if (first_)
    if (const auto what = difference(*first_, answer))
      throw wrong("claims to be reproducible, but a second run differs: " + *what);
  if (reported_ms) {
    const double unexplained = waited_ms - *reported_ms - unexplained_allowed_ms(waited_ms);
    if (reports_++ == 0 || unexplained < least_unexplained_ms_) {
      least_unexplained_ms_ = unexplained;
      its_waited_ms_ = waited_ms;
      its_reported_ms_ = *reported_ms;
    }
  }
  last_ = std::move(answer);
}

Solution Judge::finish() {
  if (reports_ > 0 && least_unexplained_ms_ > 0)
    throw std::runtime_error(fmt::format(
        "run: reports {:.6g} ms, but took {:.6g} ms, and each of {} solves leaves more than {:.3g} "
        "ms unexplained; work outside of the loop belongs in prepare or fetch",
        its_reported_ms_, its_waited_ms_, reports_, unexplained_allowed_ms(its_waited_ms_)));
  Solution last = std::move(last_).value();
  if (!verification_.any) return last;
  for_each(last, [&](int i, const Problem& problem, const Solution& part) {
    const auto at = static_cast<std::size_t>(i);
    // Without a run to compare with, check() has judged this answer in full.
    if (run_of(at) == nullptr) return;
    const std::unique_ptr<Reference> nearest = reference_of(session_, problem);
    Verdict& verdict = verdicts_[at];
    const auto judge = [&] {
      Recheck(problem, version_.distance, run_of(at)).full(part, *nearest, verdict);
    };
    judge();
    if (verdict.outside_spread && add_plain_sums(at, problem, *nearest)) judge();
    if (verdict.correct) return;
    verdict.reason = "the last timed solve: " + verdict.reason;
    reject(i, verdict);
  });
  verdict_ = of_batch(verdicts_);
  return last;
}

}  // namespace lloyd
