// What fast_cpu_auto knows.
#pragma once

#include <span>

#include "kernels/core/auto/choice.h"

namespace lloyd::fast_cpu {

/// table.inc: the versions of this ladder, measured on one machine with all its cores.
inline std::span<const Measured> measured() {
  static constexpr Measured kTable[] = {
#include "kernels/fast_cpu/auto/table.inc"
  };
  return kTable;
}

}  // namespace lloyd::fast_cpu
