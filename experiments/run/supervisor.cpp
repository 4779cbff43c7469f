#include "experiments/run/supervisor.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <functional>
#include <iostream>
#include <memory>
#include <random>
#include <set>

#include "data/sources/generators.h"
#include "data/sources/memory.h"
#include "experiments/measure/ceilings.h"
#include "experiments/measure/energy.h"
#include "experiments/measure/external.h"
#include "experiments/measure/noise.h"
#include "experiments/measure/rounding.h"
#include "experiments/measure/session.h"
#include "experiments/record/environment.h"
#include "experiments/record/run_directory.h"
#include "experiments/record/started_run.h"
#include "experiments/record/statistics.h"
#include "experiments/record/summary.h"
#include "experiments/record/timeline_file.h"
#include "experiments/run/bounded_log.h"
#include "experiments/run/job.h"
#include "experiments/run/launch.h"
#include "experiments/run/trace.h"
#include "experiments/run/worker_process.h"
#include "experiments/text/differences.h"
#include "experiments/text/text.h"
#include "kernels/core/status.h"
#include "profiling/cache_simulation.h"
#include "profiling/nvml.h"

namespace lloyd {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t kMostPointsOfAJob = 10'000;

// What is still to do for a point.
struct Task {
  const Point* point = nullptr;
  std::map<int, std::vector<TakenSample>>
      launches;                 // to take, with the samples that are in the rows
  std::vector<Pass> profiling;  // passes to take once all launches are
  bool has_rows = false;        // in any file
  bool timed() const { return launches.empty(); }
};

std::set<std::string> versions_of(const Spec& spec) {
  std::set<std::string> versions;
  for (const Point& point : spec.points) versions.insert(point.version);
  return versions;
}

nlohmann::json fingerprints(const Spec& spec) {
  nlohmann::json data = data::fingerprint(spec.data);
  if (spec.init.method == "file")
    data = nlohmann::json::array({data, data::fingerprint(spec.init.file)});
  nlohmann::json external = nlohmann::json::object();
  for (const std::string& version : versions_of(spec)) {
    std::optional<fs::path> file = external_file(version);
    if (find_version(version)->launched && fs::exists(mpi_launcher().program))
      file = mpi_launcher().program;
    if (!file) continue;
    const std::optional<std::string> fingerprint = file_fingerprint(*file);
    external[version] = fingerprint ? nlohmann::json(*fingerprint) : nlohmann::json(nullptr);
  }
  return {{"data", data}, {"binary", binary_fingerprint()}, {"external", external}};
}

void refuse_if_different(const RunDirectory& directory, const Spec& spec) {
  const nlohmann::json resolved = directory.read_json("spec.resolved.json");
  if (resolved != spec.resolved())
    throw RunDirectoryError(fmt::format("{}: cannot resume: the spec differs ({}); start a new run",
                                        directory.path().string(),
                                        differences(resolved, spec.resolved())));
  const nlohmann::json was = started_run(directory.path()).fingerprints, is = fingerprints(spec);
  if (was.at("data") != is.at("data"))
    throw RunDirectoryError(fmt::format(
        "{}: cannot resume: the data differ ({} has other contents now); start a new run",
        directory.path().string(), spec.data.describe()));
  if (was.at("binary") != is.at("binary"))
    throw RunDirectoryError(
        fmt::format("{}: cannot resume: the binary differs (run_experiment was built anew since); "
                    "start a new run",
                    directory.path().string()));
  if (was.at("external") != is.at("external"))
    throw RunDirectoryError(
        fmt::format("{}: cannot resume: the external versions differ ({}); start a new run",
                    directory.path().string(), differences(was.at("external"), is.at("external"))));
}

// One line a point, and on a terminal a last line that says how far the run is.
class Progress {
 public:
  Progress(std::size_t total, const RunOptions& options)
      : total_(total),
        quiet_(options.quiet),
        live_(options.progress && !options.quiet && isatty(STDERR_FILENO)) {}

  ~Progress() {
    if (live_) std::cerr << "\r\033[K" << std::flush;
  }
  Progress(const Progress&) = delete;

  void begin(const Point& point) {
    if (!live_) return;
    const double spent = (now_ms() - started_) / 1e3;
    const std::string eta =
        measured_ == 0 ? ""
                       : fmt::format(", about {:.0f} s left",
                                     spent / measured_ * static_cast<double>(total_ - done_));
    ++measured_;
    std::cerr << fmt::format("\r\033[K[{}/{}{}] {}", done_ + 1, total_, eta, point.id)
              << std::flush;
  }

