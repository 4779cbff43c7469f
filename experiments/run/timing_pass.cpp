#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "experiments/measure/judge.h"
#include "experiments/measure/timing.h"
#include "experiments/measure/trials.h"
#include "experiments/process/clock.h"
#include "experiments/record/answers.h"
#include "experiments/run/passes.h"
#include "experiments/run/run_pass.h"
#include "experiments/run/sample_row.h"
#include "experiments/text/text.h"
#include "kernels/core/status.h"

namespace lloyd {
namespace {

using profiling::NvtxRange;

/// An external version gets the points from another one on. What is said of its answer names points
/// as everybody else counts them, so this says which rows they were.
std::string rows_text(const VersionInfo& version, const Problem& problem, std::int64_t first_row) {
  if (!version.external || first_row == 0) return "";
  return fmt::format("; row r of the points that it got was point ({} + r) mod {}", first_row,
                     problem.n);
}

/// A wrong answer is computed twice more only if a solve takes no longer, in ms.
constexpr double kPatience = 1000;

/// Says so if the labels of a wrong answer are others each time.
std::string chance_text(const VersionFactory& make, const Problem& problem, Context& context) {
  const std::vector<std::int32_t> one = solve(make, problem, context).labels,
                                  two = solve(make, problem, context).labels;
  std::size_t different = 0;
  for (std::size_t i = 0; i < std::min(one.size(), two.size()); ++i) different += one[i] != two[i];
  if (different == 0) return "";
  return fmt::format("; two more solves of the same input differ in {}, as with a data race",
                     counted(different, "label"));
}

/// The steps of a point. The supervisor is told which one begins, and text() is a line of log.txt:
/// what the point spends its time on apart from its samples.
class Steps {
 public:
  Steps(const std::string& point, const char* first, const HandOver& hand_over)
      : hand_over_(hand_over), text_(point + ":") {
    begin(first);
  }

  /// Ends the step before.
  void begin(const char* name) {
    end();
    name_ = name;
    Reply reply;
    reply.last = false;
    reply.step = name;
    hand_over_(reply);
  }
  void end() {
    const double now = now_ms();
    const double spent = now - std::exchange(since_, now);
    if (!name_.empty()) text_ += fmt::format(" {} {:.1f} ms", name_, spent);
    name_.clear();
  }
  const std::string& text() const { return text_; }

 private:
  const HandOver& hand_over_;
  std::string text_, name_;
  double since_ = now_ms();
};

/// A point that is verified, timed and, if the job says so, saved.
class TimedPoint {
 public:
  TimedPoint(Workbench& bench, const Request& request, const HandOver& hand_over)
      : bench_(bench),
        job_(bench.job()),
        request_(request),
        hand_over_(hand_over),
        point_(point_of(job_, request)),
        range_(NvtxRange::Level::point, point_.id, point_.n),
        steps_(point_.id, "data", hand_over),
        problem_(bench.problem(point_)),
        make_(bench.make(problem_)),
        context_(bench.context(point_)),
        timer_(bench.session(), make_, job_.measure, bench.noise(), bench.nvml().get(),
               bench.gpus(point_), bench.on_gpu(), point_.host_memory == kPinned),
        judge_(bench.session(), bench.version(), make_, problem_,
               {.any = job_.measure.verify,
                .sample = job_.measure.verify_sample,
                .seed = point_.data_seed.value_or(0)}) {}

  /// Throws Incorrect.
  void measure() {
    // The first solve is the warm-up, gives the phase times and is verified. A baseline may need
    // minutes for a solve, so one solve serves all three. Its times count only where marking
    // phases and a cold start cannot matter.
    Solution first;
    const Sample first_sample = solve_first(first);
    std::optional<Solution> timed;
    if (request_.taken.empty() && timer_.suffices(first_sample)) timed = first;
    verify_first(std::move(first), first_sample);
    if (timed) {
      check(*std::move(timed), first_sample);
      keep(first_sample);
    } else {
      repeat();
    }
    Solution last;
    with_rows([&] { last = judge_.finish(); });
    bench_.check_files();
    save_if_best(last);
    steps_.end();
    std::cerr << steps_.text() << std::endl;
  }

