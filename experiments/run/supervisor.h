// Runs the tasks of a run, point by point, and records the results.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "experiments/measure/known_ceilings.h"
#include "experiments/record/run_directory.h"
#include "experiments/run/bounded_log.h"
#include "experiments/run/job_runner.h"
#include "experiments/run/progress.h"
#include "experiments/run/task.h"
#include "experiments/run/trace.h"

namespace lloyd {

/// Runs the tasks and writes their rows. A point that fails costs only itself.
class Supervisor {
 public:
  /// `device` is for GPU versions; `team` has the UUIDs of the GPUs in device->team. `save` are the
  /// parts of the answers to keep. `spec` and `energy` must outlive the supervisor.
  Supervisor(const Spec& spec, const EnergyPlan& energy, std::optional<DeviceLimits> device,
             std::vector<std::string> team, const std::vector<std::string>& save,
             RunDirectory directory, KnownCeilings gpu_ceilings, KnownCeilings cpu_ceilings);

  RunDirectory& directory() { return directory_; }

  /// Runs all turns, then all profiling passes. Returns false if interrupted.
  bool run(const std::vector<Task>& tasks, Progress& progress);

  /// Runs the points that were ok once more under a tool. Returns a line about the result.
  std::string trace(TraceTool tool, const std::string& name);

 private:
  /// Writes rows for the points that cannot run here, and prints one line for each version and
  /// reason. Returns the other tasks.
  std::vector<Task> record_unsupported(const std::vector<Task>& tasks, Progress& progress);
  Job job(Pass pass, const std::vector<const Point*>& points) const;
  /// Takes the samples of one turn of a group. Returns false if interrupted.
  bool time(const std::vector<Task*>& group, const Turn& turn, Progress& progress);
  /// Makes a pass over the points that were timed. Its results are in counters.jsonl,
  /// timeline.jsonl and passes.jsonl. They change neither a time nor the exit status. Returns false
  /// if interrupted.
  bool profile(const std::vector<Task*>& group, Pass pass, Progress& progress);
  /// The bytes that a version may allocate on a device for this point.
  double capacity_of(const Point& point) const;
  void fill_floor(Row& row, const Point& point) const;

  const Spec& spec_;
  const EnergyPlan& energy_;
  std::optional<DeviceLimits> device_;
  std::vector<std::string> team_;
  std::vector<std::string> save_;
  RunDirectory directory_;
  BoundedLog log_;
  JobRunner runner_;
  KnownCeilings gpu_ceilings_, cpu_ceilings_;
  std::string node_, shard_;  // may be empty
};

}  // namespace lloyd
