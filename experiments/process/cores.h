#pragma once

namespace lloyd {

/// The cores that this process may use, as OpenMP sees them: those of its CPU affinity. A cgroup's
/// quota of CPU time does not count.
int available_cores();

}  // namespace lloyd
