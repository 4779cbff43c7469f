#include "experiments/measure/timing.h"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <numbers>
#include <utility>

#include "experiments/process/clock.h"
#include "experiments/record/rows.h"
#include "experiments/record/statistics.h"
#include "kernels/core/chooser.h"
#include "profiling/nvtx.h"

namespace lloyd {
namespace {

using profiling::NvtxRange;

// An untimed solve right before the timed one warms the cache. A solve longer than this evicts
// earlier data anyway, so it needs no warm-up. The first sample always has one.
constexpr double kWarmSolveMs = 100;
// A solve on the CPU that takes longer than this is its own warm-up: caches are filled and clocks
// are up after a small part of it.
constexpr double kOwnWarmUpMs = 60e3;
// Stop here: more samples would not reduce the noise, and a recorded run stays small.
constexpr int kMostRepetitions = 50;
// Keep a sample that is still throttled after this many attempts: a GPU at its power limit stays
// throttled.
constexpr int kMostAttempts = 4;

template <typename Run>
bool ended_early(const Run& run) {
  if constexpr (requires { run.error_occurred; })
    return run.error_occurred;  // its name before Google Benchmark 1.8
  else
    return run.skipped != 0;
}

// Collects the results of Google Benchmark instead of printing a table.
class Collector : public benchmark::BenchmarkReporter {
 public:
  explicit Collector(std::vector<double> taken) : solve_ms(std::move(taken)) {}
  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs)
      if (run.run_type == Run::RT_Iteration && !ended_early(run))
        solve_ms.push_back(run.real_accumulated_time / static_cast<double>(run.iterations) * 1e3);
  }
  std::vector<double> solve_ms;
};

double transfer_ms(PhaseTimes& phases) {
  double ms = 0;
  for (const auto& [phase, spent] : phases.collect())
    if (phase == "transfer") ms += spent.host_ms;
  return ms;
}

void note_choice(const Version& version, Sample& sample) {
  if (const auto* chooser = dynamic_cast<const Chooser*>(&version)) {
    sample.chosen = chooser->chosen();
    sample.chosen_by = chooser->chosen_by();
  }
}

// Replaces the measured times by those of a version that reports its own.
void note_own_times(const Version& version, Sample& sample) {
  if (const std::optional<SelfReport> own = version.self_report()) {
    sample.solve_ms = own->solve_ms;
    sample.setup_ms = own->setup_ms;
    sample.fetch_ms = own->fetch_ms;
    sample.transfer_ms = own->transfer_ms;
    sample.timing_basis = kSelfReported;
  }
}

}  // namespace

double load_seconds(double least, int repetition) {
  // Multiples of the golden ratio, without their whole parts: any number of them is spread evenly.
  const double turns = 0.5 + repetition * std::numbers::phi;
  return least * (1 + turns - std::floor(turns));
}

LabelBuffer label_buffer(const Problem& problem) {
  return {static_cast<std::size_t>(problem.n) * static_cast<std::size_t>(problem.batch), problem.k};
}

// Google Benchmark repeats the solve and reports the times that the stopping rule uses. It cannot
// choose the order of the points:
//  - its random interleaving (1.7) shuffles the repetitions of all registered benchmarks with
//    std::random_device, so no seed in the spec could reproduce the order;
//  - it fixes the number of repetitions at registration, but max_noise adds repetitions as samples
//    arrive;
//  - a timeout per point, a crash that loses only one point, and the samples kept for --resume all
//    require one point at a time.
// The supervisor therefore interleaves points by launches (supervisor.cpp). Google Benchmark also
// reports repetitions only after the last one, so the loop itself passes on each sample.
void Timer::run(const std::string& name, const Problem& problem, Context& context,
                const std::vector<double>& taken, std::optional<double> needed_cores,
                const Check& check, const std::function<void(const Sample&)>& keep) {
  Collector collector(taken);
  std::exception_ptr error;
  const double started = now_ms();
  next_repetition_ = static_cast<int>(taken.size());
  needed_cores_ = needed_cores;
  int batch = std::max(1, measure_.repetitions - next_repetition_);
  while (true) {
    benchmark::ClearRegisteredBenchmarks();
    benchmark::RegisterBenchmark(name.c_str(),
                                 [&](benchmark::State& state) {
                                   if (error) state.SkipWithError("failed before");
                                   for (auto _ : state) {
                                     try {
                                       const Sample sample =
                                           take_unthrottled(problem, context, check);
                                       keep(sample);
                                       state.SetIterationTime(sample.solve_ms / 1e3);
                                     } catch (...) {  // must not cross Google Benchmark's frames
                                       error = std::current_exception();
                                       state.SkipWithError("failed");
                                       break;
                                     }
                                   }
                                 })
        ->UseManualTime()
        // One sample each: several would be reported as their mean.
        ->Iterations(1)
        ->Repetitions(batch)
        ->Unit(benchmark::kMillisecond);
    benchmark::RunSpecifiedBenchmarks(&collector);
    if (error) std::rethrow_exception(error);
    const std::optional<double> noise = median_interval(collector.solve_ms).noise();
    const auto done = static_cast<int>(collector.solve_ms.size());
    const double spent = now_ms() - started;
    const double one = spent / static_cast<double>(done - static_cast<int>(taken.size()));
    const double affordable = (measure_.max_seconds * 1e3 - spent) / one;
    if ((noise && *noise <= measure_.max_noise) || affordable < 1 || done >= kMostRepetitions)
      return;
    batch = std::min({done, static_cast<int>(std::min(affordable, 1e6)), kMostRepetitions - done});
  }
}

