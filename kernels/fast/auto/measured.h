// What fast_auto knows.
#pragma once

#include <span>

#include "kernels/core/auto/choice.h"

namespace lloyd::fast {

/// table.inc: the versions of this ladder, measured on one GPU.
inline std::span<const Measured> measured() {
  static constexpr Measured kTable[] = {
#include "kernels/fast/auto/table.inc"
  };
  return kTable;
}

}  // namespace lloyd::fast
