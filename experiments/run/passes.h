// The passes over a point. Each answers one request with rows, or says why there are none.
#pragma once

#include <functional>

#include "experiments/run/job.h"
#include "experiments/run/workbench.h"

namespace lloyd {

/// Sends a reply that is not the last one, and returns once its rows are on disk.
using HandOver = std::function<void(const Reply&)>;

/// Verifies the point, then times it. Hands over each sample. Returns the last reply.
Reply timing_pass(Workbench& bench, const Request& request, const HandOver& hand_over);

/// Measures the energy of a solve.
Reply energy_pass(Workbench& bench, const Request& request);

/// Records the inertia after each iteration.
Reply convergence_pass(Workbench& bench, const Request& request);

/// Counters, timeline or a simulated cache, by the job's pass.
Reply profiling_pass(Workbench& bench, const Request& request);

}  // namespace lloyd
