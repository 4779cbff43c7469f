// Profiling passes. Times and profiles never come from the same process: counters replay the solve and tracing slows it,
// so each pass has a worker of its own, after the timing of the version's points and for those alone that were timed.
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

enum class Pass { timing, counters, timeline, cpu, cachegrind, energy };
std::string_view to_string(Pass pass);
/// Throws std::invalid_argument for anything else than the names of to_string().
Pass parse_pass(std::string_view name);

/// What `profile` asks for that applies to this version: a timeline to all, the GPU's counters to CUDA versions, the CPU's
/// counters to the others.
std::vector<Pass> profiling_passes(const Profile& profile, const VersionInfo& version);

/// Iterations of the solve that a pass sees: all in a timeline of the GPU. Elsewhere they would cost minutes (counters
/// replay them, a CPU may take seconds for each) and tell the same: Lloyd iterations differ in their labels only.
int profiled_iterations(Pass pass, Backend backend, const Stop& stop);

/// The point that a pass runs: a simulation a hundred times slower than the processor gets fewer points.
Point profiled_point(Pass pass, const Point& point);

/// A new version for each prepare(), told of no observers but the profiler's and `others`.
std::unique_ptr<profiling::Subject> profiled_solve(const VersionFactory& make,
                                                   const Problem& problem, const Context& context,
                                                   Session& session);

/// Takes the profile. `device`: where the version runs; default-constructed for the CPU. Throws profiling::Unavailable, or whatever went wrong.
profiling::Profile take_profile(Pass pass, const Profile& wanted, profiling::Subject& subject,
                                const DeviceLimits& device);

/// A row of timeline.jsonl with point, version and the fields of `rest`.
Row event_row(const Point& point, const Row& rest);
/// A row of counters.jsonl with point, version, pass and the fields of `rest`.
Row counter_row(const Point& point, Pass pass, const Row& rest);
/// The rows of counters.jsonl for counters that were asked for and not had; none for a timeline.
std::vector<Row> missing_counters(const Point& point, Pass pass, const Profile& wanted,
                                  const std::string& status, const std::string& reason);
/// A row of passes.jsonl: how one pass of a point ended, with `launch` where it is a timing pass. Written last, it makes
/// the pass complete.
Row pass_row(const Point& point, Pass pass, std::optional<int> launch, const std::string& status,
             const std::string& reason, std::size_t rows, double seconds);

}  // namespace lloyd
