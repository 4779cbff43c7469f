// How a pass ends: every pass turns its exceptions into a status and a reason in the same way.
#pragma once

#include <functional>

#include "experiments/run/job.h"
#include "experiments/run/workbench.h"

namespace lloyd {

/// Runs the body of a pass. Sets the reply's status to ok, or to unsupported or failed with the
/// reason, and says whether the worker must restart. Throws nothing.
void run_pass(Workbench& bench, Reply& reply, const std::function<void()>& body);

}  // namespace lloyd
