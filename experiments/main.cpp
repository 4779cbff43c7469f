// run_experiment: the command line.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <iostream>

#include "build_info.h"
#include "experiments/ceilings.h"
#include "experiments/external.h"
#include "experiments/job.h"
#include "experiments/launch.h"
#include "experiments/list_metrics.h"
#include "experiments/run_directory.h"
#include "experiments/spec.h"
#include "experiments/supervisor.h"
#include "experiments/trace.h"
#include "kernels/device.h"
#include "profiling/doctor.h"

namespace lloyd {
namespace {

constexpr int kUsage = 2;

void print_dry_run(const Spec& spec, bool json) {
  if (json) {
    nlohmann::json points = nlohmann::json::array();
    for (const Point& point : spec.points) points.push_back(to_json(point));
    std::cout << points.dump(1) << '\n';
    return;
  }
  std::size_t width = 5, runnable = 0;
  for (const Point& point : spec.points) {
    width = std::max(width, point.id.size());
    runnable += point.available;
  }
  std::cout << fmt::format("{:<{}}  runnable here\n", "point", width);
  for (const Point& point : spec.points)
    std::cout << fmt::format("{:<{}}  {}\n", point.id, width,
                             point.available ? "yes" : "no: " + point.reason);
  std::cout << fmt::format("\n{} points, {} runnable here\n", spec.points.size(), runnable);
}

void list_versions(const DeviceQuery& gpus, int device, bool json) {
  using Json = nlohmann::ordered_json;
  const auto or_null = [](const std::string& text) {
    return text.empty() ? Json(nullptr) : Json(text);
  };
  Json list = Json::array();
  for (const RegisteredVersion& version : versions()) {
    const VersionInfo& info = version.info;
    std::string reason = unavailable_here(version);
    if (reason.empty() && info.backend == Backend::cuda &&
        static_cast<std::size_t>(device) >= gpus.devices.size())
      reason = gpus.devices.empty() ? gpus.problem
                                    : fmt::format("no CUDA device {}: this machine has {}", device,
                                                  gpus.devices.size());
    list.push_back({{"name", info.name},
                    {"family", info.family},
                    {"backend", to_string(info.backend)},
                    {"parent", or_null(info.parent)},
                    {"axes", info.axes},
                    {"reproducible", info.reproducible},
                    {"study", or_null(info.study)},
                    {"summary", info.summary},
                    {"available", reason.empty()},
                    {"reason", or_null(reason)}});
  }
  if (json) {
    std::cout << list.dump(1) << '\n';
    return;
  }
  for (const auto& v : list)
    std::cout << fmt::format(
        "{:<28} {}{}{}\n", v.at("name").get<std::string>(), v.at("summary").get<std::string>(),
        v.at("reproducible").get<bool>() ? " [reproducible]" : "",
        v.at("available").get<bool>()
            ? ""
            : "\n" + std::string(29, ' ') + "not here: " + v.at("reason").get<std::string>());
}

void print_doctor(const DeviceQuery& gpus, int device, bool json) {
  using Json = nlohmann::ordered_json;
  using profiling::Health;
  const std::vector<profiling::Check> checks = profiling::examine(gpus, device, home_directory());
  const auto word = [](Health health) {
    return health == Health::ok ? "ok" : health == Health::warn ? "warn" : "missing";
  };
  if (json) {
    Json list = Json::array();
    for (const profiling::Check& check : checks)
      list.push_back({{"check", check.name},
                      {"status", word(check.health)},
                      {"detail", check.detail},
                      {"remedy", check.remedy.empty() ? Json(nullptr) : Json(check.remedy)}});
    std::cout << list.dump(1) << '\n';
    return;
  }
  const bool colours = isatty(STDOUT_FILENO) && std::getenv("NO_COLOR") == nullptr;
  for (const profiling::Check& check : checks) {
    const char* colour = check.health == Health::ok     ? "\033[32m"
                         : check.health == Health::warn ? "\033[33m"
                                                        : "\033[31m";
    std::cout << fmt::format("{}{:<8}{} {:<12} {}\n", colours ? colour : "", word(check.health),
                             colours ? "\033[0m" : "", check.name, check.detail);
    if (!check.remedy.empty()) std::cout << std::string(22, ' ') << "-> " << check.remedy << '\n';
  }
}

int run(int argc, char** argv) {
  CLI::App app{"lloydbench: sweeps over many versions of Lloyd's k-means, verified and measured"};
  app.name("run_experiment");
  app.set_version_flag("--version", std::string(build_info::version));
  std::string spec_name;
  Overrides overrides;
  RunOptions options;
  MetricQuery metrics;
  bool dry_run = false, list = false, list_counters = false, ceilings = false, doctor = false,
       worker = false, shuffle = true;
  std::string out, resume, traced;
  app.add_option("SPEC", spec_name, "spec: a YAML file, looked up here and then in experiments/");
  app.add_flag("--dry-run", dry_run, "print the points and whether they can run here; run nothing");
  app.add_flag("--list-versions", list, "print every version");
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
  app.add_option("--match", metrics.match, "with --list-metrics: regular expression")
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
  app.add_option("--filter", overrides.filter, "regular expression: points to keep");
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
  app.add_flag("--worker", worker)->group("");
  app.add_option("--traced", traced)->group("");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    std::cerr << "run_experiment: " << error.what() << "; see run_experiment --help\n";
    return kUsage;
  }
  if (worker) return run_worker();
  if (!traced.empty()) return run_traced(traced);
  if (app.count("--shuffle") > 0) overrides.shuffle = shuffle;
  options.out = out;
  options.resume = resume;
  const auto usage = [](const std::string& message) {
    std::cerr << "run_experiment: " << message << '\n';
    return kUsage;
  };
  if (!resume.empty() && !out.empty())
    return usage("--out starts a run and --resume goes on with one: give one of them");
  if (ceilings && !spec_name.empty())
    return usage("--ceilings measures the machine and takes no spec");
  if (options.retry_failed && resume.empty()) return usage("--retry-failed needs --resume DIR");

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
  if (spec_name.empty()) {
    std::ifstream in(options.resume / "plan.json");
    if (!in) return usage(fmt::format("{}: is not a run directory (it has no plan.json)", resume));
    const nlohmann::json plan = nlohmann::json::parse(in);
    overrides = overrides_from_json(plan.at("overrides"));
    path = plan.at("spec").get<std::string>();
    if (!std::filesystem::exists(path)) path = options.resume / "spec.yaml";
  } else {
    path = find_spec(spec_name);
  }
  Spec spec = load_spec(path, overrides, spec_name, options.device);
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
  return run_sweep(spec, overrides, gpus, options);
}

}  // namespace
}  // namespace lloyd

int main(int argc, char** argv) {
  try {
    return lloyd::run(argc, argv);
  } catch (const lloyd::SpecError& error) {
    for (const std::string& line : error.errors) std::cerr << line << '\n';
    return 2;
  } catch (const lloyd::RunDirectoryError& error) {
    std::cerr << "run_experiment: " << error.what() << '\n';
    return 2;
  } catch (const std::exception& error) {
    std::cerr << "run_experiment: " << error.what() << '\n';
    return 1;
  }
}
