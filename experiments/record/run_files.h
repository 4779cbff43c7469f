// The names of the files in a run directory.
#pragma once

#include <array>

namespace lloyd::run_files {

inline constexpr const char* kMeasurements = "measurements.jsonl";
inline constexpr const char* kPhases = "phases.jsonl";
inline constexpr const char* kCounters = "counters.jsonl";
inline constexpr const char* kTimeline = "timeline.jsonl";
inline constexpr const char* kConvergence = "convergence.jsonl";
inline constexpr const char* kPasses = "passes.jsonl";
// The order in which a point's rows are removed. Passes come first, so that no pass is marked as
// finished when its rows are removed.
inline constexpr std::array<const char*, 6> kRowFiles{kPasses,      kCounters,     kTimeline,
                                                      kConvergence, kMeasurements, kPhases};
inline constexpr const char* kPlan = "plan.json";
inline constexpr const char* kSpec = "spec.yaml";  // the spec's text as it was read
inline constexpr const char* kResolvedSpec = "spec.resolved.json";
inline constexpr const char* kEnvironment = "environment.json";
inline constexpr const char* kLog = "log.txt";
inline constexpr const char* kSummary = "summary.md";
inline constexpr const char* kBenchmark = "benchmark.json";
inline constexpr const char* kTrace = "timeline.json";  // kTimeline for a viewer
inline constexpr const char* kAnswers = "answers";      // the folder of the saved answers
inline constexpr const char* kLock = ".lock";
// Creation writes these files before the plan, which it writes last.
inline constexpr std::array<const char*, 2> kBeforePlan{kSpec, kResolvedSpec};
// All other files that a run, or a tool for it, writes.
inline constexpr std::array<const char*, 9> kOthers{
    kLog,           kEnvironment,     kBenchmark,    kSummary, kTrace, "trace.nsys-rep",
    "trace.qdstrm", "report.ncu-rep", "trace.sqlite"};

}  // namespace lloyd::run_files
