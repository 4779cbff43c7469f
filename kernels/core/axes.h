// The table of axes (kernels/core/axes.inc) at run time.
#pragma once

#include <array>
#include <climits>
#include <cstdint>

#include "kernels/core/version.h"

namespace lloyd {

inline constexpr std::int64_t kNoDefault = -1;
inline constexpr auto kDefaultPrecision = static_cast<std::int64_t>(Precision::fp32);
inline constexpr std::int64_t kLastPrecision = std::ssize(kPrecisions) - 1;

struct AxisInfo {
  const char* name;
  std::int64_t default_value;    // or kCores or kNoDefault
  std::int64_t lowest, highest;  // of axis `precision`: enumerators
  const char* text;
  int Tunables::*tunable;  // null for an axis of the problem, which every version reads
};

/// Every axis, in the order of point ids and rows.
inline constexpr auto kAxes = std::to_array<AxisInfo>({
#define LLOYD_PROBLEM_AXIS(name, default_value, lowest, highest, text) \
  {#name, default_value, lowest, highest, text, nullptr},
#define LLOYD_TUNABLE(name, default_value, lowest, highest, text) \
  {#name, default_value, lowest, highest, text, &Tunables::name},
#include "kernels/core/axes.inc"
});

}  // namespace lloyd
