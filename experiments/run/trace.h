// --nsys and --ncu: the points of a run once more, under Nvidia's own tools, with the report in the run directory.
#pragma once

#include <filesystem>
#include <stdexcept>
#include <string>

#include "experiments/run/job.h"

namespace lloyd {

enum class TraceTool { nsys, ncu };

/// The tool is missing or does not start: told before anything is run.
struct NoTraceTool : std::runtime_error {
  using std::runtime_error::runtime_error;
};
/// Throws NoTraceTool, with where to get it. Its version, as "2025.3.1".
std::string trace_tool_version(TraceTool tool);

struct TraceResult {
  std::filesystem::path report;  // empty when there is none
  std::string remark;            // why there is none, or what to do with it; may be empty
};
/// Runs `job`'s points under `tool`: data, contexts and a first solve of each point lie before the capture range. What the
/// tool prints goes to `log` (a descriptor). Waits for `timeout_seconds` at most, and ends early when interrupted().
TraceResult trace_points(TraceTool tool, Job job, const std::filesystem::path& directory, int log,
                         double timeout_seconds);

/// The traced process: `run_experiment --traced FILE`, a Job as JSON. The exit status.
int run_traced(const std::filesystem::path& job_file);

}  // namespace lloyd
