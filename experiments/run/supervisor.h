// Takes the tasks of a run, point by point, and records what comes of them.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "experiments/measure/ceilings.h"
#include "experiments/record/run_directory.h"
#include "experiments/run/bounded_log.h"
#include "experiments/run/job_runner.h"
#include "experiments/run/progress.h"
#include "experiments/run/task.h"
#include "experiments/run/trace.h"

namespace lloyd {

/// Runs the tasks of a run and writes their rows, whatever the points do.
class Supervisor {
 public:
  /// `device`: of the GPU versions. `spec` and `energy` outlive the supervisor.
  Supervisor(const Spec& spec, const EnergyPlan& energy, std::optional<DeviceLimits> device,
             RunDirectory directory, KnownCeilings gpu_ceilings, KnownCeilings cpu_ceilings);

  RunDirectory& directory() { return directory_; }

  /// Takes first all launches, then all profiling passes. False when interrupted.
  bool run(const std::vector<Task>& tasks, Progress& progress);

  /// Runs the points that were ok once more under a tool. Returns a line that says what came of it.
  std::string trace(TraceTool tool, const std::string& name);

 private:
  /// Writes the rows of what cannot run here, with one line on the screen for each version and
  /// reason. Returns the rest.
  std::vector<Task> record_unsupported(const std::vector<Task>& tasks, Progress& progress);
  Job job(Pass pass, const std::vector<const Point*>& points) const;
  /// Takes one launch's samples of a group. False when interrupted.
  bool time(const std::vector<Task*>& group, int launch, Progress& progress);
  /// Takes a pass of the points that were timed. It costs no time and no exit status: what comes of
  /// it is in counters.jsonl, timeline.jsonl and passes.jsonl. False when interrupted.
  bool profile(const std::vector<Task*>& group, Pass pass, Progress& progress);
  void fill_floor(Row& row, const Point& point) const;

  const Spec& spec_;
  const EnergyPlan& energy_;
  std::optional<DeviceLimits> device_;
  RunDirectory directory_;
  BoundedLog log_;
  JobRunner runner_;
  KnownCeilings gpu_ceilings_, cpu_ceilings_;
  RowSource source_;
};

/// How many results tasks will print: one for each launch of a point, one for a point that cannot run.
std::size_t count_results(const std::vector<Task>& tasks);

}  // namespace lloyd