Sample Timer::first(const Problem& problem, Context& context, std::optional<double> needed_cores,
                    const Watch& watch, Solution& answer) {
  needed_cores_ = needed_cores;
  return take(
      problem, context, [&](Solution solution, const Sample&) { answer = std::move(solution); },
      &watch);
}

bool Timer::suffices(const Sample& first) const {
  return !on_gpu_ && measure_.repetitions <= 1 && measure_.warmup <= 1 &&
         measure_.warm_seconds == 0 && first.solve_ms > kOwnWarmUpMs;
}

Sample Timer::take_unthrottled(const Problem& problem, Context& context, const Check& check) {
  Sample sample = take(problem, context, check);
  for (int attempt = 1; attempt < kMostAttempts && measure_.retry_throttled &&
                        !sample.gpu.throttle.value_or("").empty();
       ++attempt)
    sample = take(problem, context, check);
  ++next_repetition_;
  return sample;
}

// Every repetition is a complete end-to-end execution: allocation, upload, solve and download.
Sample Timer::take(const Problem& problem, Context& context, const Check& check,
                   const Watch* watch) {
  std::optional<NvtxRange> range;
  if (watch == nullptr) range.emplace(NvtxRange::Level::repetition, "repetition", next_repetition_);
  const Watch part = [&](const char* name, const std::function<void()>& body) {
    watch == nullptr ? body() : (*watch)(name, body);
  };
  Sample s;
  noise_.begin(needed_cores_, gpus_.size());
  PhaseTimes transfers(session_);
  const auto timed = [&](auto&& body) {
    context.observers.push_back(&transfers);
    const double start = now_ms();
    body();
    session_.synchronize();
    const double ms = now_ms() - start;
    context.observers.pop_back();
    return ms;
  };
  const std::unique_ptr<Version> version = make_();
  context.first_row = draw_first_row(problem.n);
  LabelBuffer labels = label_buffer(problem);
  std::shared_ptr<const void> pinned;
  if (pins_labels_) pinned = session_.pin(labels.memory());
  context.label_buffer = &labels;
  std::vector<double> centroids(problem.centroids.size());
  context.centroid_buffer = &centroids;
  s.setup_ms = timed([&] { part("setup", [&] { version->prepare(problem, context); }); });
  note_choice(*version, s);
  if (watch == nullptr) hold_load(*version, context);
  noise_.start();
  if (watch == nullptr) warm_up(*version, context);
  time_solve(*version, context, part, s);
  Solution solution;
  s.fetch_ms = timed([&] { part("fetch", [&] { solution = version->fetch(context); }); });
  context.label_buffer = nullptr;
  context.centroid_buffer = nullptr;
  if (labels.is_filled) solution.labels = labels.widened();
  s.iterations = solution.iterations;
  s.transfer_ms = transfer_ms(transfers);
  s.timing_basis = session_.timing_basis();
  note_own_times(*version, s);
  check(std::move(solution), s);
  s.t_utc = utc_now();
  s.repetition = next_repetition_;
  if (watch == nullptr) last_ms_ = s.solve_ms;
  return s;
}

// No version can foresee this number, so an answer kept from an earlier solve is useless.
std::int64_t Timer::draw_first_row(std::int64_t n) {
  const auto others = static_cast<std::uint64_t>(n - 1);
  return others == 0 ? 0 : 1 + static_cast<std::int64_t>(random_() % others);
}

void Timer::time_solve(Version& version, Context& context, const Watch& call, Sample& sample) {
  const double waited_from = now_ms();
  session_.start();
  call("solve", [&] { version.run(context); });
  sample.solve_ms = session_.stop();
  sample.waited_ms = now_ms() - waited_from;
  noise_.stop();
  // Before noise(), which takes milliseconds: clock, power and throttling change when a GPU idles.
  if (nvml_ != nullptr) sample.gpu = profiling::state_of(*nvml_, gpus_);
  sample.noise = noise_.noise();
}

void Timer::hold_load(Version& version, Context& context) {
  const double start = now_ms();
  const double load_ms = load_seconds(measure_.warm_seconds, next_repetition_) * 1e3;
  while (now_ms() - start < load_ms) {
    version.run(context);
    session_.synchronize();
  }
}

// Follows the start of the meter. That takes milliseconds where other processes solve, and an idle
// GPU changes its clock meanwhile.
void Timer::warm_up(Version& version, Context& context) {
  const bool is_short = on_gpu_ && (!last_ms_ || *last_ms_ < kWarmSolveMs);
  if (measure_.warm_seconds > 0 || (is_short && !measure_.l2_cold)) {
    version.run(context);
    session_.synchronize();
  }
  if (measure_.l2_cold) session_.evict_caches();
}

}  // namespace lloyd