  void end(const std::string& what, const std::string& result, int points = 1) {
    done_ += static_cast<std::size_t>(points);
    if (quiet_) return;
    if (live_) std::cerr << "\r\033[K";
    std::cerr << fmt::format("[{}/{}] {}  {}\n", done_, total_, what, result);
  }

  /// Tells something that is no point's end.
  void note(const std::string& text) {
    if (quiet_) return;
    if (live_) std::cerr << "\r\033[K";
    std::cerr << text << '\n';
  }

 private:
  std::size_t total_, done_ = 0;
  int measured_ = 0;
  bool quiet_, live_;
  double started_ = now_ms();
};

std::string result_text(const std::vector<TakenSample>& samples, double max_noise) {
  std::vector<double> ms;
  std::vector<SampleNoise> noise;
  for (const TakenSample& sample : samples) {
    ms.push_back(sample.noise.iteration_ms);
    noise.push_back(sample.noise);
  }
  const Interval interval = median_interval(ms);
  std::string text = fmt::format("ok  {} per iteration", format_ms(interval.median));
  if (interval.low)
    text += fmt::format(" [{}, {}]", format_ms(*interval.low), format_ms(*interval.high));
  text += fmt::format("  {} repetitions", samples.size());
  const std::string disturbed = point_noise(noise, max_noise);
  return disturbed.empty() ? text : text + "  " + disturbed;
}

// Whether energy passes will be taken, and why not.
struct EnergyPlan {
  std::string no_gpu, no_cpu;  // empty: they will
  const std::string& why_not(const Point& point) const {
    return find_version(point.version)->info.backend == Backend::cuda ? no_gpu : no_cpu;
  }
};

EnergyPlan plan_energy(const Spec& spec, std::shared_ptr<profiling::Nvml> nvml,
                       const std::string& gpu_uuid, const std::string& no_nvml) {
  EnergyPlan plan;
  if (spec.measure.max_seconds < kEnergyMaxSeconds) {
    plan.no_gpu = plan.no_cpu = fmt::format(
        "measure.max_seconds is below {:.0f}: {:.0f} s of solves for the energy are not small "
        "beside it",
        kEnergyMaxSeconds, kEnergySeconds);
    return plan;
  }
  if (nvml)
    gpu_energy(std::move(nvml), gpu_uuid, plan.no_gpu);
  else
    plan.no_gpu = no_nvml.empty() ? "no GPU" : no_nvml;
  cpu_energy(powercap_directory(), plan.no_cpu);
  return plan;
}

// What is taken of a point once it is timed.
std::vector<Pass> later_passes(const Spec& spec, const EnergyPlan& energy, const Point& point) {
  std::vector<Pass> passes;
  if (energy.why_not(point).empty()) passes.push_back(Pass::energy);
  for (const Pass pass : profiling_passes(spec.profile, find_version(point.version)->info))
    passes.push_back(pass);
  return passes;
}

class Supervisor {
 public:
  Supervisor(const Spec& spec, const EnergyPlan& energy, const DeviceQuery& gpus,
             const RunOptions& options, RunDirectory directory, KnownCeilings gpu_ceilings,
             KnownCeilings cpu_ceilings)
      : spec_(spec),
        energy_(energy),
        directory_(std::move(directory)),
        log_(directory_.path() / "log.txt"),
        options_(options),
        gpu_ceilings_(std::move(gpu_ceilings)),
        cpu_ceilings_(std::move(cpu_ceilings)) {
    const auto index = static_cast<std::size_t>(options.device);
    if (index < gpus.devices.size()) device_ = gpus.devices[index];
    source_ = {spec.data.describe(),
               spec.data.generator.empty() ? std::nullopt : std::optional(spec.data.seed),
               available_cores(), spec.data_extent, ""};
  }

  RunDirectory& directory() { return directory_; }

