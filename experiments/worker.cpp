// One process per version and pass: loads the data, then verifies and times each point, or profiles it.
#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>

#include "data/generators.h"
#include "experiments/external.h"
#include "experiments/job.h"
#include "experiments/rounding.h"
#include "experiments/session.h"
#include "experiments/statistics.h"
#include "experiments/trace.h"
#include "experiments/verify.h"
#include "kernels/chooser.h"
#include "profiling/nvml.h"
#include "profiling/nvtx.h"

#if LLOYD_CUDA
#include "kernels/cuda.h"
#endif

namespace lloyd {
namespace {

using profiling::NvtxRange;

// A warm cache is made by an untimed solve right before the timed one; what runs longer than this
// keeps nothing in cache that it does not touch itself.
constexpr double kWarmSolveMs = 100;
// What is still noisy after this many samples stays so, and a recorded run stays small.
constexpr int kMostRepetitions = 50;

struct Incorrect : std::runtime_error {
  explicit Incorrect(Verdict what_was_found)
      : std::runtime_error(what_was_found.reason), verdict(std::move(what_was_found)) {}
  Verdict verdict;
};

/// What a reproducible version promises is checked where it costs no run: each repetition, which is one from allocation on,
/// must give the bits that were verified.
struct Promise {
  const Solution* verified;  // null: nothing is promised, or nothing was to be verified
  const Verdict& verdict;

  void check(const Solution& again) const {
    if (verified == nullptr) return;
    const std::optional<std::string> what = difference(*verified, again);
    if (!what) return;
    Verdict broken = verdict;
    broken.correct = false;
    broken.reason = "is said to be reproducible, but a second run differs: " + *what;
    throw Incorrect(std::move(broken));
  }
};

template <typename T>
Row or_null(const std::optional<T>& value) {
  return value ? Row(*value) : Row(nullptr);
}

void fill_verdict(Row& row, const Verdict& verdict) {
  row["inertia"] = or_null(verdict.inertia);
  row["verified"] = verdict.correct;
  row["label_mismatches"] = or_null(verdict.label_mismatches);
  row["max_regret"] = or_null(verdict.max_regret);
  row["regret_bound"] = or_null(verdict.regret_bound);
}

// The data of all points of a dimension, in the precision that they are given in (experiments/rounding.h): the largest n, of
// which smaller ones are the first rows.
class Inputs {
 public:
  explicit Inputs(const Job& job) : job_(job) {}

  std::span<const float> points(const Point& point) {
    const auto key = std::make_pair(point.dim, storage_precision(point.precision));
    auto at = data_.find(key);
    if (at == data_.end()) {
      std::int64_t n = 0;
      for (const Point& other : job_.points)
        if (std::make_pair(other.dim, storage_precision(other.precision)) == key)
          n = std::max(n, other.n);
      data::Dataset drawn = data::load(job_.data, n, point.dim);
      round_to_storage(point.precision, drawn.values(), point.dim, "point");
      at = data_.emplace(key, std::move(drawn)).first;
    }
    return std::as_const(at->second).values().first(static_cast<std::size_t>(point.n) * point.dim);
  }

  std::span<const float> centroids(const Point& point) {
    const auto key =
        std::make_tuple(point.n, point.k, point.dim, storage_precision(point.precision));
    auto at = centroids_.find(key);
    if (at == centroids_.end()) {
      std::vector<float> drawn =
          data::initial_centroids(job_.init, points(point), point.n, point.dim, point.k);
      round_to_storage(point.precision, drawn, point.dim, "initial centroid");
      at = centroids_.emplace(key, std::move(drawn)).first;
    }
    return at->second;
  }

 private:
  const Job& job_;
  std::map<std::pair<int, Precision>, data::Dataset> data_;
  std::map<std::tuple<std::int64_t, int, int, Precision>, std::vector<float>> centroids_;
};

// Google Benchmark's results, instead of a table on standard output.
class Collector : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs)
      if (run.run_type == Run::RT_Iteration)
        solve_ms.push_back(run.real_accumulated_time / static_cast<double>(run.iterations) * 1e3);
  }
  std::vector<double> solve_ms;
};

