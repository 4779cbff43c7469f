#include "experiments/supervisor.h"

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

#include "data/generators.h"
#include "experiments/ceilings.h"
#include "experiments/environment.h"
#include "experiments/external.h"
#include "experiments/job.h"
#include "experiments/launch.h"
#include "experiments/rounding.h"
#include "experiments/run_directory.h"
#include "experiments/session.h"
#include "experiments/statistics.h"
#include "experiments/summary.h"
#include "experiments/text.h"
#include "experiments/timeline_file.h"
#include "experiments/trace.h"
#include "experiments/worker_process.h"
#include "profiling/cache_simulation.h"

namespace lloyd {
namespace fs = std::filesystem;
namespace {

// What is still to do for a point.
struct Task {
  const Point* point = nullptr;
  bool timed = false;           // its times are in the rows already
  std::vector<Pass> profiling;  // passes to take once it is timed
};

nlohmann::json fingerprints(const Spec& spec) {
  nlohmann::json data = data::fingerprint(spec.data);
  if (spec.init.method == "file")
    data = nlohmann::json::array({data, data::fingerprint(spec.init.file)});
  nlohmann::json external = nlohmann::json::object();
  for (const Point& point : spec.points) {
    if (external.contains(point.version)) continue;
    std::optional<fs::path> file = external_file(point.version);
    if (find_version(point.version)->launched && fs::exists(mpi_launcher().program))
      file = mpi_launcher().program;
    if (file) external[point.version] = data::fingerprint({.file = *file});
  }
  return {{"data", data}, {"binary", binary_fingerprint()}, {"external", external}};
}

// The first few places where two resolved specs differ, as "measure/repetitions: was 9, is 5".
std::string differences(const nlohmann::json& was, const nlohmann::json& is) {
  std::string text;
  int shown = 0;
  for (const auto& change : nlohmann::json::diff(was, is)) {
    if (++shown > 3) return text + "; …";
    const nlohmann::json::json_pointer at(change.at("path").get<std::string>());
    const auto value = [&](const nlohmann::json& in) {
      std::string dumped = in.contains(at) ? in.at(at).dump() : "absent";
      return dumped.size() > 60 ? dumped.substr(0, 60) + "…" : dumped;
    };
    text += fmt::format("{}{}: was {}, is {}", text.empty() ? "" : "; ",
                        change.at("path").get<std::string>().substr(1), value(was), value(is));
  }
  return text;
}

void refuse_if_different(const RunDirectory& directory, const Spec& spec) {
  const auto load = [&](const char* name) {
    std::ifstream in(directory.path() / name);
    return nlohmann::json::parse(in);
  };
  const nlohmann::json resolved = load("spec.resolved.json");
  if (resolved != spec.resolved())
    throw RunDirectoryError(fmt::format("{}: cannot resume: the spec differs ({}); start a new run",
                                        directory.path().string(),
                                        differences(resolved, spec.resolved())));
  const nlohmann::json was = load("plan.json").at("fingerprints"), is = fingerprints(spec);
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

std::string result_text(const std::vector<Row>& rows) {
  const Row& first = rows.at(0);
  if (first.at("status") != "ok")
    return fmt::format("{}: {}", first.at("status").get<std::string>(),
                       first.at("reason").get<std::string>());
  std::vector<double> ms;
  for (const Row& row : rows) ms.push_back(row.at("iteration_ms"));
  const Interval interval = median_interval(ms);
  std::string text = fmt::format("ok  {} per iteration", format_ms(interval.median));
  if (interval.low)
    text += fmt::format(" [{}, {}]", format_ms(*interval.low), format_ms(*interval.high));
  return text + fmt::format("  {} repetitions", rows.size());
}

class Descriptor {
 public:
  explicit Descriptor(const fs::path& path)
      : descriptor_(open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644)) {
    if (descriptor_ < 0)
      throw std::system_error(errno, std::generic_category(), "cannot open " + path.string());
  }
  ~Descriptor() { close(descriptor_); }
  Descriptor(const Descriptor&) = delete;
  int get() const { return descriptor_; }

 private:
  int descriptor_;
};

class Supervisor {
 public:
  Supervisor(const Spec& spec, const DeviceQuery& gpus, const RunOptions& options,
             RunDirectory directory, KnownCeilings gpu_ceilings, KnownCeilings cpu_ceilings)
      : spec_(spec),
        directory_(std::move(directory)),
        log_(directory_.path() / "log.txt"),
        options_(options),
        gpu_ceilings_(std::move(gpu_ceilings)),
        cpu_ceilings_(std::move(cpu_ceilings)) {
    const auto index = static_cast<std::size_t>(options.device);
    if (index < gpus.devices.size()) device_ = gpus.devices[index];
    source_ = {spec.data.describe(),
               spec.data.generator.empty() ? std::nullopt : std::optional(spec.data.seed),
               available_cores(), ""};
  }