  /// Runs the points that were ok once more under a tool. Returns a line that says what came of it.
  std::string trace(TraceTool tool, const std::string& name) {
    const auto states = directory_.states();
    std::vector<const Point*> points;
    for (const Point& point : spec_.points)
      if (const auto found = states.find(point.id); point.available && !point.processes &&
                                                    found != states.end() &&
                                                    found->second.status == status::ok)
        points.push_back(&point);  // versions of several processes have no one process to watch
    if (points.empty())
      return fmt::format("{}: no point was ok, so there is nothing to trace", name);
    // As long as all of the timing may take, and not less than a tool needs to write its report.
    const double timeout =
        std::max(600.0, spec_.measure.timeout * static_cast<double>(points.size()));
    const TraceResult result = trace_points(tool, job(Pass::timing, points), directory_.path(),
                                            log_.descriptor(), timeout);
    return fmt::format("{}: {}{}{}", name, result.report.string(),
                       result.report.empty() || result.remark.empty() ? "" : ": ", result.remark);
  }

  /// False when interrupted.
  bool run(const std::vector<Task>& all) {
    std::size_t to_time = 0;
    for (const Task& task : all) to_time += task.point->available ? task.launches.size() : 1;
    Progress progress(to_time, options_);
    std::vector<Task> tasks = record_unsupported(all, progress);
    for (int launch = 0; launch < spec_.measure.launches; ++launch) {
      const auto to_take = [&](const Task& task) { return task.launches.contains(launch); };
      for (const std::vector<Task*>& group : ordered(tasks, to_take, launch))
        if (!time(group, launch, progress)) return false;
    }
    const auto to_profile = [](const Task& task) {
      return task.timed() && !task.profiling.empty();
    };
    for (const std::vector<Task*>& group : ordered(tasks, to_profile, spec_.measure.launches))
      for (const Pass pass : later_passes(spec_, energy_, *group[0]->point))
        if (!profile(group, pass, progress)) return false;
    return true;
  }

 private:
  // Writes the rows of what cannot run here, with one line on the screen for each version and reason. Returns the rest.
  std::vector<Task> record_unsupported(const std::vector<Task>& tasks, Progress& progress) {
    std::vector<Task> runnable;
    std::vector<Row> rows;
    std::map<std::pair<std::string, std::string>, int> reasons;
    for (const Task& task : tasks) {
      if (task.timed() || task.point->available) {
        runnable.push_back(task);
        continue;
      }
      rows.push_back(
          unmeasured_row(*task.point, source_, device_, status::unsupported, task.point->reason));
      ++reasons[{task.point->version, task.point->reason}];
    }
    directory_.append("measurements.jsonl", rows);
    for (const auto& [what, count] : reasons)
      progress.end(fmt::format("{}, {} point{}", what.first, count, count == 1 ? "" : "s"),
                   "unsupported: " + for_terminal(what.second), count);
    return runnable;
  }

  // The tasks that are `wanted`, in groups that share a worker: a process for each, or its ranks. In random order, and
  // another one in each round, so that drift of the machine and what stands in the caches fall on no point in particular.
  std::vector<std::vector<Task*>> ordered(std::vector<Task>& tasks,
                                          const std::function<bool(const Task&)>& wanted,
                                          int round) const {
    std::vector<std::vector<Task*>> groups;
    for (Task& task : tasks) {
      if (!wanted(task)) continue;
      const auto same = [&](const auto& group) {
        return share_a_worker(*group[0]->point, *task.point);
      };
      const auto at = std::find_if(groups.begin(), groups.end(), same);
      if (at == groups.end())
        groups.push_back({&task});
      else
        at->push_back(&task);
    }
    if (spec_.shuffle) {
      std::seed_seq seed{static_cast<std::uint32_t>(spec_.shuffle_seed),
                         static_cast<std::uint32_t>(spec_.shuffle_seed >> 32),
                         static_cast<std::uint32_t>(round)};
      std::mt19937_64 random(seed);
      std::shuffle(groups.begin(), groups.end(), random);
      for (auto& group : groups) std::shuffle(group.begin(), group.end(), random);
    }
    return in_pieces(groups);
  }

  // A job with every point of a large plan would take gigabytes on its way to the worker.
  static std::vector<std::vector<Task*>> in_pieces(const std::vector<std::vector<Task*>>& groups) {
    std::vector<std::vector<Task*>> pieces;
    for (const auto& group : groups)
      for (std::size_t at = 0; at < group.size(); at += kMostPointsOfAJob)
        pieces.emplace_back(group.begin() + static_cast<std::ptrdiff_t>(at),
                            group.begin() + static_cast<std::ptrdiff_t>(
                                                std::min(at + kMostPointsOfAJob, group.size())));
    return pieces;
  }

