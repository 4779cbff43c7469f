// run_experiment: from the command line to an exit status.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <iostream>
#include <memory>
#include <utility>

#include "build_info.h"
#include "experiments/command/complete.h"
#include "experiments/command/help.h"
#include "experiments/command/man_page.h"
#include "experiments/command/parse.h"
#include "experiments/measure/ceilings.h"
#include "experiments/measure/external.h"
#include "experiments/process/process_tree.h"
#include "experiments/process/program_files.h"
#include "experiments/process/work_directory.h"
#include "experiments/record/environment.h"
#include "experiments/record/run_directory.h"
#include "experiments/record/run_files.h"
#include "experiments/record/started_run.h"
#include "experiments/run/availability.h"
#include "experiments/run/clock_lock.h"
#include "experiments/run/job.h"
#include "experiments/run/list_metrics.h"
#include "experiments/run/lists.h"
#include "experiments/run/parts.h"
#include "experiments/run/ranked_worker.h"
#include "experiments/run/submit.h"
#include "experiments/run/sweep.h"
#include "experiments/run/trace.h"
#include "experiments/spec/schema.h"
#include "experiments/spec/shard.h"
#include "experiments/spec/spec.h"
#include "experiments/text/terminal.h"
#include "experiments/text/text.h"
#include "kernels/core/cores.h"
#include "kernels/core/device.h"