struct Repetition {
  double solve_ms = 0;
  std::optional<double> setup_ms, fetch_ms, transfer_ms;
  std::string timing_basis;
  std::optional<std::string> chosen;  // by a version that hands its problem on
  int iterations = 0;
  profiling::GpuState gpu;
  std::string t_utc;
};

class Worker {
 public:
  /// `job` is of one version; `inputs` has its data, and outlives the worker.
  Worker(Job job, const OpenSession& open, Inputs& inputs)
      : job_(std::move(job)),
        version_(*find_version(job_.points.at(0).version)),
        inputs_(inputs),
        on_gpu_(version_.info.backend == Backend::cuda),
        session_(open(job_)),
        make_(session_->factory(version_)) {
    if (on_gpu_) nvml_ = profiling::Nvml::open(no_nvml_);
  }

  Reply answer(const Request& request) {
    return job_.pass == Pass::timing ? measure(request) : profile(request);
  }

  /// One execution from allocation to download, for a tool that watches.
  void execute(const Point& point) {
    const NvtxRange range(NvtxRange::Level::point, point.id, point.n);
    const Problem problem = make_problem(point);
    Context context = make_context(point);
    const NvtxRange repetition(NvtxRange::Level::repetition, "repetition", 0);
    solve(make_, problem, context);
    session_->synchronize();
  }

 private:
  Reply measure(const Request& request) {
    const Point& point = job_.points.at(request.point);
    Reply reply;
    try {
      measure_point(point, request, reply);
    } catch (const Incorrect& error) {
      fail(reply, point, "incorrect", error.what());
      fill_verdict(reply.measurements.front(), error.verdict);
    } catch (const Unsupported& error) {
      fail(reply, point, "unsupported", error.what());
    } catch (const std::bad_alloc&) {
      fail(reply, point, "failed", "out of host memory");
    } catch (const std::exception& error) {
      fail(reply, point, "failed", error.what());
      reply.needs_restart = on_gpu_;
    }
    reply.needs_restart |= !session_->usable();
    return reply;
  }

  Reply profile(const Request& request) {
    const Point& point = job_.points.at(request.point);
    const NvtxRange range(NvtxRange::Level::point, point.id, point.n);
    Reply reply;
    try {
      const Point run = profiled_point(job_.pass, point);
      Problem problem = make_problem(run);
      problem.stop.iterations = profiled_iterations(job_.pass, version_.info.backend, job_.stop);
      const auto solve = profiled_solve(make_, problem, make_context(run), *session_);
      profiling::Profile taken =
          take_profile(job_.pass, job_.profile, *solve, on_gpu_ ? *job_.device : DeviceLimits{});
      reply.status = "ok";
      for (Row& row : taken.counters) {
        if (run.n != point.n) row["simulated_n"] = run.n;
        reply.counters.push_back(counter_row(point, job_.pass, row));
      }
      for (const Row& row : taken.events) reply.events.push_back(event_row(point, row));
    } catch (const profiling::Unavailable& error) {
      reply.status = "unsupported";
      reply.reason = error.what();
    } catch (const Unsupported& error) {
      reply.status = "unsupported";
      reply.reason = error.what();
    } catch (const std::exception& error) {
      reply.status = "failed";
      reply.reason = error.what();
      reply.needs_restart = on_gpu_ || !session_->usable();
    }
    if (reply.status != "ok")
      reply.counters = missing_counters(point, job_.pass, job_.profile, reply.status, reply.reason);
    return reply;
  }

  Problem make_problem(const Point& point) {
    Problem problem = point.problem(job_.stop);
    problem.points = inputs_.points(point);
    problem.centroids = inputs_.centroids(point);
    // Rounded points are no longer what the generator draws.
    if (storage_precision(point.precision) == Precision::fp32) problem.generator = generator_.get();
    return problem;
  }

  Context make_context(const Point& point) {
    Context context;
    context.tunables = point.tunables();
    if (on_gpu_) context.device = *job_.device;
    context.stream = session_->stream();
    context.communicator = session_->communicator();
    if (job_.profile.nvtx) context.observers.push_back(&nvtx_);
    return context;
  }