  Job job(Pass pass, const std::vector<const Point*>& points) const {
    Job job{spec_.data,
            spec_.data_extent,
            spec_.init,
            spec_.stop,
            spec_.measure,
            spec_.profile,
            pass,
            spec_.name,
            device_,
            {},
            source_.cores,
            "",
            points.empty() ? "" : energy_.why_not(*points[0]),
            getpid()};
    for (const Point* point : points) job.points.push_back(*point);
    return job;
  }

  /// Takes one launch's samples of a group. False when interrupted.
  bool time(const std::vector<Task*>& group, int launch, Progress& progress) {
    std::vector<const Point*> points;
    for (const Task* task : group) points.push_back(task->point);
    Asking asking;
    asking.request = [&](std::size_t i) {
      progress.begin(*points[i]);
      Request request{i, std::nullopt, launch, {}};
      for (const TakenSample& sample : group[i]->launches.at(launch))
        request.taken.push_back(sample.solve_ms);
      return request;
    };
    asking.part = [&](std::size_t i, Reply& part) {
      // Phases are those of the first solve that was right, and once in the rows they stay.
      if (!group[i]->has_rows) directory_.append("phases.jsonl", part.phases);
      group[i]->has_rows = true;
      for (Row& row : part.measurements) {
        fill_floor(row, *points[i]);
        group[i]->launches.at(launch).push_back(taken_sample(row));
      }
      directory_.append("measurements.jsonl", part.measurements);
    };
    asking.end = [&](std::size_t i, const Reply& reply, double seconds) {
      Task& task = *group[i];
      std::string name = points[i]->id;
      if (spec_.measure.launches > 1)
        name += fmt::format("  launch {} of {}", launch + 1, spec_.measure.launches);
      const Row done = pass_row(*points[i], Pass::timing, launch, reply.status, reply.reason,
                                task.launches.at(launch).size(), seconds);
      if (reply.status == status::ok) {
        directory_.append("passes.jsonl", {done});
        progress.end(name, result_text(task.launches.at(launch), spec_.measure.max_noise));
        task.launches.erase(launch);
        return;
      }
      // What was wrong once is not ok: the point's samples, of other launches too, make room for the one row that says so.
      if (task.has_rows) directory_.forget({points[i]->id});
      directory_.append("measurements.jsonl", reply.measurements);
      directory_.append("passes.jsonl", {done});
      progress.end(name, fmt::format("{}: {}", reply.status, for_terminal(reply.reason)),
                   static_cast<int>(task.launches.size()));
      task.launches.clear();
      task.profiling.clear();
    };
    return ask_each(job(Pass::timing, points), asking);
  }

  /// Profiles what was timed: whatever comes of it is told in counters.jsonl and passes.jsonl and costs no time and no
  /// exit status. False when interrupted.
  bool profile(const std::vector<Task*>& group, Pass pass, Progress& progress) {
    std::vector<const Point*> points;
    for (const Task* task : group)
      if (std::find(task->profiling.begin(), task->profiling.end(), pass) != task->profiling.end())
        points.push_back(task->point);
    std::map<std::pair<std::string, std::string>, int> results;
    Asking asking;
    asking.request = [](std::size_t i) { return Request{i, std::nullopt, 0, {}}; };
    asking.end = [&](std::size_t i, const Reply& reply, double seconds) {
      directory_.append("counters.jsonl", reply.counters);
      directory_.append("timeline.jsonl", reply.events);
      Row done = pass_row(*points[i], pass, std::nullopt, reply.status, reply.reason,
                          reply.counters.size() + reply.events.size(), seconds);
      if (reply.energy_j) done["energy_j"] = *reply.energy_j;
      directory_.append("passes.jsonl", {done});  // last: it makes the pass complete
      ++results[{reply.status, reply.reason}];
    };
    const bool finished = ask_each(job(pass, points), asking);
    for (const auto& [result, count] : results)
      progress.note(fmt::format("{}, {} of {} point{}: {}{}", group[0]->point->version,
                                to_string(pass), count, count == 1 ? "" : "s", result.first,
                                result.second.empty() ? "" : ": " + for_terminal(result.second)));
    return finished;
  }

  // What is asked for each point of a job, by its place there, and what is done with the answers.
  struct Asking {
    std::function<Request(std::size_t)> request;
    std::function<void(std::size_t, Reply&)> part;  // each reply but the last
    std::function<void(std::size_t, const Reply&, double seconds)> end;
  };