  RunDirectory& directory() { return directory_; }

  /// Runs the points that were ok once more under a tool. Returns a line that says what came of it.
  std::string trace(TraceTool tool, const std::string& name) {
    const auto states = directory_.states();
    std::vector<const Point*> points;
    for (const Point& point : spec_.points)
      if (const auto found = states.find(point.id); point.available && !point.processes &&
                                                    found != states.end() &&
                                                    found->second.status == "ok")
        points.push_back(&point);  // versions of several processes have no one process to watch
    if (points.empty())
      return fmt::format("{}: no point was ok, so there is nothing to trace", name);
    // As long as all of the timing may take, and not less than a tool needs to write its report.
    const double timeout =
        std::max(600.0, spec_.measure.timeout * static_cast<double>(points.size()));
    const TraceResult result =
        trace_points(tool, job(Pass::timing, points), directory_.path(), log_.get(), timeout);
    return fmt::format("{}: {}{}{}", name, result.report.string(),
                       result.report.empty() || result.remark.empty() ? "" : ": ", result.remark);
  }

  /// False when interrupted.
  bool run(const std::vector<Task>& tasks) {
    const auto to_time =
        std::count_if(tasks.begin(), tasks.end(), [](const Task& task) { return !task.timed; });
    Progress progress(static_cast<std::size_t>(to_time), options_);
    for (std::vector<Task>& group : ordered(record_unsupported(tasks, progress))) {
      if (!time(group, progress)) return false;
      for (const Pass pass :
           profiling_passes(spec_.profile, find_version(group[0].point->version)->info))
        if (!profile(group, pass, progress)) return false;
    }
    return true;
  }

 private:
  // Writes the rows of what cannot run here, with one line on the screen for each version and reason. Returns the rest.
  std::vector<Task> record_unsupported(const std::vector<Task>& tasks, Progress& progress) {
    std::vector<Task> runnable;
    std::vector<Row> rows;
    std::map<std::pair<std::string, std::string>, int> reasons;
    for (const Task& task : tasks) {
      if (task.timed || task.point->available) {
        runnable.push_back(task);
        continue;
      }
      rows.push_back(
          unmeasured_row(*task.point, source_, device_, "unsupported", task.point->reason));
      ++reasons[{task.point->version, task.point->reason}];
    }
    directory_.append("measurements.jsonl", rows);
    for (const auto& [what, count] : reasons)
      progress.end(fmt::format("{}, {} point{}", what.first, count, count == 1 ? "" : "s"),
                   "unsupported: " + what.second, count);
    return runnable;
  }

  // Random order, so that drift of the machine falls on no version in particular, but all of a version in one go: a process
  // each, or its ranks.
  std::vector<std::vector<Task>> ordered(const std::vector<Task>& tasks) const {
    std::vector<std::vector<Task>> groups;
    for (const Task& task : tasks) {
      const auto same = [&](const auto& group) {
        return share_a_worker(*group[0].point, *task.point);
      };
      const auto at = std::find_if(groups.begin(), groups.end(), same);
      if (at == groups.end())
        groups.push_back({task});
      else
        at->push_back(task);
    }
    if (spec_.shuffle) {
      std::mt19937_64 random(spec_.shuffle_seed);
      std::shuffle(groups.begin(), groups.end(), random);
      for (auto& group : groups) std::shuffle(group.begin(), group.end(), random);
    }
    return groups;
  }

  Job job(Pass pass, const std::vector<const Point*>& points) const {
    Job job{spec_.data,
            spec_.init,
            spec_.stop,
            spec_.measure,
            spec_.profile,
            pass,
            spec_.name,
            device_,
            {},
            source_.cores,
            ""};
    for (const Point* point : points) job.points.push_back(*point);
    return job;
  }

