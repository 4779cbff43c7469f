// --nsys and --ncu run the points once more under Nvidia's tools. The report goes into the run
// directory.
#pragma once

#include <filesystem>
#include <stdexcept>
#include <string>

#include "experiments/run/job.h"

namespace lloyd {

enum class TraceTool { nsys, ncu };

/// The tool is missing or does not start. Thrown before anything runs.
struct NoTraceTool : std::runtime_error {
  using std::runtime_error::runtime_error;
};
/// Returns the tool's version, such as "2025.3.1". Throws NoTraceTool, which says where to get it.
std::string trace_tool_version(TraceTool tool);

struct TraceResult {
  std::filesystem::path report;  // empty if there is none
  std::string remark;            // why there is none, or what to do with it; may be empty
};
/// Runs the points of `job` under `tool`. Loading data, creating contexts and a first solve of each
/// point come before the capture range. The output of the tool goes to `log` (a descriptor). Waits
/// at most `timeout_seconds`, and ends early if interrupted().
TraceResult trace_points(TraceTool tool, Job job, const std::filesystem::path& directory, int log,
                         double timeout_seconds);

/// Runs in the traced process, `run_experiment --traced FILE`. The file contains a Job as JSON.
/// Returns the exit status.
int run_traced(const std::filesystem::path& job_file);

}  // namespace lloyd
