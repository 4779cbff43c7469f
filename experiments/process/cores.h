#pragma once

namespace lloyd {

/// The cores that this process may use, as OpenMP sees them (affinity and cgroup quota).
int available_cores();

}  // namespace lloyd
