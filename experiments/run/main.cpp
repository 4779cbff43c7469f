// run_experiment: the command line.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <map>
#include <set>

#include "build_info.h"
#include "experiments/measure/ceilings.h"
#include "experiments/measure/external.h"
#include "experiments/process/process_tree.h"
#include "experiments/process/work_directory.h"
#include "experiments/record/environment.h"
#include "experiments/record/run_directory.h"
#include "experiments/record/started_run.h"
#include "experiments/run/clock_lock.h"
#include "experiments/run/job.h"
#include "experiments/run/list_metrics.h"
#include "experiments/run/lists.h"
#include "experiments/run/sweep.h"
#include "experiments/run/trace.h"
#include "experiments/spec/spec.h"
#include "experiments/text/text.h"
#include "kernels/core/device.h"

namespace lloyd {
namespace {

constexpr int kUsage = 2;

// What ends the program before a sweep starts, and the options that it heeds. --dry-run heeds all that choose points.
const std::map<std::string, std::set<std::string>> kActions = {
    {"--list-versions", {"--device", "--json"}},
    {"--list-axes", {"--json"}},
    {"--list-metrics", {"--chip", "--match", "--device", "--json"}},
    {"--doctor", {"--device", "--json"}},
    {"--ceilings", {"--device", "--json", "--out", "--quiet", "--no-progress"}},
    {"--dry-run", {}}};

/// Why these options do not go together; empty when they do.
std::string contradiction(const CLI::App& app, const std::string& spec_name) {
  std::vector<std::string> actions, options;
  for (const CLI::Option* option : app.get_options()) {
    if (option->count() == 0 || option->get_positional()) continue;
    const std::string name = option->get_name();
    (kActions.contains(name) ? actions : options).push_back(name);
  }
  if (actions.empty()) return "";
  if (actions.size() > 1)
    return fmt::format("{} and {} are two things to do: give one of them", actions[0], actions[1]);
  const std::string& action = actions[0];
  if (action == "--dry-run") return "";
  if (!spec_name.empty())
    return fmt::format("{} takes no spec, but {} is given", action, in_quotes(spec_name));
  for (const std::string& option : options)
    if (!kActions.at(action).contains(option))
      return fmt::format("{} has no use for {}: leave one of them out", action, option);
  return "";
}

/// The message for arguments that nothing takes.
std::string unexpected(const CLI::App& app, const CLI::ParseError& error) {
  const std::vector<std::string> extra = app.remaining();
  const auto option = std::find_if(extra.begin(), extra.end(),
                                   [](const std::string& word) { return word.starts_with("-"); });
  if (option == extra.end())
    return extra.empty() ? error.what()
                         : fmt::format("one spec at a time: what is {}?", in_quotes(extra[0]));
  std::vector<std::string> known;
  for (const CLI::Option* each : app.get_options()) {
    if (each->get_group().empty()) continue;
    for (const std::string& name : each->get_lnames()) known.push_back("--" + name);
  }
  const std::string word = option->substr(0, option->find('='));
  return fmt::format("unknown option {}{}", in_quotes(word), suggestion(word, known));
}

int run(int argc, char** argv) {
  CLI::App app{"lloydbench: sweeps over many versions of Lloyd's k-means, verified and measured"};
  app.name("run_experiment");
  app.set_version_flag("--version", std::string(build_info::version));
  std::string spec_name;
  Overrides overrides;
  RunOptions options;
  MetricQuery metrics;
  bool dry_run = false, list = false, axes = false, list_counters = false, ceilings = false,
       doctor = false, worker = false, shuffle = true, lock_clocks = false;
  std::string out, resume, traced, keep_clocks;
  app.add_option("SPEC", spec_name, "spec: a YAML file, looked up here and then in experiments/");
  app.add_flag("--dry-run", dry_run, "print the points and whether they can run here; run nothing");
  app.add_flag("--list-versions", list, "print every version");
  app.add_flag("--list-axes", axes, "print every axis with its default, range and meaning");
  app.add_flag("--ceilings", ceilings,
               "measure what this machine can do at most, which floor_ms is made of");
  app.add_flag("--doctor", doctor,
               "print what this machine can do, and the remedy for what it cannot");
  auto* list_option =
      app.add_flag("--list-metrics", list_counters,
                   "print the GPU counters that CUPTI knows for a chip; needs no GPU");
  app.add_option("--chip", metrics.chip,
                 "with --list-metrics: the chip, as GH100 (default: this GPU's)")
      ->needs(list_option);
  app.add_option("--match", metrics.match, "with --list-metrics: regular expression (RE2)")
      ->needs(list_option);
  app.add_flag("--json", options.json, "print JSON and nothing else on standard output");
  app.add_option(
      "--out", out,
      "run directory (default results/<spec name>/<UTC>-<hash>); with --ceilings, a file");
  app.add_option("--resume", resume, "go on with this run directory");
  app.add_flag("--retry-failed", options.retry_failed, "with --resume: redo failures too");
  app.add_option("--set", overrides.set, "axis=v1,v2: override an axis")->allow_extra_args(false);
  app.add_option("--only", overrides.only, "versions to keep: names or globs, comma list")
      ->delimiter(',')
      ->allow_extra_args(false);
  app.add_option("--filter", overrides.filter, "regular expression (RE2): points to keep");
  app.add_option("--repetitions", overrides.repetitions, "override measure.repetitions");
  app.add_option("--warmup", overrides.warmup, "override measure.warmup");
  app.add_option("--timeout", overrides.timeout, "override measure.timeout (seconds per point)");
  app.add_option("--device", options.device, "GPU to use, in CUDA's order")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--seed", overrides.seed,
                 "override the seeds of data, initial centroids and order");
  app.add_flag("--shuffle,!--no-shuffle", shuffle,
               "run the points in random order, or in the spec's");
  app.add_option("--profile", overrides.profile, "none|nvtx|counters|timeline|cpu|all, comma list");
  app.add_flag("--quiet", options.quiet, "errors and the result's place only");
  app.add_flag("!--no-progress", options.progress, "no live line");
  app.add_flag("--nsys", options.nsys,
               "then run the points once more under Nsight Systems, into trace.nsys-rep");
  app.add_flag("--ncu", options.ncu,
               "then run the points once more under Nsight Compute, into report.ncu-rep");
  app.add_flag("--lock-clocks", lock_clocks,
               "hold the GPU's clock at one that it can sustain, until the run has ended");
  app.add_flag("--worker", worker)->group("");
  app.add_option("--keep-clocks", keep_clocks)->group("");
  app.add_option("--traced", traced)->group("");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    const bool extra = dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr;
    const std::string what = for_terminal(extra ? unexpected(app, error) : error.what());
    std::cerr << fmt::format("run_experiment: {}{}\n", what,
                             what.ends_with('?') ? "" : "; see run_experiment --help");
    return kUsage;
  }
  if (!keep_clocks.empty()) return keep_clock(keep_clocks);
  adopt_orphans();
  if (worker) {
    start_folder_keeper();  // before there are data
    return run_worker();
  }
  if (!traced.empty()) return run_traced(traced);
  if (app.count("--shuffle") > 0) overrides.shuffle = shuffle;
  options.out = out;
  options.resume = resume;
  const auto usage = [](const std::string& message) {
    std::cerr << "run_experiment: " << for_terminal(message) << '\n';
    return kUsage;
  };
  std::vector<std::string> kept = overrides.set;  // in plan.json
  kept.insert(kept.end(), overrides.only.begin(), overrides.only.end());
  kept.push_back(overrides.filter);
  for (const std::string& text : kept)
    if (invalid_utf8(text) != std::string::npos)
      return usage(in_quotes(text) + " is not UTF-8: the command line is kept with the results");
  if (!resume.empty() && !out.empty())
    return usage("--out starts a run and --resume goes on with one: give one of them");
  if (const std::string why_not = contradiction(app, spec_name); !why_not.empty())
    return usage(why_not);
  if (options.retry_failed && resume.empty()) return usage("--retry-failed needs --resume DIR");

