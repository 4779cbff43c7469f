#include "experiments/run/task.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <set>

#include "experiments/measure/energy.h"
#include "experiments/record/environment.h"
#include "experiments/run/launch.h"
#include "kernels/core/status.h"

namespace lloyd {
namespace {

constexpr std::size_t kMostPointsOfAJob = 10'000;

// A job with every point of a large plan would take gigabytes on its way to the worker.
std::vector<std::vector<Task*>> in_pieces(const std::vector<std::vector<Task*>>& groups) {
  std::vector<std::vector<Task*>> pieces;
  for (const auto& group : groups)
    for (std::size_t at = 0; at < group.size(); at += kMostPointsOfAJob)
      pieces.emplace_back(group.begin() + static_cast<std::ptrdiff_t>(at),
                          group.begin() + static_cast<std::ptrdiff_t>(
                                              std::min(at + kMostPointsOfAJob, group.size())));
  return pieces;
}

}  // namespace

void Task::finish(const Turn& turn, const std::vector<TakenSample>& samples) {
  if (turn.launch == 0 && !samples.empty())
    if (const auto& last = samples.back().inertia; last && (!best_inertia || *last < *best_inertia))
      best_inertia = last;
  turns.erase(turn);
}

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
    gpu_energy(std::move(nvml), {gpu_uuid}, plan.no_gpu);
  else
    plan.no_gpu = no_nvml.empty() ? "no GPU" : no_nvml;
  cpu_energy(powercap_directory(), plan.no_cpu);
  return plan;
}

std::vector<Pass> later_passes(const Spec& spec, const EnergyPlan& energy, const Point& point) {
  std::vector<Pass> passes;
  if (energy.why_not(point).empty()) passes.push_back(Pass::energy);
  for (const Pass pass : profiling_passes(spec.profile, find_version(point.version)->info))
    passes.push_back(pass);
  return passes;
}

std::vector<Task> tasks_left(const Spec& spec, const EnergyPlan& energy,
                             const RunDirectory& directory, bool retry_failed,
                             const std::string& gpu) {
  const auto states = directory.states();
  const auto passes = directory.passes();
  const auto done = [&](const std::string& status) {
    return status == status::ok || (status::is_failure(status) && !retry_failed);
  };
  const std::string node = node_name(), here = node.empty() ? host_name() : node;
  std::vector<Task> tasks;
  for (const Point& point : spec.points) {
    const auto found = states.find(point.id);
    PointState state = found == states.end() ? PointState{} : found->second;
    if (!state.status.empty() && state.status != status::ok) {
      if (done(state.status)) continue;
      state = {};
    }
    // The samples of a point come from one machine and one GPU. What was begun elsewhere is taken
    // again.
    const bool whole = state.finished.size() >= spec.turns();
    const bool moved = state.place != here || (!state.gpu.empty() && state.gpu != gpu);
    if (!state.samples.empty() && !whole && point.available && moved) state = {};
    Task task{&point, {}, {}, !state.samples.empty(), {}};
    for (int launch = 0; launch < spec.measure.launches; ++launch)
      for (int restart = 0; restart < spec.restarts; ++restart) {
        const Turn turn{launch, restart};
        if (!task.has_rows || !state.finished.contains(turn))
          task.turns[turn] = state.samples[turn];
        else
          task.finish(turn, state.samples[turn]);
      }
    for (const Pass pass : later_passes(spec, energy, point)) {
      if (!point.available) break;  // it was timed on a machine where it can run
      const auto key = std::make_pair(point.id, std::string(to_string(pass)));
      if (const auto known = passes.find(key);
          task.timed() && known != passes.end() && done(known->second))
        continue;
      task.profiling.push_back(pass);
    }
    if (!task.timed() || !task.profiling.empty()) tasks.push_back(std::move(task));
  }
  return tasks;
}

std::vector<Task> remaining_tasks(const Spec& spec, const EnergyPlan& energy,
                                  RunDirectory& directory, bool retry_failed,
                                  const std::string& gpu) {
  std::vector<Task> tasks = tasks_left(spec, energy, directory, retry_failed, gpu);
  // It was started on a machine where it can run. Its samples stay, but there are too few.
  std::erase_if(tasks, [](const Task& task) {
    return !task.point->available && task.has_rows && !task.timed();
  });
  std::set<std::string> again;
  std::set<std::pair<std::string, std::string>> passes_again;
  for (const Task& task : tasks) {
    if (!task.has_rows) again.insert(task.point->id);
    if (!task.timed()) continue;
    for (const Pass pass : task.profiling) passes_again.emplace(task.point->id, to_string(pass));
  }
  directory.forget(again);
  directory.forget_passes(passes_again);
  return tasks;
}

std::vector<std::vector<Task*>> ordered(const Spec& spec, std::vector<Task>& tasks,
                                        const std::function<bool(const Task&)>& wanted, int round) {
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
  if (spec.shuffle) {
    std::seed_seq seed{static_cast<std::uint32_t>(spec.shuffle_seed),
                       static_cast<std::uint32_t>(spec.shuffle_seed >> 32),
                       static_cast<std::uint32_t>(round)};
    std::mt19937_64 random(seed);
    std::shuffle(groups.begin(), groups.end(), random);
    for (auto& group : groups) std::shuffle(group.begin(), group.end(), random);
  }
  return in_pieces(groups);
}

}  // namespace lloyd
