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

void measure(Workbench& bench, const Request& request, const HandOver& hand_over) {
  const Job& job = bench.job();
  const Point point = point_of(job, request);
  const NvtxRange range(NvtxRange::Level::point, point.id, point.n);
  // For log.txt: what a point spends its time on apart from its samples.
  std::string spent = point.id + ":";
  auto stage = [&spent, since = now_ms()](const char* name) mutable {
    const double now = now_ms();
    spent += fmt::format(" {} {:.1f} ms", name, now - std::exchange(since, now));
  };
  const Problem problem = bench.problem(point);
  const VersionFactory make = bench.make(problem);
  stage("data");
  Context context = bench.context(point);
  Reply beginning;
  beginning.last = false;
  Timer timer(bench.session(), make, job.measure, bench.noise(), bench.nvml().get(),
              bench.gpus(point), bench.on_gpu(), point.host_memory == kPinned);
  // The first solve is the warm-up, gives the phase times and is verified. A baseline may need
  // minutes for a solve, so one solve serves all three. Its times count only where marking phases
  // and a cold start cannot matter.
  Solution first;
  const Sample first_sample = timer.first(
      problem, context, bench.needed_cores(point),
      [&](const char* part, const std::function<void()>& body) {
        PhaseTimes times(bench.session());
        context.observers.push_back(&times);
        body();
        bench.session().synchronize();
        context.observers.pop_back();
        for (Row& row : phase_rows(point, part, times)) beginning.phases.push_back(std::move(row));
      },
      first);
  std::optional<Solution> timed;
  if (request.taken.empty() && timer.suffices(first_sample)) timed = first;
  stage("first solve");
  Judge judge(bench.session(), bench.version(), make, problem,
              {.any = job.measure.verify,
               .sample = job.measure.verify_sample,
               .seed = point.data_seed.value_or(0)});
  const auto with_rows = [&](auto&& judged) {
    try {
      judged();
    } catch (Incorrect& error) {
      error.verdict.reason += rows_text(bench.version(), problem, context.first_row);
      throw;
    }
  };
  with_rows([&] {
    try {
      judge.begin(std::move(first), context, request.expected);
    } catch (Incorrect& error) {
      if (first_sample.solve_ms < kPatience) try {
          error.verdict.reason += chance_text(make, problem, context);
        } catch (const std::exception&) {  // the first answer is wrong all the same
        }
      throw;
    }
  });
  beginning.expected = judge.computed();
  stage("verification");
  hand_over(beginning);
  const auto check = [&](Solution solution, const Sample& sample) {
    bench.check_files();
    const bool own = sample.timing_basis == kSelfReported;
    with_rows([&] {
      judge.check(std::move(solution), sample.waited_ms,
                  own ? std::optional(sample.solve_ms) : std::nullopt);
    });
  };
  const auto keep = [&](const Sample& sample) {
    Reply reply;
    reply.last = false;
    reply.measurements = {sample_row(bench, point, request.turn.launch, sample, judge.verdict())};
    hand_over(reply);
  };
  if (timed) {
    check(*std::move(timed), first_sample);
    keep(first_sample);
  } else {
    for (int w = 1; w < job.measure.warmup; ++w) solve(make, problem, context);
    timer.run(point.id, problem, context, request.taken, bench.needed_cores(point), check, keep);
  }
  Solution last;
  with_rows([&] { last = judge.finish(); });
  bench.check_files();
  stage("measurement");
  const std::optional<double> inertia = judge.verdict().inertia;
  const bool best =
      request.turn.restart == 0 || (inertia && request.to_beat && *inertia < *request.to_beat);
  if (request.turn.launch == 0 && best && !job.save.empty()) {
    write_answer(job.answers, job.save, point, last);
    stage("saving");
  }
  std::cerr << spent << std::endl;
}

}  // namespace

Reply timing_pass(Workbench& bench, const Request& request, const HandOver& hand_over) {
  const Job& job = bench.job();
  Reply reply;
  std::optional<Verdict> incorrect;
  run_pass(bench, reply, [&] {
    try {
      measure(bench, request, hand_over);
    } catch (const Incorrect& error) {
      incorrect = error.verdict;
    }
  });
  if (incorrect) {
    reply.status = incorrect->status();
    reply.reason = incorrect->reason;
  }
  if (reply.status == status::ok) return reply;
  const Point point = point_of(job, request);
  Row row = unmeasured_row(point, row_source(job, point), job.device, reply.status, reply.reason);
  row["launch"] = request.turn.launch;
  if (incorrect) fill_verdict(row, *incorrect);
  reply.measurements = {std::move(row)};
  return reply;
}

}  // namespace lloyd