  /// Has a worker answer for each point of the job, with a new one after each that was lost. False when interrupted.
  bool ask_each(Job job, const Asking& asking) {
    if (job.points.empty()) return true;
    const Launch launch = launch_for(job.points[0]);
    job.binding = launch.binding;
    if (!launch.binding.empty())
      dprintf(log_.descriptor(), "%s\n", join(launch.command, " ").c_str());
    std::vector<std::string> command = launch.command;
    std::optional<WorkDirectory> simulated;
    if (job.pass == Pass::cachegrind && launch.binding.empty()) {
      simulated.emplace(fs::temp_directory_path());
      const std::vector<std::string> simulator =
          profiling::simulator_command(simulated->path().string());
      command.insert(command.begin(), simulator.begin(), simulator.end());
    }
    std::unique_ptr<WorkerProcess> worker;
    for (std::size_t i = 0; i < job.points.size(); ++i) {
      if (interrupted()) return false;
      Request request = asking.request(i);
      const double start = now_ms();
      if (!worker)
        worker =
            std::make_unique<WorkerProcess>(command, log_.descriptor(), json_text(to_json(job)));
      Reply reply;
      const auto take_part = [&](Reply& part) { asking.part(i, part); };
      if (!ask(*worker, job, std::move(request), take_part, reply)) return false;
      if (reply.needs_restart) worker.reset();
      log_.next_part();
      asking.end(i, reply, (now_ms() - start) / 1e3);
    }
    return true;
  }

  /// Fills in the last reply; those before it go to `take_part`. False when interrupted.
  bool ask(WorkerProcess& worker, const Job& job, Request request,
           const std::function<void(Reply&)>& take_part, Reply& reply) {
    const Point& point = job.points[request.point];
    const auto problem =
        std::make_tuple(point.n, point.k, point.dim, storage_precision(point.precision));
    if (const auto known = expected_.find(problem); known != expected_.end())
      request.expected = known->second;
    const auto lost = [&](const std::string& status, const std::string& reason) {
      reply = Reply{};
      reply.status = status;
      reply.reason = reason;
      if (job.pass == Pass::timing) {
        reply.measurements = {unmeasured_row(point, row_source(job), device_, status, reason)};
        reply.measurements[0]["launch"] = request.launch;
      } else {
        reply.counters = missing_counters(point, job.pass, job.profile, status, reason);
      }
      reply.needs_restart = true;
    };
    bool readable = true;
    const auto take = [&](const std::string& line) {
      try {
        reply = reply_from_json(nlohmann::ordered_json::parse(line));
      } catch (const nlohmann::json::exception&) {
        readable = false;
        return false;
      }
      if (reply.expected) expected_[problem] = *reply.expected;
      if (!reply.last) take_part(reply);
      return !reply.last;
    };
    const WorkerProcess::Answer answer =
        worker.ask(json_text(to_json(request)), spec_.measure.timeout, take);
    switch (answer.outcome) {
      case WorkerProcess::Outcome::interrupted:
        return false;
      case WorkerProcess::Outcome::timed_out:
        lost(status::timeout,
             fmt::format("not done within {} s (measure.timeout)", spec_.measure.timeout));
        break;
      case WorkerProcess::Outcome::died:
        lost(status::failed, fmt::format("{}; its output is in log.txt", answer.text));
        break;
      case WorkerProcess::Outcome::replied:
        if (!readable)
          lost(status::failed, "the worker answered with something else than a result");
    }
    return true;
  }

  void fill_floor(Row& row, const Point& point) const {
    if (row.at("status") != status::ok) return;
    const KnownCeilings& known = row.at("backend") == "cuda" ? gpu_ceilings_ : cpu_ceilings_;
    std::string why_not = known.why_not;
    if (known.rates) {
      Problem problem = point.problem(spec_.stop);
      problem.stop.iterations = row.at("iterations");
      const std::optional<double> floor =
          floor_ms(problem, *known.rates, point.gpus.value_or(1), why_not);
      if (floor) {
        row["floor_ms"] = *floor;
        return;
      }
    }
    row["null_reasons"]["floor_ms"] = why_not;
  }

