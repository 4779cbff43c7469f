// One process per version and pass: loads the data, then verifies and times each point, or profiles it.
#include <fmt/format.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <set>

#include "data/sources/generators.h"
#include "experiments/measure/energy.h"
#include "experiments/measure/external.h"
#include "experiments/measure/judge.h"
#include "experiments/measure/noise.h"
#include "experiments/measure/rounding.h"
#include "experiments/measure/session.h"
#include "experiments/measure/timing.h"
#include "experiments/measure/trials.h"
#include "experiments/run/job.h"
#include "experiments/run/trace.h"
#include "experiments/text/text.h"
#include "kernels/core/status.h"
#include "profiling/nvml.h"
#include "profiling/nvtx.h"

#if LLOYD_CUDA
#include "kernels/core/cuda.h"
#endif

namespace lloyd {
namespace {

using profiling::NvtxRange;

/// Hands a reply to the supervisor that is not the last one, and returns once its rows are on disk.
using HandOver = std::function<void(const Reply&)>;

template <typename T>
Row or_null(const std::optional<T>& value) {
  return value ? Row(*value) : Row(nullptr);
}

void fill_verdict(Row& row, const Verdict& verdict) {
  row["inertia"] = or_null(verdict.inertia);
  row["inertia_excess"] = or_null(verdict.inertia_excess);
  row["verified"] = verdict.verified();
  row["label_mismatches"] = or_null(verdict.label_mismatches);
  row["max_regret"] = or_null(verdict.max_regret);
  row["regret_bound"] = or_null(verdict.regret_bound);
  row["max_mean_error"] = or_null(verdict.max_mean_error);
}

// The data of all points of a dimension, in the precision that they are given in (experiments/measure/rounding.h): the largest n, of
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

class Worker {
 public:
  /// `job` is of one version; `inputs` has its data, and outlives the worker.
  Worker(Job job, const OpenSession& open, Inputs& inputs)
      : job_(std::move(job)),
        version_(*find_version(job_.points.at(0).version)),
        inputs_(inputs),
        on_gpu_(version_.info.backend == Backend::cuda),
        gpu_uuid_(on_gpu_ ? job_.device->uuid : ""),
        nvml_(on_gpu_ ? profiling::Nvml::open(no_nvml_) : nullptr),
        others_(processes_on_gpu()),
        session_(open(job_)),
        make_(session_->factory(version_)),
        noise_(watched()) {}

