// The clock that deadlines and host times are read from.
#pragma once

namespace lloyd {

/// Milliseconds of the steady clock since a fixed moment.
double now_ms();

}  // namespace lloyd
