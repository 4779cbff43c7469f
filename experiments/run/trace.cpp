#include "experiments/run/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <regex>
#include <vector>

#include "experiments/measure/external_process.h"
#include "experiments/process/child_process.h"
#include "experiments/process/clock.h"
#include "experiments/process/process_tree.h"
#include "experiments/process/program_files.h"
#include "experiments/process/work_directory.h"
#include "experiments/record/environment.h"
#include "experiments/run/worker_process.h"
#include "experiments/text/text.h"
#include "profiling/program.h"

namespace lloyd {
namespace fs = std::filesystem;
namespace {

struct ToolInfo {
  const char *program, *name, *package, *report;
};

const ToolInfo& info_of(TraceTool tool) {
  static const std::array<ToolInfo, 2> all{
      {{"nsys", "Nsight Systems", "nsight-systems", "trace.nsys-rep"},
       {"ncu", "Nsight Compute", "nsight-compute", "report.ncu-rep"}}};
  return all[tool == TraceTool::nsys ? 0 : 1];
}

// The oldest releases of both tools that this was tried with. Older ones lack options that are used
// here.
constexpr int kOldestYear = 2022;
// Nsight Compute runs each kernel dozens of times, so it gets as few iterations as the counters do.
constexpr int kReplayedIterations = 3;

std::vector<std::string> command_of(TraceTool tool, const fs::path& directory) {
  if (tool == TraceTool::nsys)
    return {"nsys", "profile", "--trace=cuda,nvtx,osrt", "--sample=none", "--cpuctxsw=none",
            // This matches only registered strings, such as ours (profiling/nvtx.h).
            "--capture-range=nvtx", "--nvtx-capture=capture@lloydbench", "--capture-range-end=stop",
            "--output=" + (directory / "trace").string()};
  // Leaves the clocks as they are. The program changes them only if asked to.
  return {"ncu",
          "--clock-control=none",
          "--target-processes=all",
          "--nvtx",
          "--nvtx-include=lloydbench@capture/",
          "--export=" + (directory / "report").string()};
}

// Debian's nsys does not find its own importer, so it leaves the raw recording.
bool import_recording(const fs::path& recording, double timeout_seconds) {
  std::vector<fs::path> importers;
  std::error_code absent;
  const fs::path nsys = fs::canonical(profiling::find_program("nsys"), absent);
  if (!absent)
    for (const char* place : {"../host-linux-x64", "../../../nsight-systems/host-linux-x64"})
      importers.push_back(nsys.parent_path() / place / "QdstrmImporter");
  importers.push_back("/usr/lib/nsight-systems/host-linux-x64/QdstrmImporter");
  for (const fs::path& importer : importers)
    if (std::error_code ignored; fs::exists(importer, ignored))
      return profiling::output_of({importer.string(), "-i", recording.string()}, timeout_seconds)
          .has_value();
  return false;
}

}  // namespace

std::string trace_tool_version(TraceTool tool) {
  const ToolInfo& info = info_of(tool);
  const auto text = profiling::output_of({info.program, "--version"});
  if (!text)
    throw NoTraceTool(
        fmt::format("--{0}: {1} ({0}) is not on PATH or does not start; install it from "
                    "developer.nvidia.com/{2}, or run without --{0}",
                    info.program, info.name, info.package));
  std::smatch match;
  if (!std::regex_search(*text, match, std::regex(R"((20\d\d)(\.\d+)+)")))
    throw NoTraceTool(fmt::format("--{0}: {0} --version prints no version", info.program));
  if (std::stoi(match[1]) < kOldestYear)
    throw NoTraceTool(fmt::format("--{0}: {1} {2} is too old: it must be {3} or newer",
                                  info.program, info.name, match[0].str(), kOldestYear));
  return match[0];
}

TraceResult trace_points(TraceTool tool, Job job, const fs::path& directory, int log,
                         double timeout_seconds) {
  const ToolInfo& info = info_of(tool);
  const fs::path report = directory / info.report, recording = directory / "trace.qdstrm";
  if (fs::exists(report))
    return {report, "exists already and is not overwritten; remove it to get a new one"};
  job.profile.nvtx = true;
  if (tool == TraceTool::ncu)
    job.stop.iterations = std::min(job.stop.iterations, kReplayedIterations);
  const WorkDirectory work(fs::temp_directory_path());
  const fs::path job_file = work.path() / "job.json";
  std::ofstream(job_file) << json_text(to_json(job));

  std::vector<std::string> command = command_of(tool, directory);
  for (const std::string& word : {program_path(), std::string("--traced"), job_file.string()})
    command.push_back(word);
  const StraysEnd strays;
  ChildProcess process(std::move(command), own_variables(), log, ChildProcess::Output::to_error);
  process.end_input();
  const double deadline = now_ms() + timeout_seconds * 1e3;
  std::optional<int> status;
  while (!status) {
    if (interrupted()) return {"", "interrupted"};
    if (now_ms() >= deadline) return {"", fmt::format("not done within {} s", timeout_seconds)};
    status = process.wait(now_ms() + 200);
  }

  if (tool == TraceTool::nsys && !fs::exists(report) && fs::exists(recording)) {
    if (import_recording(recording, timeout_seconds) && fs::exists(report))
      fs::remove(recording);
    else
      return {recording,
              "nsys did not convert its recording into a report; QdstrmImporter or nsys-ui can"};
  }
  if (fs::exists(report)) return {report, ""};
  return {"", fmt::format("{} wrote no report: it {}; its output is in log.txt", info.program,
                          how_it_ended(status))};
}

}  // namespace lloyd