namespace lloyd {
namespace {

constexpr int kFailed = 1, kUsage = 2;

/// A file that the program opens must not become a standard stream that its parent has closed:
/// output would go there. /dev/null takes the place of such a stream, opened for the wrong
/// direction, so that reading or writing the stream still fails.
void occupy_closed_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(stream, F_GETFD) < 0) open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

/// The spec of a run or plan, new or resumed. Adds the overrides that the resumed run was started
/// with to those of the command line.
Spec load(CommandLine& line, const DeviceQuery& gpus) {
  std::filesystem::path path;
  FoundFiles files;
  std::optional<Shard> shard = line.shard;
  if (const std::filesystem::path& resume = line.options.resume; !resume.empty()) {
    StartedRun started = started_run(resume);
    line.overrides = resumed_overrides(started.overrides, line.overrides);
    std::vector<std::string>& save = line.options.save;
    if (!save.empty() && save != started.save)
      throw RunDirectoryError(fmt::format(
          "{}: cannot resume: it was started {}; leave --save out, or start a new run",
          resume.string(),
          started.save.empty() ? "without --save" : "with --save " + join(started.save, ",")));
    save = std::move(started.save);
    files = std::move(started.files);
    if (line.shard && started.shard != line.shard)
      throw RunDirectoryError(
          fmt::format("{}: cannot resume: it has {}, not part {}; start a new run", resume.string(),
                      started.shard ? "part " + to_string(*started.shard) : "a whole sweep",
                      to_string(*line.shard)));
    shard = started.shard;
    path = started.spec;
    if (!std::filesystem::exists(path)) path = resume / run_files::kSpec;
  }
  if (!line.spec.empty()) path = find_spec(line.spec, suggested_command(line.spec));
  Spec spec = load_spec(path, line.overrides, line.spec, line.options.device, files);
  if (shard) keep_shard(spec, *shard);
  decide_availability(spec, gpus, line.options.device);
  return spec;
}

/// Holds the clock of the GPUs that the run uses. Throws UsageError.
std::unique_ptr<ClockLock> lock_clock(const Spec& spec, const DeviceQuery& gpus, int device) {
  const DeviceLimits* first = gpus.find(device);
  if (first == nullptr)
    throw UsageError(fmt::format("--lock-clocks: there is no GPU to lock ({})",
                                 gpus.devices.empty() ? gpus.problem : "--device is too high"));
  const std::vector<std::string> team = team_uuids(gpus, *first);
  const std::string uuids = join(first_gpus(team, most_gpus(spec.points)), ",");
  try {
    return std::make_unique<ClockLock>(
        std::vector<std::string>{program_path(), "--keep-clocks", uuids});
  } catch (const ClocksNotLocked& error) {
    throw UsageError(
        fmt::format("--lock-clocks: the GPU's clock cannot be locked: {}", error.what()));
  }
}

/// A part is started where there is nothing to resume, so that a scheduler may give one command
/// whenever it runs a part.
void start_instead_of_resume(CommandLine& line) {
  std::filesystem::path& resume = line.options.resume;
  if (line.spec.empty() || !line.shard || resume.empty() ||
      std::filesystem::exists(resume / run_files::kPlan))
    return;
  line.options.out = std::exchange(resume, {});
  line.options.retry_failed = false;
}

/// An axis that no version reads is a slip more often than not, but a version that reads it may be
/// added later.
void note_unread_axes(const Spec& spec) {
  if (spec.unread_axes.empty()) return;
  std::cerr << fmt::format("note: none of the versions reads the {} {}\n",
                           spec.unread_axes.size() == 1 ? "axis" : "axes",
                           join(spec.unread_axes, ", "));
}

int run_spec(CommandLine& line, const DeviceQuery& gpus) {
  if (line.spec.empty() && line.options.resume.empty())
    throw UsageError("which spec? For example: run_experiment sweeps/quickstart.yaml");
  start_instead_of_resume(line);
  const Spec spec = load(line, gpus);
  if (line.action == Action::plan) {
    if (!line.options.quiet) note_unread_axes(spec);
    std::optional<std::vector<const Point*>> left;
    if (!line.options.resume.empty()) left = points_left(spec, line.overrides, gpus, line.options);
    print_dry_run(spec, left, line.options.json);
    return 0;
  }
  if (!line.submit.empty()) try {
      return submit_to_slurm(
          spec, {line.options.out, line.sbatch, line.given_options, line.options.json});
    } catch (const NotSubmitted& error) {
      throw UsageError(error.what());
    }
  try {
    if (line.options.nsys) trace_tool_version(TraceTool::nsys);
    if (line.options.ncu) trace_tool_version(TraceTool::ncu);
  } catch (const NoTraceTool& error) {
    throw UsageError(error.what());
  }
  std::unique_ptr<ClockLock> lock;
  if (line.lock_clocks) {
    lock = lock_clock(spec, gpus, line.options.device);
    line.options.locked_mhz = lock->mhz();
  }
  if (!line.options.quiet) note_unread_axes(spec);
  start_folder_keeper();
  return run_sweep(spec, line.overrides, gpus, line.options);
}

void discover_versions(bool quiet) {
  if (const std::vector<std::string> errors = registration_errors(); !errors.empty())
    throw SpecError(errors);  // a line for each
  try {
    discover_external_versions();
  } catch (const std::runtime_error& error) {
    throw UsageError(error.what());
  }
  if (quiet) return;
  for (const SetAside& file : files_set_aside())
    std::cerr << for_terminal(fmt::format("no version: {}: {}", file.file.string(), file.reason))
              << '\n';
}

int perform(CommandLine& line) {
  RunOptions& options = line.options;
  switch (line.action) {  // what needs no versions
    case Action::list_axes:
      list_axes(options.json);
      return 0;
    case Action::schema:
      std::cout << json_text(spec_schema(), 1) << '\n';
      return 0;
    case Action::status:
      print_parts(line.folders.at(0), options.json);
      return 0;
    case Action::list_metrics:
      line.metrics.device = options.device;
      line.metrics.json = options.json;
      return list_metrics(line.metrics);
    default:
      break;
  }
  discover_versions(options.quiet);
  if (line.action == Action::merge) return merge_parts(line.folders, options);
  const DeviceQuery gpus = query_devices();
  switch (line.action) {
    case Action::doctor:
      print_doctor(gpus, options.device, options.json);
      return 0;
    case Action::ceilings:
      return run_ceilings(gpus, {options.out, options.device, options.json, options.quiet});
    case Action::list_versions:
      list_versions(gpus, options.device, options.json);
      return 0;
    default:
      return run_spec(line, gpus);
  }
}

int run(int argc, char** argv) {
  // Words that are not finished, so nothing reads them but this.
  if (argc > 2 && argv[1] == std::string_view("--complete")) {
    std::cout << complete({argv + 3, argv + argc}).lines();
    return 0;
  }
  CommandLine line;
  try {
    line = parse_command_line({argv + 1, argv + argc});
  } catch (const UsageError& error) {
    const std::string what = error.what();
    throw UsageError(what.ends_with('?') ? what : what + "; see run_experiment --help");
  }
  if (line.help) {
    std::cout << help_text(line.topic, terminal(STDOUT_FILENO));
    return 0;
  }
  if (line.version) {
    std::cout << build_info::version << '\n';
    return 0;
  }
  if (line.man_page) {
    std::cout << man_page();
    return 0;
  }
  if (!line.completion.empty()) {
    std::cout << completion_script(line.completion);
    return 0;
  }
  if (!line.keep_clocks.empty()) return keep_clock(line.keep_clocks);
  if (line.ranked_worker) return run_ranked_worker();
  adopt_orphans();
  if (line.worker) {
    start_folder_keeper();  // before there are data
    return run_worker();
  }
  if (!line.traced.empty()) return run_traced(line.traced);
  return perform(line);
}

}  // namespace
}  // namespace lloyd

int main(int argc, char** argv) {
  const auto fail = [](const char* what, int status) {
    std::cerr << "run_experiment: " << lloyd::for_terminal(what) << '\n';
    return status;
  };
  lloyd::occupy_closed_streams();
  lloyd::keep_openmp_within_cores();
  try {
    const int status = lloyd::run(argc, argv);
    if (std::cout.flush()) return status;
    return fail("standard output cannot be written", status == 0 ? lloyd::kFailed : status);
  } catch (const lloyd::SpecError& error) {
    for (const std::string& each : error.errors) std::cerr << lloyd::for_terminal(each) << '\n';
    return lloyd::kUsage;
  } catch (const lloyd::UsageError& error) {
    return fail(error.what(), lloyd::kUsage);
  } catch (const lloyd::RunDirectoryError& error) {
    return fail(error.what(), lloyd::kUsage);
  } catch (const std::exception& error) {
    return fail(error.what(), lloyd::kFailed);
  }
}