  /// The last reply to `request`; what comes before goes to `hand_over`.
  Reply answer(const Request& request, const HandOver& hand_over) {
    if (job_.pass == Pass::timing) return measure(request, hand_over);
    return job_.pass == Pass::energy ? measure_energy(request) : profile(request);
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
  std::set<unsigned> processes_on_gpu() const {
    return nvml_ ? nvml_->processes(gpu_uuid_).value_or(std::set<unsigned>{})
                 : std::set<unsigned>{};
  }

  NoiseMeter::Watched watched() const {
    NoiseMeter::Watched watched;
    watched.run = job_.supervisor;
    if (!job_.binding.empty())
      watched.solvers = getppid();  // mpirun's ranks
    else if (external_file(version_.info.name))
      watched.solvers = getpid();
    if (!nvml_) return watched;
    // In a container the driver may number processes otherwise than we do: ours are those that came with the session.
    std::set<unsigned> own = processes_on_gpu();
    for (const unsigned other : others_) own.erase(other);
    own.insert(static_cast<unsigned>(getpid()));
    watched.gpu = WatchedGpu{nvml_, gpu_uuid_, own};
    return watched;
  }

  /// nullopt: nobody knows.
  std::optional<double> needed_cores(const Point& point) const {
    if (point.threads || point.processes)
      return double{1} * point.threads.value_or(1) * point.processes.value_or(1);
    if (!on_gpu_ && external_file(point.version)) return std::nullopt;
    return 1;
  }

  Reply measure(const Request& request, const HandOver& hand_over) {
    Reply reply;
    try {
      measure_point(request, hand_over);
      reply.status = status::ok;
    } catch (const Incorrect& error) {
      fail(reply, request, error.verdict.status(), error.what());
      fill_verdict(reply.measurements.front(), error.verdict);
    } catch (const Unsupported& error) {
      fail(reply, request, status::unsupported, error.what());
    } catch (const std::bad_alloc&) {
      fail(reply, request, status::failed, "out of host memory");
    } catch (const std::exception& error) {
      fail(reply, request, status::failed, error.what());
      reply.needs_restart = on_gpu_;
    }
    reply.needs_restart |= !session_->usable();
    return reply;
  }

  Reply measure_energy(const Request& request) {
    const Point& point = job_.points.at(request.point);
    Reply reply;
    try {
      const std::unique_ptr<EnergyCounter> counter =
          on_gpu_ && nvml_ ? gpu_energy(nvml_, gpu_uuid_, reply.reason)
          : on_gpu_        ? nullptr
                           : cpu_energy(powercap_directory(), reply.reason);
      if (!counter) throw Unsupported(reply.reason.empty() ? no_nvml_ : reply.reason);
      const Problem problem = make_problem(point);
      Context context = make_context(point);
      const std::unique_ptr<Version> version = make_();
      version->prepare(problem, context);
      const auto solve = [&] {
        version->run(context);
        session_->synchronize();
      };
      solve();  // kernels are loaded, caches are warm
      const SolveEnergy energy = solve_energy(*counter, solve);
      if (!energy.joules) throw Unsupported(energy.why_not);
      reply.energy_j = energy.joules;
      reply.status = status::ok;
      reply.reason = "";
    } catch (const Unsupported& error) {
      reply.status = status::unsupported;
      reply.reason = error.what();
    } catch (const std::exception& error) {
      reply.status = status::failed;
      reply.reason = error.what();
      reply.needs_restart = on_gpu_ || !session_->usable();
    }
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
      reply.status = status::ok;
      for (Row& row : taken.counters) {
        if (run.n != point.n) row["simulated_n"] = run.n;
        reply.counters.push_back(counter_row(point, job_.pass, row));
      }
      for (const Row& row : taken.events) reply.events.push_back(event_row(point, row));
    } catch (const profiling::Unavailable& error) {
      reply.status = status::unsupported;
      reply.reason = error.what();
    } catch (const Unsupported& error) {
      reply.status = status::unsupported;
      reply.reason = error.what();
    } catch (const std::exception& error) {
      reply.status = status::failed;
      reply.reason = error.what();
      reply.needs_restart = on_gpu_ || !session_->usable();
    }
    if (reply.status != status::ok)
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

  void fail(Reply& reply, const Request& request, const std::string& status,
            const std::string& reason) const {
    Row row = unmeasured_row(job_.points.at(request.point), row_source(job_), job_.device, status,
                             reason);
    row["launch"] = request.launch;
    reply.status = status;
    reply.reason = reason;
    reply.measurements = {std::move(row)};
  }

  void measure_point(const Request& request, const HandOver& hand_over) {
    const Point& point = job_.points.at(request.point);
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
    Reply beginning;
    beginning.last = false;
    // The first solve is warm-up, source of the phase times (marking them costs time that no solve_ms may hold) and
    // subject of the verification, all in one: a baseline may need minutes for each.
    Solution first = solve_with_phases(problem, context, point, beginning);
    stage("first solve");
    Judge judge(*session_, version_.info, make_, problem, job_.measure.verify);
    judge.begin(std::move(first), context, request.expected);
    beginning.expected = judge.computed();
    stage("verification");
    hand_over(beginning);
    for (int w = 1; w < job_.measure.warmup; ++w) solve(make_, problem, context);
    Timer timer(*session_, make_, job_.measure, noise_, nvml_.get(), gpu_uuid_, on_gpu_);
    timer.run(
        point.id, problem, context, request.taken, needed_cores(point),
        [&](Solution solution, const Sample& sample) {
          const bool own = sample.timing_basis == kSelfReported;
          judge.check(std::move(solution), sample.waited_ms,
                      own ? std::optional(sample.solve_ms) : std::nullopt);
        },
        [&](const Sample& sample) {
          Reply reply;
          reply.last = false;
          reply.measurements = {sample_row(point, request.launch, sample, judge.verdict())};
          hand_over(reply);
        });
    judge.finish();
    stage("measurement");
    std::cerr << spent << std::endl;
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

  Row sample_row(const Point& point, int launch, const Sample& s, const Verdict& verdict) const {
    Row row = measurement_row(point, row_source(job_), job_.device);
    row["launch"] = launch;
    row["repetition"] = s.repetition;
    row["status"] = status::ok;
    row["solve_ms"] = s.solve_ms;
    row["waited_ms"] = s.waited_ms;
    row["iteration_ms"] = s.solve_ms / s.iterations;
    row["setup_ms"] = or_null(s.setup_ms);
    row["transfer_ms"] = or_null(s.transfer_ms);
    row["end_to_end_ms"] =
        s.setup_ms && s.fetch_ms ? Row(*s.setup_ms + s.solve_ms + *s.fetch_ms) : Row(nullptr);
    row["iterations"] = s.iterations;
    fill_verdict(row, verdict);
    row["timing_basis"] = s.timing_basis;
    row["chosen"] = or_null(s.chosen);
    row["sm_mhz"] = or_null(s.gpu.sm_mhz);
    row["mem_mhz"] = or_null(s.gpu.mem_mhz);
    row["temp_c"] = or_null(s.gpu.temp_c);
    row["power_w"] = or_null(s.gpu.power_w);
    row["throttle"] = or_null(s.gpu.throttle);
    fill_noise(row, s.noise);
    row["t_utc"] = s.t_utc;
    Row why;
    why["energy_j"] = job_.no_energy.empty() ? "not measured yet" : job_.no_energy;
    if (!s.noise.other_cpu)
      why["noise.other_cpu"] = "the worker was younger than 100 ms, or /proc does not say";
    if (!s.noise.migrations) why["noise.migrations"] = "/proc/self/sched does not say";
    if (!s.noise.other_gpu)
      why["noise.other_gpu"] = !on_gpu_ ? "runs on the CPU"
                               : nvml_  ? "the driver does not say who uses the GPU"
                                        : no_nvml_;
    if (!verdict.inertia)
      for (const char* field : {"inertia", "inertia_excess", "verified", "label_mismatches",
                                "max_regret", "regret_bound", "max_mean_error"})
        why[field] = "verify: false";
    else if (!verdict.inertia_excess)
      why["inertia_excess"] = verdict.no_excess;
    if (!verdict.unverified.empty()) why["verified"] = verdict.unverified;
    for (const char* field : {"setup_ms", "transfer_ms", "end_to_end_ms"})
      if (row[field].is_null()) why[field] = "the external version does not report it";
    if (!on_gpu_)
      why["gpu"] = "runs on the CPU";
    else if (!nvml_)
      why["sm_mhz"] = no_nvml_;
    row["null_reasons"] = why;
    return row;
  }

  Job job_;
  std::shared_ptr<const data::Generator> generator_ = data::make_generator(job_.data);
  const RegisteredVersion& version_;
  Inputs& inputs_;
  bool on_gpu_;
  std::string gpu_uuid_;
  std::string no_nvml_;
  std::shared_ptr<profiling::Nvml> nvml_;
  std::set<unsigned> others_;  // processes on the GPU before this one was
  std::unique_ptr<Session> session_;
  VersionFactory make_;
  NoiseMeter noise_;
  profiling::NvtxObserver nvtx_;
};

void send(const Reply& reply, int replies) {
  const std::string line = json_text(to_json(reply)) + "\n";
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
      reply = worker->answer(request, [&](const Reply& part) {
        send(part, replies);
        if (!std::getline(std::cin, line)) throw std::runtime_error("the supervisor is gone");
      });
    } catch (const std::exception& error) {
      // The worker never stood: the device is absent, busy or refuses.
      const Point& point = job.points.at(request.point);
      reply.status = status::failed;
      reply.reason = fmt::format("cannot start on the device: {}", error.what());
      if (job.pass == Pass::timing) {
        reply.measurements = {
            unmeasured_row(point, row_source(job), job.device, reply.status, reply.reason)};
        reply.measurements[0]["launch"] = request.launch;
      } else
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
