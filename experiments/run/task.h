// Decides what a run has to do: which turns and passes of which points, and in what order.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "experiments/measure/noise.h"
#include "experiments/measure/profile.h"
#include "experiments/record/run_directory.h"
#include "experiments/spec/spec.h"
#include "profiling/nvml.h"

namespace lloyd {

/// The work that is left for a point.
struct Task {
  const Point* point = nullptr;
  // What to time, with the samples that are already in the rows.
  std::map<Turn, std::vector<TakenSample>> turns;
  std::vector<Pass> profiling;         // passes to make after all turns
  bool has_rows = false;               // in any file
  std::optional<double> best_inertia;  // of the finished restarts whose answers may be saved
  bool timed() const { return turns.empty(); }
  /// Notes that a turn has all its samples.
  void finish(const Turn& turn, const std::vector<TakenSample>& samples);
};

/// Whether energy passes will be made, and why not.
struct EnergyPlan {
  std::string no_gpu, no_cpu;  // empty if they will
  const std::string& why_not(const Point& point) const {
    return find_version(point.version)->info.backend == Backend::cuda ? no_gpu : no_cpu;
  }
};
EnergyPlan plan_energy(const Spec& spec, std::shared_ptr<profiling::Nvml> nvml,
                       const std::string& gpu_uuid, const std::string& no_nvml);

/// The passes over a point after it is timed.
std::vector<Pass> later_passes(const Spec& spec, const EnergyPlan& energy, const Point& point);

/// The work that is left in a new or resumed run on `gpu` (its UUID; empty without one), with that
/// of points that cannot run here.
std::vector<Task> tasks_left(const Spec& spec, const EnergyPlan& energy,
                             const RunDirectory& directory, bool retry_failed,
                             const std::string& gpu);

/// Those of them that are for this machine. Deletes the rows that it will write again.
std::vector<Task> remaining_tasks(const Spec& spec, const EnergyPlan& energy,
                                  RunDirectory& directory, bool retry_failed,
                                  const std::string& gpu);

/// The tasks that are `wanted`, in groups that share a worker. The order is random and differs from
/// round to round, so that neither drift of the machine nor the contents of caches favour a point.
std::vector<std::vector<Task*>> ordered(const Spec& spec, std::vector<Task>& tasks,
                                        const std::function<bool(const Task&)>& wanted, int round);

}  // namespace lloyd