  void fail(Reply& reply, const Point& point, const std::string& status,
            const std::string& reason) const {
    Row row = unmeasured_row(point, row_source(job_), job_.device, status, reason);
    reply.measurements = {std::move(row)};
    reply.phases.clear();
  }

  void measure_point(const Point& point, const Request& request, Reply& reply) {
    const NvtxRange range(NvtxRange::Level::point, point.id, point.n);
    // For log.txt: where the time of a point goes that is not in its rows.
    std::string spent = point.id + ":";
    auto stage = [&spent, since = now_ms()](const char* name) mutable {
      const double now = now_ms();
      spent += fmt::format(" {} {:.1f} ms", name, now - std::exchange(since, now));
    };
    const Problem problem = make_problem(point);
    stage("data");
    Context context = make_context(point);
    // The first solve is warm-up, source of the phase times (marking them costs time that no solve_ms may hold) and
    // subject of the verification, all in one: a baseline may need minutes for each.
    const Solution first = solve_with_phases(problem, context, point, reply);
    stage("first solve");
    const Verdict verdict =
        job_.measure.verify ? judge(first, problem, context, request, reply) : Verdict{};
    stage("verification");
    for (int w = 1; w < job_.measure.warmup; ++w) solve(make_, problem, context);
    const bool held = job_.measure.verify && version_.info.reproducible;
    const Promise promise{held ? &first : nullptr, verdict};
    report(point, time_repetitions(point, problem, context, promise), verdict, reply);
    stage("measurement");
    std::cerr << spent << std::endl;
  }

  Verdict judge(const Solution& solution, const Problem& problem, Context& context,
                const Request& request, Reply& reply) const {
    const std::unique_ptr<Reference> reference =
        session_->reference(problem.points, problem.n, problem.dim);
    std::optional<ExpectedRun> expected = request.expected;
    if (!expected) {
      const ReferenceRun run = reference_solve(*reference, problem);
      expected = reply.expected = ExpectedRun{run.initial_inertia, run.inertia, run.iterations};
    }
    Verdict verdict =
        verify(solution, make_, problem, context, version_.info.distance, *reference, *expected);
    if (!verdict.correct) throw Incorrect(verdict);
    return verdict;
  }

  Solution solve_with_phases(const Problem& problem, Context& context, const Point& point,
                             Reply& reply) {
    const std::unique_ptr<Version> version = make_();
    const auto observed = [&](const char* part, auto&& body) {
      PhaseTimes times(*session_);
      context.observers.push_back(&times);
      body();
      session_->synchronize();
      context.observers.pop_back();
      for (const auto& [phase, spent] : times.collect()) {
        Row row;
        row["point"] = point.id;
        row["version"] = point.version;
        row["part"] = part;
        row["phase"] = phase;
        row["calls"] = spent.calls;
        row["device_ms"] = times.has_device_times() ? Row(spent.device_ms) : Row(nullptr);
        row["host_ms"] = spent.host_ms;
        reply.phases.push_back(std::move(row));
      }
    };
    Solution solution;
    observed("setup", [&] { version->prepare(problem, context); });
    observed("solve", [&] { version->run(context); });
    observed("fetch", [&] { solution = version->fetch(context); });
    return solution;
  }

