#include "experiments/run/supervisor.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "experiments/measure/floor.h"
#include "experiments/record/answers.h"
#include "experiments/record/environment.h"
#include "experiments/record/missing.h"
#include "experiments/record/run_files.h"
#include "experiments/run/launch.h"
#include "experiments/spec/shard.h"
#include "experiments/text/text.h"
#include "kernels/core/cores.h"
#include "kernels/core/status.h"

namespace lloyd {
namespace fs = std::filesystem;
namespace {

/// What the rows call this machine. Empty outside of a cluster.
std::string node_of(const Spec& spec) {
  const std::string name = node_name();
  return name.empty() && spec.shard ? host_name() : name;
}

/// "launch 2 of 3, restart 1 of 10". Empty if there is only one turn.
std::string name_of(const Turn& turn, const Spec& spec) {
  std::string text;
  if (spec.measure.launches > 1)
    text = fmt::format("launch {} of {}", turn.launch + 1, spec.measure.launches);
  if (spec.restarts > 1)
    text += fmt::format("{}restart {} of {}", text.empty() ? "" : ", ", turn.restart + 1,
                        spec.restarts);
  return text;
}

}  // namespace

Supervisor::Supervisor(const Spec& spec, const EnergyPlan& energy,
                       std::optional<DeviceLimits> device, std::vector<std::string> team,
                       const std::vector<std::string>& save, RunDirectory directory,
                       KnownCeilings gpu_ceilings, KnownCeilings cpu_ceilings)
    : spec_(spec),
      energy_(energy),
      device_(std::move(device)),
      team_(std::move(team)),
      save_(save),
      directory_(std::move(directory)),
      log_(directory_.path() / run_files::kLog),
      runner_(log_, spec.measure.timeout),
      gpu_ceilings_(std::move(gpu_ceilings)),
      cpu_ceilings_(std::move(cpu_ceilings)),
      node_(node_of(spec)),
      shard_(spec.shard ? to_string(*spec.shard) : "") {}

bool Supervisor::run(const std::vector<Task>& all, Progress& progress) {
  std::vector<Task> tasks = record_unsupported(all, progress);
  int round = 0;
  for (int launch = 0; launch < spec_.measure.launches; ++launch)
    for (int restart = 0; restart < spec_.restarts; ++restart, ++round) {
      const Turn turn{launch, restart};
      const auto to_take = [&](const Task& task) { return task.turns.contains(turn); };
      for (const std::vector<Task*>& group : ordered(spec_, tasks, to_take, round))
        if (!time(group, turn, progress)) return false;
    }
  const auto to_profile = [](const Task& task) { return task.timed() && !task.profiling.empty(); };
  for (const std::vector<Task*>& group : ordered(spec_, tasks, to_profile, round))
    for (const Pass pass : later_passes(spec_, energy_, *group[0]->point))
      if (!profile(group, pass, progress)) return false;
  return true;
}

std::string Supervisor::trace(TraceTool tool, const std::string& name) {
  const auto states = directory_.states();
  std::vector<const Point*> points;
  for (const Point& point : spec_.points)
    if (const auto found = states.find(point.id); point.available && !needs_ranks(point) &&
                                                  found != states.end() &&
                                                  found->second.status == status::ok)
      points.push_back(&point);  // a tool watches one process, so points with ranks are left out
  if (points.empty()) return fmt::format("{}: no point was ok, so there is nothing to trace", name);
  // As long as timing all points may take, and long enough for a tool to write its report.
  const double timeout =
      std::max(600.0, spec_.measure.timeout * static_cast<double>(points.size()));
  const TraceResult result =
      trace_points(tool, job(Pass::timing, points), directory_.path(), log_.descriptor(), timeout);
  return fmt::format("{}: {}{}{}", name, result.report.string(),
                     result.report.empty() || result.remark.empty() ? "" : ": ", result.remark);
}

std::vector<Task> Supervisor::record_unsupported(const std::vector<Task>& tasks,
                                                 Progress& progress) {
  std::vector<Task> runnable;
  std::vector<Row> rows;
  std::vector<Missing> missing;
  const Job no_job = job(Pass::timing, {});
  for (const Task& task : tasks) {
    if (task.timed() || task.point->available) {
      runnable.push_back(task);
      continue;
    }
    rows.push_back(unmeasured_row(*task.point, row_source(no_job, *task.point), device_,
                                  status::unsupported, task.point->reason));
    missing.push_back(
        {status::unsupported, task.point->version, progress.name(*task.point), task.point->reason});
  }
  directory_.append(run_files::kMeasurements, rows);
  for (const MissingGroup& group : grouped(missing))
    progress.skip(group.what, group.status, for_terminal(group.reason), group.count);
  return runnable;
}

Job Supervisor::job(Pass pass, const std::vector<const Point*>& points) const {
  Job job{spec_.data,
          spec_.init,
          spec_.stop,
          spec_.restarts,
          spec_.measure,
          spec_.profile,
          pass,
          spec_.name,
          device_,
          team_,
          {},
          save_,
          save_.empty() ? "" : fs::absolute(answers_folder(directory_.path())),
          available_cores(),
          "",
          node_,
          shard_,
          points.empty() ? "" : energy_.why_not(*points[0]),
          getpid()};
  for (const Point* point : points) job.points.push_back(*point);
  return job;
}

bool Supervisor::time(const std::vector<Task*>& group, const Turn& turn, Progress& progress) {
  std::vector<const Point*> points;
  for (const Task* task : group) points.push_back(task->point);
  Asking asking;
  asking.request = [&](std::size_t i) {
    progress.begin(*points[i]);
    Request request{i, {}, turn, {}, group[i]->best_inertia};
    for (const TakenSample& sample : group[i]->turns.at(turn))
      request.taken.push_back(sample.solve_ms);
    return request;
  };
  asking.part = [&](std::size_t i, Reply& part) {
    // The phases are those of the first correct solve. They are written only once.
    if (!group[i]->has_rows) directory_.append(run_files::kPhases, part.phases);
    group[i]->has_rows = true;
    for (Row& row : part.measurements) {
      fill_floor(row, *points[i]);
      group[i]->turns.at(turn).push_back(taken_sample(row));
    }
    directory_.append(run_files::kMeasurements, part.measurements);
  };
  asking.end = [&](std::size_t i, const Reply& reply, double seconds) {
    Task& task = *group[i];
    const std::string which = name_of(turn, spec_);
    const std::vector<TakenSample>& samples = task.turns.at(turn);
    const Point point = spec_.restarts > 1 ? points[i]->restarted(turn.restart) : *points[i];
    const Row done =
        pass_row(point, Pass::timing, turn, reply.status, reply.reason, samples.size(), seconds);
    if (reply.status == status::ok) {
      directory_.append(run_files::kPasses, {done});
      progress.end(*points[i], which, status::ok, result_text(samples, spec_.measure.max_noise));
      task.finish(turn, samples);
      return;
    }
    // One wrong answer makes the point wrong. One row that says so replaces all its samples, also
    // those of other turns.
    if (task.has_rows) directory_.forget({points[i]->id});
    directory_.append(run_files::kMeasurements, reply.measurements);
    directory_.append(run_files::kPasses, {done});
    progress.end(*points[i], which, reply.status, for_terminal(reply.reason), task.turns.size());
    task.turns.clear();
    task.profiling.clear();
  };
  return runner_.run(job(Pass::timing, points), asking);
}

bool Supervisor::profile(const std::vector<Task*>& group, Pass pass, Progress& progress) {
  std::vector<const Point*> points;
  for (const Task* task : group)
    if (contains(task->profiling, pass)) points.push_back(task->point);
  std::map<std::pair<std::string, std::string>, int> results;
  Asking asking;
  asking.request = [](std::size_t i) { return Request{i, {}, {}, {}, {}}; };
  asking.end = [&](std::size_t i, const Reply& reply, double seconds) {
    directory_.append(run_files::kCounters, reply.counters);
    directory_.append(run_files::kTimeline, reply.events);
    directory_.append(run_files::kConvergence, reply.convergence);
    Row done =
        pass_row(*points[i], pass, std::nullopt, reply.status, reply.reason,
                 reply.counters.size() + reply.events.size() + reply.convergence.size(), seconds);
    if (reply.energy_j) done["energy_j"] = *reply.energy_j;
    directory_.append(run_files::kPasses, {done});  // written last: it marks the pass as complete
    ++results[{reply.status, reply.reason}];
  };
  const bool finished = runner_.run(job(pass, points), asking);
  for (const auto& [result, count] : results)
    progress.note(fmt::format("{}, {} of {} point{}: {}{}", group[0]->point->version,
                              to_string(pass), count, count == 1 ? "" : "s", result.first,
                              result.second.empty() ? "" : ": " + for_terminal(result.second)));
  return finished;
}

double Supervisor::capacity_of(const Point& point) const {
  const auto all = static_cast<double>(device_->memory_bytes);
  const std::int64_t limit = point.tunables().device_memory;
  return limit > 0 ? std::min(all, static_cast<double>(limit)) : all;
}

void Supervisor::fill_floor(Row& row, const Point& point) const {
  if (row.at("status") != status::ok) return;
  const KnownCeilings& known = row.at("backend") == "cuda" ? gpu_ceilings_ : cpu_ceilings_;
  Problem problem = point.problem(spec_.stop);
  problem.stop.iterations = row.at("iterations");
  const int devices = point.all_gpus();
  std::optional<FloorRates> rates = known.rates, sustained_rates = known.sustained;
  if (row.at("backend") == "cuda")
    for (std::optional<FloorRates>* of : {&rates, &sustained_rates})
      if (*of) (*of)->capacity = capacity_of(point);
  std::string why_not = known.why_not, why_not_sustained = known.why_not_sustained;
  std::optional<double> floor, whole, sustained;
  if (rates) floor = floor_ms(problem, *rates, devices, why_not);
  if (floor) whole = end_to_end_floor_ms(problem, *rates, devices, *floor, why_not);
  if (sustained_rates) sustained = floor_ms(problem, *sustained_rates, devices, why_not_sustained);
  const auto fill = [&](const char* field, std::optional<double> value, const std::string& reason) {
    if (value)
      row[field] = *value;
    else
      row["null_reasons"][field] = reason;
  };
  fill("floor_ms", floor, why_not);
  fill("floor_sustained_ms", sustained, why_not_sustained);
  fill("end_to_end_floor_ms", whole, why_not);
}

}  // namespace lloyd