  const Spec& spec_;
  const EnergyPlan& energy_;
  RunDirectory directory_;
  BoundedLog log_;
  RunOptions options_;
  std::optional<DeviceLimits> device_;
  KnownCeilings gpu_ceilings_, cpu_ceilings_;
  RowSource source_;
  std::map<std::tuple<std::int64_t, int, int, Precision>, ExpectedRun> expected_;
};

std::string default_directory(const Spec& spec) {
  const std::string hash =
      fmt::format("{:08x}", std::hash<std::string>{}(json_text(spec.resolved()) + utc_now()));
  return fmt::format(
      "results/{}/{:%Y%m%dT%H%M%SZ}-{}", spec.name,
      fmt::gmtime(std::chrono::system_clock::to_time_t(std::chrono::system_clock::now())),
      hash.substr(0, 7));
}

RunDirectory start(const Spec& spec, const Overrides& overrides, const RunOptions& options) {
  if (!options.resume.empty()) {
    RunDirectory directory = RunDirectory::open(options.resume);
    refuse_if_different(directory, spec);
    return directory;
  }
  RunDirectory directory =
      RunDirectory::create(options.out.empty() ? fs::path(default_directory(spec)) : options.out);
  directory.write("spec.yaml", spec.text);
  directory.write("spec.resolved.json", json_text(spec.resolved(), 1) + '\n');
  nlohmann::json parents = nlohmann::json::object();  // what the ladder's steps are over
  for (const std::string& version : versions_of(spec))
    parents[version] = find_version(version)->info.parent;
  const nlohmann::json plan = {{"parents", parents},
                               {"fingerprints", fingerprints(spec)},
                               {"spec", fs::absolute(spec.path).string()},
                               {"files", spec.files()},
                               {"overrides", to_json(overrides)}};
  // Last: until the plan is there, nothing was started.
  directory.write("plan.json", [&](std::ostream& out) {
    std::string text = json_text(plan, 1);
    text.resize(text.size() - 2);  // "\n}"
    out << text << ",\n \"points\": [";
    const char* separator = "\n  ";
    for (const Point& point : spec.points)
      out << std::exchange(separator, ",\n  ") << json_text(to_json(point));
    out << "\n ]\n}\n";
  });
  return directory;
}

// What a resumed run has still to do; forgets the rows that it will write again.
std::vector<Task> remaining(const Spec& spec, const EnergyPlan& energy, RunDirectory& directory,
                            bool retry_failed) {
  const auto states = directory.states();
  const auto passes = directory.passes();
  const auto done = [&](const std::string& status) {
    return status == status::ok || (status::is_failure(status) && !retry_failed);
  };
  std::vector<Task> tasks;
  std::set<std::string> again;
  std::set<std::pair<std::string, std::string>> passes_again;
  for (const Point& point : spec.points) {
    const auto found = states.find(point.id);
    PointState state = found == states.end() ? PointState{} : found->second;
    if (!state.status.empty() && state.status != status::ok) {
      if (done(state.status)) continue;
      state = {};
    }
    Task task{&point, {}, {}, !state.samples.empty()};
    if (!task.has_rows) again.insert(point.id);
    for (int launch = 0; launch < spec.measure.launches; ++launch)
      if (!task.has_rows || !state.finished.contains(launch))
        task.launches[launch] = state.samples[launch];
    // Begun on a machine that had what it needs: its samples stay, and are not all.
    if (!point.available && task.has_rows && !task.timed()) continue;
    for (const Pass pass : later_passes(spec, energy, point)) {
      if (!point.available) break;  // timed on a machine that had what it needs
      const auto key = std::make_pair(point.id, std::string(to_string(pass)));
      if (const auto known = passes.find(key);
          task.timed() && known != passes.end() && done(known->second))
        continue;
      task.profiling.push_back(pass);
      if (task.timed()) passes_again.insert(key);
    }
    if (!task.timed() || !task.profiling.empty()) tasks.push_back(std::move(task));
  }
  directory.forget(again);
  directory.forget_passes(passes_again);
  return tasks;
}

}  // namespace

void decide_availability(Spec& spec, const DeviceQuery& gpus, int device) {
  std::optional<DeviceLimits> limits;
  std::string why = gpus.problem;
  if (const auto index = static_cast<std::size_t>(device); index < gpus.devices.size())
    limits = gpus.devices[index];
  else if (!gpus.devices.empty())
    why = fmt::format("no CUDA device {}: this machine has {}", device, gpus.devices.size());
  const auto generator = data::make_generator(spec.data);
  decide_availability(spec.points, spec.stop, limits, why, generator.get());
  const std::optional<std::uint64_t> free = data::free_memory();
  for (Point& point : spec.points) {
    if (!point.available) continue;
    try {
      data::check_fits(point.n, point.dim, free);
    } catch (const data::DataError& error) {
      point.available = false;
      point.reason = error.what();
    }
  }
}

