#include "experiments/measure/judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <utility>

#include "experiments/measure/answer_check.h"
#include "experiments/measure/verify.h"

namespace lloyd {

double unexplained_allowed_ms(double waited_ms) { return 10 + waited_ms / 2; }

Judge::Judge(const Session& session, const VersionInfo& version, VersionFactory make,
             const Problem& problem, bool verify)
    : session_(session),
      version_(version),
      make_(std::move(make)),
      problem_(problem),
      verify_(verify) {}

Reference& Judge::reference() {
  if (!reference_) reference_ = session_.reference(problem_.points, problem_.n, problem_.dim);
  return *reference_;
}

void Judge::begin(Solution first, Context& context, const std::optional<ExpectedRun>& known) {
  if (!verify_) {
    if (auto why = wrong_form(problem_, first)) {
      verdict_.reason = "whole solve: " + *why;
      throw Incorrect(verdict_);
    }
    return;
  }
  expected_ = known;
  if (!expected_ || !expected_->spread(version_.distance)) {
    expected_ = expected_run(reference(), problem_, version_.distance, known);
    computed_ = expected_;
  }
  verdict_ =
      lloyd::verify(first, make_, problem_, context, version_.distance, reference(), *expected_);
  // During timing, no copy of the points may occupy memory beside the version's own.
  reference_.reset();
  if (!verdict_.lengths.empty()) {
    std::string lengths;
    for (const int t : verdict_.lengths)
      lengths += (lengths.empty() ? "" : ", ") + std::to_string(t);
    std::cerr << "also verified: the iterations " << lengths << " (drawn at random)" << std::endl;
  }
  if (!verdict_.correct) throw Incorrect(verdict_);
  if (version_.reproducible) first_ = std::move(first);
}

void Judge::check(Solution answer, double waited_ms, std::optional<double> reported_ms) {
  const auto wrong = [&](const std::string& why) {
    Verdict broken = verdict_;
    broken.correct = false;
    broken.reason = why;
    return Incorrect(std::move(broken));
  };
  if (!verify_) {
    if (auto why = wrong_form(problem_, answer)) throw wrong("a timed solve: " + *why);
  } else if (auto why = Recheck(problem_, version_.distance, *expected_).quick(answer, verdict_)) {
    throw wrong("a timed solve: " + *why);
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
  if (!verify_) return last;
  Recheck(problem_, version_.distance, *expected_).full(last, reference(), verdict_);
  reference_.reset();
  if (verdict_.correct) return last;
  verdict_.reason = "the last timed solve: " + verdict_.reason;
  throw Incorrect(verdict_);
}

}  // namespace lloyd