 private:
  Sample solve_first(Solution& answer) {
    steps_.begin("first solve");
    const auto watch = [&](const char* part, const std::function<void()>& body) {
      PhaseTimes times(bench_.session());
      context_.observers.push_back(&times);
      body();
      bench_.session().synchronize();
      context_.observers.pop_back();
      for (Row& row : phase_rows(point_, part, times)) phases_.push_back(std::move(row));
    };
    return timer_.first(problem_, context_, bench_.needed_cores(point_), watch, answer);
  }

  /// Hands over the phases and what the reference computed.
  void verify_first(Solution answer, const Sample& sample) {
    steps_.begin("verification");
    with_rows([&] {
      try {
        judge_.begin(std::move(answer), context_, request_.expected);
      } catch (Incorrect& error) {
        if (sample.solve_ms < kPatience) try {
            error.verdict.reason += chance_text(make_, problem_, context_);
          } catch (const std::exception&) {  // the first answer is wrong all the same
          }
        throw;
      }
    });
    steps_.begin("measurement");
    Reply reply;
    reply.last = false;
    reply.phases = std::move(phases_);
    reply.expected = judge_.computed();
    hand_over_(reply);
  }

  void repeat() {
    for (int w = 1; w < job_.measure.warmup; ++w) solve(make_, problem_, context_);
    timer_.run(
        point_.id, problem_, context_, request_.taken, bench_.needed_cores(point_),
        [&](Solution answer, const Sample& sample) { check(std::move(answer), sample); },
        [&](const Sample& sample) { keep(sample); });
  }

  void check(Solution answer, const Sample& sample) {
    bench_.check_files();
    const bool own = sample.timing_basis == kSelfReported;
    with_rows([&] {
      judge_.check(std::move(answer), sample.waited_ms,
                   own ? std::optional(sample.solve_ms) : std::nullopt);
    });
  }

  void keep(const Sample& sample) {
    Reply reply;
    reply.last = false;
    reply.measurements = {
        sample_row(bench_, point_, request_.turn.launch, sample, judge_.verdict())};
    hand_over_(reply);
  }

  /// Of several restarts, the answer with the least inertia is kept.
  void save_if_best(const Solution& answer) {
    if (request_.turn.launch != 0 || job_.save.empty()) return;
    const std::optional<double> inertia = judge_.verdict().inertia;
    const bool better = inertia && request_.to_beat && *inertia < *request_.to_beat;
    if (request_.turn.restart != 0 && !better) return;
    steps_.begin("saving");
    write_answer(job_.answers, job_.save, point_, answer);
  }

  template <typename Judged>
  void with_rows(Judged&& judged) {
    try {
      judged();
    } catch (Incorrect& error) {
      error.verdict.reason += rows_text(bench_.version(), problem_, context_.first_row);
      throw;
    }
  }

  Workbench& bench_;
  const Job& job_;
  const Request& request_;
  const HandOver& hand_over_;
  Point point_;
  NvtxRange range_;
  Steps steps_;  // the first one makes the members below
  Problem problem_;
  VersionFactory make_;
  Context context_;
  Timer timer_;
  Judge judge_;
  std::vector<Row> phases_;  // of the first solve
};

}  // namespace

Reply timing_pass(Workbench& bench, const Request& request, const HandOver& hand_over) {
  Reply reply;
  std::optional<Verdict> incorrect;
  run_pass(bench, reply, [&] {
    try {
      TimedPoint(bench, request, hand_over).measure();
    } catch (const Incorrect& error) {
      incorrect = error.verdict;
    }
  });
  if (incorrect) {
    reply.status = incorrect->status();
    reply.reason = incorrect->reason;
  }
  if (reply.status == status::ok) return reply;
  Row row = unmeasured_row(bench.job(), request, reply.status, reply.reason);
  if (incorrect) fill_verdict(row, *incorrect);
  reply.measurements = {std::move(row)};
  return reply;
}

}  // namespace lloyd