int run_sweep(const Spec& spec, const Overrides& overrides, const DeviceQuery& gpus,
              const RunOptions& options) {
  RunDirectory directory = start(spec, overrides, options);
  const auto device = static_cast<std::size_t>(options.device);
  const std::string gpu_uuid = device < gpus.devices.size() ? gpus.devices[device].uuid : "";
  std::string no_nvml;
  const auto nvml = gpu_uuid.empty() ? nullptr : profiling::Nvml::open(no_nvml);
  const EnergyPlan energy = plan_energy(spec, nvml, gpu_uuid, no_nvml);
  const std::vector<Task> tasks = remaining(spec, energy, directory, options.retry_failed);
  nlohmann::ordered_json environment = describe_environment(gpus);
  KnownCeilings gpu_ceilings, cpu_ceilings = find_cpu_ceilings();
  if (device < gpus.devices.size()) gpu_ceilings = find_gpu_ceilings(gpus.devices[device]);
  const Load load = measure_load(nvml.get(), gpu_uuid);
  environment["load_before"] = to_json(load);
  environment["locked_sm_mhz"] =
      options.locked_mhz ? nlohmann::ordered_json(*options.locked_mhz) : nullptr;
  environment["ceilings"] = {{"gpu", gpu_ceilings.source}, {"cpu", cpu_ceilings.source}};
  directory.write("environment.json", json_text(environment, 1) + '\n');
  if (!options.quiet && !options.json)
    std::cerr << fmt::format(
        "{}: {} points{} into {}\n", spec.name, tasks.size(),
        tasks.size() == spec.points.size() ? "" : fmt::format(" of {}", spec.points.size()),
        for_terminal(directory.path().string()));
  if (!options.quiet && !options.json)
    std::cerr << fmt::format("{}: load before the run: {}\n", spec.name, to_text(load));

  install_interrupt_handlers();
  Supervisor supervisor(spec, energy, gpus, options, std::move(directory), std::move(gpu_ceilings),
                        std::move(cpu_ceilings));
  const bool finished = supervisor.run(tasks);
  std::vector<std::string> traces;
  if (finished && options.nsys) traces.push_back(supervisor.trace(TraceTool::nsys, "nsys"));
  if (finished && options.ncu) traces.push_back(supervisor.trace(TraceTool::ncu, "ncu"));

  RunDirectory& written = supervisor.directory();
  written.fill_energy();
  const std::vector<Row> measurements = written.read_rows("measurements.jsonl");
  std::set<std::string> unfinished;
  for (const auto& [point, state] : written.states())
    if (static_cast<int>(state.finished.size()) < spec.measure.launches &&
        state.status == status::ok)
      unfinished.insert(point);
  const std::vector<SummaryLine> lines = summarize(spec, measurements, unfinished);
  written.write("summary.md", summary_markdown(spec, lines, environment));
  if (const std::string timeline = timeline_file(written); !timeline.empty())
    written.write("timeline.json", timeline);
  written.write("benchmark.json", json_text(benchmark_json(measurements, environment)) + '\n');

  std::map<std::string, int> counts;
  for (const SummaryLine& line : lines) ++counts[line.status];
  const bool failed = std::any_of(counts.begin(), counts.end(), [](const auto& count) {
    return status::is_failure(count.first);
  });
  const int status = !finished ? 130 : failed ? 1 : 0;
  const std::string where = written.path().string();
  if (options.json) {
    nlohmann::ordered_json json;
    json["results"] = where;
    json["exit_status"] = status;
    json["points"] = lines.size();
    json["status"] = counts;
    if (!traces.empty()) json["traces"] = traces;
    std::cout << json_text(json, 1) << '\n';
  } else {
    if (!options.quiet) {
      std::cout << '\n' << summary_table(lines) << '\n';
      std::string tally;
      for (const auto& [name, count] : counts)
        tally += fmt::format("{}{} {}", tally.empty() ? "" : ", ", count, name);
      std::cout << tally << '\n';
    }
    for (const std::string& line : traces) std::cerr << for_terminal(line) << '\n';
    if (!finished)
      std::cerr << fmt::format("interrupted; go on with: run_experiment --resume {}\n",
                               for_terminal(where));
    std::cout << "results: " << for_terminal(where) << '\n';
  }
  return status;
}

}  // namespace lloyd