  /// Times what is not timed yet. False when interrupted.
  bool time(std::vector<Task>& group, Progress& progress) {
    std::vector<Task*> tasks;
    std::vector<const Point*> points;
    for (Task& task : group) {
      if (task.timed) continue;
      tasks.push_back(&task);
      points.push_back(task.point);
    }
    return ask_each(
        job(Pass::timing, points), [&](const Point& point) { progress.begin(point); },
        [&](std::size_t i, const Reply& reply, double) {
          std::vector<Row> measurements = reply.measurements;
          for (Row& row : measurements) fill_floor(row, *points[i]);
          // Phases first: a point counts as done by its measurements.
          directory_.append("phases.jsonl", reply.phases);
          directory_.append("measurements.jsonl", measurements);
          tasks[i]->timed = measurements.at(0).at("status") == "ok";
          progress.end(points[i]->id, result_text(measurements));
        });
  }

  /// Profiles what was timed: whatever comes of it is told in counters.jsonl and passes.jsonl and costs no time and no
  /// exit status. False when interrupted.
  bool profile(const std::vector<Task>& group, Pass pass, Progress& progress) {
    std::vector<const Point*> points;
    for (const Task& task : group)
      if (task.timed &&
          std::find(task.profiling.begin(), task.profiling.end(), pass) != task.profiling.end())
        points.push_back(task.point);
    std::map<std::pair<std::string, std::string>, int> results;
    const bool finished = ask_each(
        job(pass, points), [](const Point&) {},
        [&](std::size_t i, const Reply& reply, double seconds) {
          directory_.append("counters.jsonl", reply.counters);
          directory_.append("timeline.jsonl", reply.events);
          // Last: it makes the pass complete.
          directory_.append("passes.jsonl",
                            {pass_row(*points[i], pass, reply.status, reply.reason,
                                      reply.counters.size() + reply.events.size(), seconds)});
          ++results[{reply.status, reply.reason}];
        });
    for (const auto& [result, count] : results)
      progress.note(fmt::format("{}, {} of {} point{}: {}{}", group[0].point->version,
                                to_string(pass), count, count == 1 ? "" : "s", result.first,
                                result.second.empty() ? "" : ": " + result.second));
    return finished;
  }

  /// Has a worker answer for each point of the job, with a new one after each that was lost. False when interrupted.
  bool ask_each(Job job, const std::function<void(const Point&)>& before,
                const std::function<void(std::size_t, const Reply&, double)>& after) {
    if (job.points.empty()) return true;
    const Launch launch = launch_for(job.points[0]);
    job.binding = launch.binding;
    if (!launch.binding.empty()) dprintf(log_.get(), "%s\n", join(launch.command, " ").c_str());
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
      before(job.points[i]);
      const double start = now_ms();
      if (!worker)
        worker = std::make_unique<WorkerProcess>(command, log_.get(), to_json(job).dump());
      Reply reply;
      if (!ask(*worker, job, i, reply)) return false;
      if (reply.needs_restart) worker.reset();
      after(i, reply, (now_ms() - start) / 1e3);
    }
    return true;
  }

  bool ask(WorkerProcess& worker, const Job& job, std::size_t index, Reply& reply) {
    const Point& point = job.points[index];
    const auto problem =
        std::make_tuple(point.n, point.k, point.dim, storage_precision(point.precision));
    Request request{index, std::nullopt};
    if (const auto known = expected_.find(problem); known != expected_.end())
      request.expected = known->second;
    const WorkerProcess::Answer answer = worker.ask(to_json(request).dump(), spec_.measure.timeout);
    const auto lost = [&](const std::string& status, const std::string& reason) {
      reply = Reply{};
      reply.status = status;
      reply.reason = reason;
      if (job.pass == Pass::timing)
        reply.measurements = {unmeasured_row(point, row_source(job), device_, status, reason)};
      else
        reply.counters = missing_counters(point, job.pass, job.profile, status, reason);
      reply.needs_restart = true;
    };
    switch (answer.outcome) {
      case WorkerProcess::Outcome::interrupted:
        return false;
      case WorkerProcess::Outcome::timed_out:
        lost("timeout",
             fmt::format("not done within {} s (measure.timeout)", spec_.measure.timeout));
        return true;
      case WorkerProcess::Outcome::died:
        lost("failed", fmt::format("{}; its output is in log.txt", answer.text));
        return true;
      case WorkerProcess::Outcome::replied:
        break;
    }
    try {
      reply = reply_from_json(nlohmann::ordered_json::parse(answer.text));
    } catch (const nlohmann::json::exception&) {
      lost("failed", "the worker answered with something else than a result");
      return true;
    }
    if (reply.expected) expected_[problem] = *reply.expected;
    return true;
  }

