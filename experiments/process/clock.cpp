#include "experiments/process/clock.h"

#include <chrono>

namespace lloyd {

double now_ms() {
  return std::chrono::duration<double, std::milli>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace lloyd
