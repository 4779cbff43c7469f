#include "experiments/run/sweep.h"

#include <fmt/format.h>

#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "experiments/measure/known_ceilings.h"
#include "experiments/measure/noise.h"
#include "experiments/process/program_files.h"
#include "experiments/record/answers.h"
#include "experiments/record/environment.h"
#include "experiments/record/environment_file.h"
#include "experiments/record/run_directory.h"
#include "experiments/record/run_files.h"
#include "experiments/run/job.h"
#include "experiments/run/progress.h"
#include "experiments/run/results.h"
#include "experiments/run/start.h"
#include "experiments/run/supervisor.h"
#include "experiments/run/task.h"
#include "experiments/text/text.h"
#include "profiling/nvml.h"

namespace lloyd {
namespace {

/// The GPU of a run, if there is one, and what measures it.
struct Meters {
  std::optional<DeviceLimits> device;
  std::shared_ptr<profiling::Nvml> nvml;
  EnergyPlan energy;

  Meters(const Spec& spec, const DeviceQuery& gpus, int index) {
    if (const DeviceLimits* found = gpus.find(index)) device = *found;
    std::string no_nvml;
    if (device) nvml = profiling::Nvml::open(no_nvml);
    energy = plan_energy(spec, nvml, gpu(), no_nvml);
  }
  /// Its UUID; empty without one.
  std::string gpu() const { return device ? device->uuid : ""; }
};

/// What environment.json says of a run that may have begun before: today's machine and, in
/// `earlier`, those of its earlier starts. If nothing is left to do, what it says already.
nlohmann::ordered_json with_earlier_starts(const RunDirectory& directory,
                                           nlohmann::ordered_json today, bool all_done) {
  if (!std::filesystem::exists(directory.path() / run_files::kEnvironment)) return today;
  nlohmann::ordered_json last = read_environment(directory);
  if (all_done) return last;
  nlohmann::ordered_json earlier = nlohmann::ordered_json::array();
  if (const auto found = last.find("earlier"); found != last.end()) {
    if (found->is_array()) earlier = *found;
    last.erase(found);
  }
  earlier.push_back(std::move(last));
  today["earlier"] = std::move(earlier);
  return today;
}

}  // namespace

std::vector<const Point*> points_left(const Spec& spec, const Overrides& overrides,
                                      const DeviceQuery& gpus, const RunOptions& options) {
  const RunDirectory directory = RunDirectory::view(options.resume);
  refuse_other_spec(directory, spec, overrides);
  const Meters meters(spec, gpus, options.device);
  std::vector<const Point*> points;
  for (const Task& task :
       tasks_left(spec, meters.energy, directory, options.retry_failed, meters.gpu()))
    points.push_back(task.point);
  return points;
}

int run_sweep(const Spec& spec, const Overrides& overrides, const DeviceQuery& gpus,
              const RunOptions& options) {
  RunDirectory directory = options.resume.empty()
                               ? start_run(spec, overrides, options.save, options.out)
                               : resume_run(spec, overrides, options.resume);
  if (!options.save.empty()) open_answers(directory.path());
  const Meters meters(spec, gpus, options.device);
  const std::optional<DeviceLimits>& device = meters.device;
  const std::vector<std::string> team =
      device ? team_uuids(gpus, *device) : std::vector<std::string>{};
  const std::vector<Task> tasks =
      remaining_tasks(spec, meters.energy, directory, options.retry_failed, meters.gpu());

  nlohmann::ordered_json environment = describe_environment(gpus);
  KnownCeilings gpu_ceilings, cpu_ceilings = find_cpu_ceilings();
  if (device) gpu_ceilings = find_gpu_ceilings(*device);
  const Load load = measure_load(meters.nvml.get(), first_gpus(team, most_gpus(spec.points)));
  environment["load_before"] = to_json(load);
  environment["locked_sm_mhz"] = or_null(options.locked_mhz);
  environment["ceilings"] = {{"gpu", gpu_ceilings.source}, {"cpu", cpu_ceilings.source}};
  environment = with_earlier_starts(directory, std::move(environment), tasks.empty());
  directory.write(run_files::kEnvironment, json_text(environment, 1) + '\n');
  if (!options.quiet && !options.json) {
    std::cerr << fmt::format(
        "{}: {} into {}\n", spec.name,
        tasks.size() == spec.points.size()
            ? counted(tasks.size(), "point")
            : fmt::format("{} of {}", tasks.size(), counted(spec.points.size(), "point")),
        for_terminal(directory.path().string()));
    std::cerr << fmt::format("{}: load before the run: {}\n", spec.name, to_text(load));
  }

  install_interrupt_handlers();
  Supervisor supervisor(spec, meters.energy, device, team, options.save, std::move(directory),
                        std::move(gpu_ceilings), std::move(cpu_ceilings));
  const bool finished = [&] {
    Progress progress(spec, tasks, options.quiet, options.progress);
    return supervisor.run(tasks, progress);
  }();
  std::vector<std::string> traces;
  if (finished && options.nsys) traces.push_back(supervisor.trace(TraceTool::nsys, "nsys"));
  if (finished && options.ncu) traces.push_back(supervisor.trace(TraceTool::ncu, "ncu"));

  RunDirectory& written = supervisor.directory();
  const Results results = write_results(written, spec, environment);
  const std::string where = written.path().string();
  const std::string unfinished =
      finished ? ""
               : fmt::format("interrupted; go on with: {} --resume {}",
                             shell_word(program_as_typed()), shell_word(where));
  return print_results(results, where, unfinished, traces, options);
}

}  // namespace lloyd