  std::vector<Repetition> time_repetitions(const Point& point, const Problem& problem,
                                           Context& context, const Promise& promise) {
    std::vector<Repetition> repetitions;
    Collector collector;
    std::exception_ptr error;
    const double started = now_ms();
    const Measure& m = job_.measure;
    int batch = m.repetitions;
    while (true) {
      benchmark::ClearRegisteredBenchmarks();
      benchmark::RegisterBenchmark(
          point.id.c_str(),
          [&](benchmark::State& state) {
            for (auto _ : state) {
              try {
                repetitions.push_back(time_one(repetitions, problem, context, promise));
                state.SetIterationTime(repetitions.back().solve_ms / 1e3);
              } catch (...) {  // must not cross Google Benchmark's frames
                error = std::current_exception();
                state.SkipWithError("failed");
                break;
              }
            }
          })
          ->UseManualTime()
          ->Iterations(1)
          ->Repetitions(batch)
          ->Unit(benchmark::kMillisecond);
      benchmark::RunSpecifiedBenchmarks(&collector);
      if (error) std::rethrow_exception(error);
      const std::optional<double> noise = median_interval(collector.solve_ms).noise();
      const auto done = static_cast<int>(repetitions.size());
      const double spent = now_ms() - started;
      const double one = spent / done;
      const double affordable = (m.max_seconds * 1e3 - spent) / one;
      if ((noise && *noise <= m.max_noise) || affordable < 1 || done >= kMostRepetitions) break;
      batch =
          std::min({done, static_cast<int>(std::min(affordable, 1e6)), kMostRepetitions - done});
    }
    for (std::size_t r = 0; r < repetitions.size(); ++r)
      repetitions[r].solve_ms = collector.solve_ms.at(r);
    return repetitions;
  }

  // Allocation, upload, solve and download anew: each repetition is a whole end-to-end execution.
  Repetition time_one(const std::vector<Repetition>& before, const Problem& problem,
                      Context& context, const Promise& promise) const {
    const NvtxRange range(NvtxRange::Level::repetition, "repetition",
                          static_cast<std::int64_t>(before.size()));
    Repetition r;
    PhaseTimes transfers(*session_);
    const auto timed = [&](auto&& body) {
      context.observers.push_back(&transfers);
      const double start = now_ms();
      body();
      session_->synchronize();
      const double ms = now_ms() - start;
      context.observers.pop_back();
      return ms;
    };
    const std::unique_ptr<Version> version = make_();
    r.setup_ms = timed([&] { version->prepare(problem, context); });
    if (const auto* chooser = dynamic_cast<const Chooser*>(version.get()))
      r.chosen = chooser->chosen();
    if (job_.measure.l2_cold)
      session_->evict_caches();
    else if (on_gpu_ && (before.empty() || before.back().solve_ms < kWarmSolveMs))
      version->run(context);
    session_->start();
    version->run(context);
    r.solve_ms = session_->stop();
    if (nvml_) r.gpu = nvml_->state(job_.device->uuid);
    Solution solution;
    r.fetch_ms = timed([&] { solution = version->fetch(context); });
    promise.check(solution);
    r.iterations = solution.iterations;
    r.transfer_ms = 0;
    for (const auto& [phase, spent] : transfers.collect())
      if (phase == "transfer") *r.transfer_ms += spent.host_ms;
    r.timing_basis = session_->timing_basis();
    if (const std::optional<SelfReport> own = version->self_report()) {
      r.solve_ms = own->solve_ms;
      r.setup_ms = own->setup_ms;
      r.fetch_ms = own->fetch_ms;
      r.transfer_ms = own->transfer_ms;
      r.timing_basis = "self_reported";
    }
    r.t_utc = utc_now();
    return r;
  }

  void report(const Point& point, const std::vector<Repetition>& repetitions,
              const Verdict& verdict, Reply& reply) const {
    for (std::size_t i = 0; i < repetitions.size(); ++i) {
      const Repetition& r = repetitions[i];
      Row row = measurement_row(point, row_source(job_), job_.device);
      row["repetition"] = i;
      row["repetitions"] = repetitions.size();
      row["status"] = "ok";
      row["solve_ms"] = r.solve_ms;
      row["iteration_ms"] = r.solve_ms / r.iterations;
      row["setup_ms"] = or_null(r.setup_ms);
      row["transfer_ms"] = or_null(r.transfer_ms);
      row["end_to_end_ms"] =
          r.setup_ms && r.fetch_ms ? Row(*r.setup_ms + r.solve_ms + *r.fetch_ms) : Row(nullptr);
      row["iterations"] = r.iterations;
      fill_verdict(row, verdict);
      row["timing_basis"] = r.timing_basis;
      row["chosen"] = or_null(r.chosen);
      row["sm_mhz"] = or_null(r.gpu.sm_mhz);
      row["mem_mhz"] = or_null(r.gpu.mem_mhz);
      row["temp_c"] = or_null(r.gpu.temp_c);
      row["power_w"] = or_null(r.gpu.power_w);
      row["throttle"] = or_null(r.gpu.throttle);
      row["t_utc"] = r.t_utc;
      Row why;
      if (!verdict.inertia)
        for (const char* field : {"inertia", "label_mismatches", "max_regret", "regret_bound"})
          why[field] = "verify: false";
      for (const char* field : {"setup_ms", "transfer_ms", "end_to_end_ms"})
        if (row[field].is_null()) why[field] = "the external version does not report it";
      if (!on_gpu_)
        why["gpu"] = "runs on the CPU";
      else if (!nvml_)
        why["sm_mhz"] = no_nvml_;
      row["null_reasons"] = why;
      reply.measurements.push_back(std::move(row));
    }
  }

