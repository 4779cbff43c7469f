// Profiling passes. Times and profiles never come from the same process, because counters replay
// the solve and tracing slows it. Each pass therefore has its own worker. It runs after the timing
// of the version's points, and only for points that were timed.
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "experiments/record/rows.h"
#include "experiments/spec/spec.h"
#include "profiling/subject.h"

namespace lloyd {

class Session;

enum class Pass { timing, counters, timeline, cpu, cachegrind, energy, convergence };
std::string_view to_string(Pass pass);
/// Throws std::invalid_argument unless `name` is a result of to_string().
Pass parse_pass(std::string_view name);

/// The requested passes that apply to this version: convergence and the timeline to all versions,
/// the GPU counters to CUDA versions, the CPU counters to all others.
std::vector<Pass> profiling_passes(const Profile& profile, const VersionInfo& version);

/// How many iterations of the solve a pass sees. A GPU timeline shows all of them. Elsewhere this
/// would take minutes (counters replay them, a CPU may take seconds for each) and add no
/// information, because Lloyd iterations differ only in their labels.
int profiled_iterations(Pass pass, Backend backend, const Stop& stop);

/// The point that a pass runs. A simulation is a hundred times slower than the processor, so it
/// gets fewer points.
Point profiled_point(Pass pass, const Point& point);

/// Each prepare() makes a new version. Its observers are those of `context` and the profiler's.
std::unique_ptr<profiling::Subject> profiled_solve(const VersionFactory& make,
                                                   const Problem& problem, const Context& context,
                                                   Session& session);

/// Takes the profile. `warm_seconds`: the load before the traced solve of a timeline. `device` is
/// where the version runs; default-constructed for the CPU. Throws profiling::Unavailable, or any
/// error of the solve.
profiling::Profile take_profile(Pass pass, const Profile& wanted, double warm_seconds,
                                profiling::Subject& subject, const DeviceLimits& device);

/// A row of timeline.jsonl with point, version and the fields of `rest`.
Row event_row(const Point& point, const Row& rest);
/// A row of counters.jsonl with point, version, pass and the fields of `rest`.
Row counter_row(const Point& point, Pass pass, const Row& rest);
/// The rows of counters.jsonl for requested counters that are missing. A timeline has none.
std::vector<Row> missing_counters(const Point& point, Pass pass, const Profile& wanted,
                                  const std::string& status, const std::string& reason);
/// A row of passes.jsonl, which says how one pass of a point ended. A timing pass also has a
/// turn. This row is written last and marks the pass as complete.
Row pass_row(const Point& point, Pass pass, const std::optional<Turn>& turn,
             const std::string& status, const std::string& reason, std::size_t rows,
             double seconds);

}  // namespace lloyd