  if (axes) {
    list_axes(options.json);
    return 0;
  }
  if (list_counters) {
    metrics.device = options.device;
    metrics.json = options.json;
    return list_metrics(metrics);
  }

  try {
    discover_external_versions();
  } catch (const std::runtime_error& error) {
    return usage(error.what());
  }
  if (!options.quiet)
    for (const SetAside& file : files_set_aside())
      std::cerr << for_terminal(fmt::format("no version: {}: {}", file.file.string(), file.reason))
                << '\n';
  const DeviceQuery gpus = query_devices();
  if (doctor) {
    print_doctor(gpus, options.device, options.json);
    return 0;
  }
  if (ceilings) return run_ceilings(gpus, {out, options.device, options.json, options.quiet});
  if (list) {
    list_versions(gpus, options.device, options.json);
    return 0;
  }
  if (spec_name.empty() && resume.empty())
    return usage("which spec? For example: run_experiment sweeps/quickstart.yaml");

  std::filesystem::path path;
  FoundFiles files;
  if (!resume.empty()) {
    StartedRun started = started_run(options.resume);
    // The options that it was started with hold, unless others are given: then these have to make the same points.
    if (to_json(overrides) == to_json(Overrides{})) overrides = std::move(started.overrides);
    files = std::move(started.files);
    path = started.spec;
    if (!std::filesystem::exists(path)) path = options.resume / "spec.yaml";
  }
  if (!spec_name.empty()) path = find_spec(spec_name);
  Spec spec = load_spec(path, overrides, spec_name, options.device, files);
  decide_availability(spec, gpus, options.device);
  if (dry_run) {
    print_dry_run(spec, options.json);
    return 0;
  }
  try {
    if (options.nsys) trace_tool_version(TraceTool::nsys);
    if (options.ncu) trace_tool_version(TraceTool::ncu);
  } catch (const NoTraceTool& error) {
    return usage(error.what());
  }
  std::optional<ClockLock> lock;
  if (lock_clocks) {
    const auto device = static_cast<std::size_t>(options.device);
    if (device >= gpus.devices.size())
      return usage(fmt::format("--lock-clocks: there is no GPU to lock ({})",
                               gpus.devices.empty() ? gpus.problem : "--device is too high"));
    try {
      lock.emplace(
          std::vector<std::string>{program_path(), "--keep-clocks", gpus.devices[device].uuid});
    } catch (const ClocksNotLocked& error) {
      return usage(fmt::format("--lock-clocks: the GPU's clock cannot be held: {}", error.what()));
    }
    options.locked_mhz = lock->mhz();
  }
  start_folder_keeper();
  return run_sweep(spec, overrides, gpus, options);
}

}  // namespace
}  // namespace lloyd

int main(int argc, char** argv) {
  try {
    return lloyd::run(argc, argv);
  } catch (const lloyd::SpecError& error) {
    for (const std::string& line : error.errors) std::cerr << lloyd::for_terminal(line) << '\n';
    return 2;
  } catch (const lloyd::RunDirectoryError& error) {
    std::cerr << "run_experiment: " << lloyd::for_terminal(error.what()) << '\n';
    return 2;
  } catch (const std::exception& error) {
    std::cerr << "run_experiment: " << lloyd::for_terminal(error.what()) << '\n';
    return 1;
  }
}