  void fill_floor(Row& row, const Point& point) const {
    if (row.at("status") != "ok") return;
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
  RunDirectory directory_;
  Descriptor log_;
  RunOptions options_;
  std::optional<DeviceLimits> device_;
  KnownCeilings gpu_ceilings_, cpu_ceilings_;
  RowSource source_;
  std::map<std::tuple<std::int64_t, int, int, Precision>, ExpectedRun> expected_;
};

std::string default_directory(const Spec& spec) {
  const std::string hash =
      fmt::format("{:08x}", std::hash<std::string>{}(spec.resolved().dump() + utc_now()));
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
  directory.write("spec.resolved.json", spec.resolved().dump(1) + '\n');
  nlohmann::json points = nlohmann::json::array();
  nlohmann::json parents = nlohmann::json::object();  // what the ladder's steps are over
  for (const Point& point : spec.points) {
    points.push_back(to_json(point));
    parents[point.version] = find_version(point.version)->info.parent;
  }
  const nlohmann::json plan = {{"points", points},
                               {"parents", parents},
                               {"fingerprints", fingerprints(spec)},
                               {"spec", fs::absolute(spec.path).string()},
                               {"overrides", to_json(overrides)}};
  directory.write("plan.json", plan.dump(1) + '\n');
  return directory;
}

// What a resumed run has still to do; forgets the rows that it will write again.
std::vector<Task> remaining(const Spec& spec, RunDirectory& directory, bool retry_failed) {
  const auto states = directory.states();
  const auto passes = directory.passes();
  const auto done = [&](const std::string& status) {
    const bool failed = status == "failed" || status == "timeout" || status == "incorrect";
    return status == "ok" || (failed && !retry_failed);
  };
  std::vector<Task> tasks;
  std::set<std::string> again;
  std::set<std::pair<std::string, std::string>> passes_again;
  for (const Point& point : spec.points) {
    Task task{&point, false, {}};
    if (const auto found = states.find(point.id); found != states.end()) {
      const PointState& state = found->second;
      task.timed = state.complete && state.status == "ok";
      if (state.complete && done(state.status) && !task.timed) continue;
      if (!task.timed) again.insert(point.id);
    }
    for (const Pass pass : profiling_passes(spec.profile, find_version(point.version)->info)) {
      if (!point.available) break;  // timed on a machine that had what it needs
      const auto key = std::make_pair(point.id, std::string(to_string(pass)));
      if (const auto found = passes.find(key);
          task.timed && found != passes.end() && done(found->second))
        continue;
      task.profiling.push_back(pass);
      if (task.timed) passes_again.insert(key);
    }
    if (!task.timed || !task.profiling.empty()) tasks.push_back(std::move(task));
  }
  directory.forget(again);
  directory.forget_passes(passes_again);
  return tasks;
}

}  // namespace

nlohmann::json to_json(const Overrides& o) {
  nlohmann::json json = {{"set", o.set}, {"only", o.only}, {"filter", o.filter}};
  if (o.repetitions) json["repetitions"] = *o.repetitions;
  if (o.warmup) json["warmup"] = *o.warmup;
  if (o.timeout) json["timeout"] = *o.timeout;
  if (o.seed) json["seed"] = *o.seed;
  if (o.shuffle) json["shuffle"] = *o.shuffle;
  if (o.profile) json["profile"] = *o.profile;
  return json;
}

Overrides overrides_from_json(const nlohmann::json& json) {
  Overrides o;
  o.set = json.at("set").get<std::vector<std::string>>();
  o.only = json.at("only").get<std::vector<std::string>>();
  o.filter = json.at("filter").get<std::string>();
  const auto read = [&](const char* key, auto& value) {
    if (json.contains(key)) value = json.at(key).get<std::decay_t<decltype(*value)>>();
  };
  read("repetitions", o.repetitions);
  read("warmup", o.warmup);
  read("timeout", o.timeout);
  read("seed", o.seed);
  read("shuffle", o.shuffle);
  read("profile", o.profile);
  return o;
}

void decide_availability(Spec& spec, const DeviceQuery& gpus, int device) {
  std::optional<DeviceLimits> limits;
  std::string why = gpus.problem;
  if (const auto index = static_cast<std::size_t>(device); index < gpus.devices.size())
    limits = gpus.devices[index];
  else if (!gpus.devices.empty())
    why = fmt::format("no CUDA device {}: this machine has {}", device, gpus.devices.size());
  const auto generator = data::make_generator(spec.data);
  decide_availability(spec.points, spec.stop, limits, why, generator.get());
  for (Point& point : spec.points) {
    if (!point.available) continue;
    try {
      data::check_fits_memory(point.n, point.dim);
    } catch (const data::DataError& error) {
      point.available = false;
      point.reason = error.what();
    }
  }
}

int run_sweep(const Spec& spec, const Overrides& overrides, const DeviceQuery& gpus,
              const RunOptions& options) {
  RunDirectory directory = start(spec, overrides, options);
  const std::vector<Task> tasks = remaining(spec, directory, options.retry_failed);
  nlohmann::ordered_json environment = describe_environment(gpus);
  const auto device = static_cast<std::size_t>(options.device);
  KnownCeilings gpu_ceilings, cpu_ceilings = find_cpu_ceilings();
  if (device < gpus.devices.size()) gpu_ceilings = find_gpu_ceilings(gpus.devices[device]);
  environment["ceilings"] = {{"gpu", gpu_ceilings.source}, {"cpu", cpu_ceilings.source}};
  directory.write("environment.json", environment.dump(1) + '\n');
  if (!options.quiet && !options.json)
    std::cerr << fmt::format(
        "{}: {} points{} into {}\n", spec.name, tasks.size(),
        tasks.size() == spec.points.size() ? "" : fmt::format(" of {}", spec.points.size()),
        directory.path().string());

  install_interrupt_handlers();
  Supervisor supervisor(spec, gpus, options, std::move(directory), std::move(gpu_ceilings),
                        std::move(cpu_ceilings));
  const bool finished = supervisor.run(tasks);
  std::vector<std::string> traces;
  if (finished && options.nsys) traces.push_back(supervisor.trace(TraceTool::nsys, "nsys"));
  if (finished && options.ncu) traces.push_back(supervisor.trace(TraceTool::ncu, "ncu"));

  RunDirectory& written = supervisor.directory();
  const std::vector<Row> measurements = written.read_rows("measurements.jsonl");
  const std::vector<SummaryLine> lines = summarize(spec, measurements);
  written.write("summary.md", summary_markdown(spec, lines, environment));
  if (const std::vector<Row> events = written.read_rows("timeline.jsonl"); !events.empty())
    written.write("timeline.json", timeline_file(events));
  written.write("benchmark.json", benchmark_json(measurements, environment).dump() + '\n');

  std::map<std::string, int> counts;
  for (const SummaryLine& line : lines) ++counts[line.status];
  const bool failed =
      counts.contains("failed") || counts.contains("timeout") || counts.contains("incorrect");
  const int status = !finished ? 130 : failed ? 1 : 0;
  const std::string where = written.path().string();
  if (options.json) {
    nlohmann::ordered_json json;
    json["results"] = where;
    json["exit_status"] = status;
    json["points"] = lines.size();
    json["status"] = counts;
    if (!traces.empty()) json["traces"] = traces;
    std::cout << json.dump(1) << '\n';
  } else {
    if (!options.quiet) {
      std::cout << '\n' << summary_table(lines) << '\n';
      std::string tally;
      for (const auto& [name, count] : counts)
        tally += fmt::format("{}{} {}", tally.empty() ? "" : ", ", count, name);
      std::cout << tally << '\n';
    }
    for (const std::string& line : traces) std::cerr << line << '\n';
    if (!finished)
      std::cerr << fmt::format("interrupted; go on with: run_experiment --resume {}\n", where);
    std::cout << "results: " << where << '\n';
  }
  return status;
}

}  // namespace lloyd