  Job job_;
  std::shared_ptr<const data::Generator> generator_ = data::make_generator(job_.data);
  const RegisteredVersion& version_;
  Inputs& inputs_;
  bool on_gpu_;
  std::unique_ptr<Session> session_;
  VersionFactory make_;
  std::shared_ptr<profiling::Nvml> nvml_;
  std::string no_nvml_;
  profiling::NvtxObserver nvtx_;
};

void send(const Reply& reply, int replies) {
  const std::string line = to_json(reply).dump() + "\n";
  for (std::size_t sent = 0; sent < line.size();) {
    const ssize_t wrote = write(replies, line.data() + sent, line.size() - sent);
    if (wrote < 0) throw std::runtime_error("the supervisor is gone");
    sent += static_cast<std::size_t>(wrote);
  }
}

}  // namespace

std::unique_ptr<Session> open_session(const Job& job) {
#if LLOYD_CUDA
  if (find_version(job.points.at(0).version)->info.backend == Backend::cuda)
    return make_cuda_session(job.device->index);
#else
  static_cast<void>(job);
#endif
  return make_cpu_session();
}

int run_worker(int replies, const OpenSession& open) {
  std::string line;
  if (!std::getline(std::cin, line)) return 2;
  const Job job = job_from_json(nlohmann::json::parse(line));
  const NvtxRange range(NvtxRange::Level::experiment, job.experiment,
                        static_cast<std::int64_t>(job.points.size()));
  Inputs inputs(job);
  std::unique_ptr<Worker> worker;
  while (std::getline(std::cin, line)) {
    const Request request = request_from_json(nlohmann::json::parse(line));
    Reply reply;
    try {
      const std::string& version = job.points.at(0).version;
      if (find_version(version) == nullptr) discover_external_versions(version);
      if (!worker) worker = std::make_unique<Worker>(job, open, inputs);
      reply = worker->answer(request);
    } catch (const std::exception& error) {
      // The worker never stood: the device is absent, busy or refuses.
      const Point& point = job.points.at(request.point);
      reply.status = "failed";
      reply.reason = fmt::format("cannot start on the device: {}", error.what());
      if (job.pass == Pass::timing)
        reply.measurements = {
            unmeasured_row(point, row_source(job), job.device, reply.status, reply.reason)};
      else
        reply.counters = missing_counters(point, job.pass, job.profile, reply.status, reply.reason);
      reply.needs_restart = true;
    }
    send(reply, replies);
  }
  return 0;
}

int run_traced(const std::filesystem::path& job_file) {
  std::ifstream in(job_file);
  const Job job = job_from_json(nlohmann::json::parse(in));
  discover_external_versions();
  Inputs inputs(job);
  std::map<std::string, std::unique_ptr<Worker>> workers;
  const auto execute_all = [&] {
    for (const Point& point : job.points) {
      auto& worker = workers[point.version];
      if (!worker) {
        Job own = job;
        own.points = {point};
        worker = std::make_unique<Worker>(std::move(own), open_session, inputs);
      }
      worker->execute(point);
    }
  };
  execute_all();  // data, contexts, kernels loaded: before what is captured
  const profiling::CaptureRange capture;
  const NvtxRange range(NvtxRange::Level::experiment, job.experiment,
                        static_cast<std::int64_t>(job.points.size()));
  execute_all();
  return 0;
}

}  // namespace lloyd
