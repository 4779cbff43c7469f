#include "experiments/run/sweep.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <set>
#include <utility>

#include "experiments/measure/known_ceilings.h"
#include "experiments/measure/noise.h"
#include "experiments/record/answers.h"
#include "experiments/record/environment.h"
#include "experiments/record/run_directory.h"
#include "experiments/record/summary.h"
#include "experiments/record/timeline_file.h"
#include "experiments/run/progress.h"
#include "experiments/run/start.h"
#include "experiments/run/supervisor.h"
#include "experiments/run/task.h"
#include "experiments/text/text.h"
#include "kernels/core/status.h"
#include "profiling/nvml.h"

namespace lloyd {
namespace {

/// Writes the files that summarize all rows. Returns the lines of the summary.
std::vector<SummaryLine> write_results(RunDirectory& directory, const Spec& spec,
                                       const nlohmann::ordered_json& environment) {
  directory.fill_energy();
  const std::vector<Row> measurements = directory.read_rows("measurements.jsonl");
  std::set<std::string> unfinished;
  for (const auto& [point, state] : directory.states())
    if (static_cast<int>(state.finished.size()) < spec.measure.launches &&
        state.status == status::ok)
      unfinished.insert(point);
  std::vector<SummaryLine> lines = summarize(spec, measurements, unfinished);
  directory.write("summary.md", summary_markdown(spec, lines, environment));
  if (const std::string timeline = timeline_file(directory); !timeline.empty())
    directory.write("timeline.json", timeline);
  directory.write("benchmark.json", json_text(benchmark_json(measurements, environment)) + '\n');
  return lines;
}

/// Prints the result of the run. Returns its exit status.
int print_results(const std::vector<SummaryLine>& lines, const std::string& where, bool finished,
                  const std::vector<std::string>& traces, const RunOptions& options) {
  std::map<std::string, int> counts;
  for (const SummaryLine& line : lines) ++counts[line.status];
  const bool failed = std::any_of(counts.begin(), counts.end(), [](const auto& count) {
    return status::is_failure(count.first);
  });
  const int status = !finished ? 130 : failed ? 1 : 0;
  if (options.json) {
    nlohmann::ordered_json json;
    json["results"] = where;
    json["exit_status"] = status;
    json["points"] = lines.size();
    json["status"] = counts;
    if (!traces.empty()) json["traces"] = traces;
    std::cout << json_text(json, 1) << '\n';
    return status;
  }
  if (!options.quiet) {
    const Terminal shown = terminal(STDOUT_FILENO);
    std::cout << '\n' << summary_table(lines, shown) << '\n';
    const char* separator = "";
    for (const auto& [name, count] : counts)
      std::cout << std::exchange(separator, ", ") << count << ' '
                << coloured(name, colour_of(name), shown);
    std::cout << '\n';
  }
  for (const std::string& line : traces) std::cerr << for_terminal(line) << '\n';
  if (!finished)
    std::cerr << fmt::format("interrupted; go on with: run_experiment --resume {}\n",
                             for_terminal(where));
  std::cout << "results: " << for_terminal(where) << '\n';
  return status;
}

}  // namespace

int run_sweep(const Spec& spec, const Overrides& overrides, const DeviceQuery& gpus,
              const RunOptions& options) {
  RunDirectory directory = options.resume.empty()
                               ? start_run(spec, overrides, options.save, options.out)
                               : resume_run(spec, options.resume);
  if (!options.save.empty()) open_answers(directory.path());
  std::optional<DeviceLimits> device;
  if (const auto index = static_cast<std::size_t>(options.device); index < gpus.devices.size())
    device = gpus.devices[index];
  const std::string gpu_uuid = device ? device->uuid : "";
  std::string no_nvml;
  const auto nvml = device ? profiling::Nvml::open(no_nvml) : nullptr;
  const EnergyPlan energy = plan_energy(spec, nvml, gpu_uuid, no_nvml);
  const std::vector<Task> tasks = remaining_tasks(spec, energy, directory, options.retry_failed);

  nlohmann::ordered_json environment = describe_environment(gpus);
  KnownCeilings gpu_ceilings, cpu_ceilings = find_cpu_ceilings();
  if (device) gpu_ceilings = find_gpu_ceilings(*device);
  const Load load = measure_load(nvml.get(), gpu_uuid);
  environment["load_before"] = to_json(load);
  environment["locked_sm_mhz"] =
      options.locked_mhz ? nlohmann::ordered_json(*options.locked_mhz) : nullptr;
  environment["ceilings"] = {{"gpu", gpu_ceilings.source}, {"cpu", cpu_ceilings.source}};
  directory.write("environment.json", json_text(environment, 1) + '\n');
  if (!options.quiet && !options.json) {
    std::cerr << fmt::format(
        "{}: {} points{} into {}\n", spec.name, tasks.size(),
        tasks.size() == spec.points.size() ? "" : fmt::format(" of {}", spec.points.size()),
        for_terminal(directory.path().string()));
    std::cerr << fmt::format("{}: load before the run: {}\n", spec.name, to_text(load));
  }

  install_interrupt_handlers();
  Supervisor supervisor(spec, energy, device, options.save, std::move(directory),
                        std::move(gpu_ceilings), std::move(cpu_ceilings));
  const bool finished = [&] {
    Progress progress(spec, tasks, options.quiet, options.progress);
    return supervisor.run(tasks, progress);
  }();
  std::vector<std::string> traces;
  if (finished && options.nsys) traces.push_back(supervisor.trace(TraceTool::nsys, "nsys"));
  if (finished && options.ncu) traces.push_back(supervisor.trace(TraceTool::ncu, "ncu"));

  RunDirectory& written = supervisor.directory();
  const std::vector<SummaryLine> lines = write_results(written, spec, environment);
  return print_results(lines, written.path().string(), finished, traces, options);
}

}  // namespace lloyd
