// The table of axes (kernels/core/axes.inc) at run time.
#pragma once

#include <array>
#include <climits>
#include <cstdint>

#include "kernels/core/version.h"

namespace lloyd {

inline constexpr std::int64_t kNoDefault = -1;
inline constexpr std::int64_t kDefaultOfKey = -2;
inline constexpr auto kDefaultPrecision = static_cast<std::int64_t>(Precision::fp32);
inline constexpr std::int64_t kLastPrecision = std::ssize(kPrecisions) - 1;

struct AxisInfo {
  const char* name;
  std::int64_t default_value;    // or kCores, kNoDefault or kDefaultOfKey
  std::int64_t lowest, highest;  // of an axis of words (experiments/spec/plan.h): unused
  const char* text;
  std::int64_t (*tunable)(const Tunables&);  // null for an axis that every version reads
  const char* key;   // of an input axis: the spec's key with the default; else null
  bool gpu = false;  // only versions that run on a GPU in this process use it
};

template <auto Member>
constexpr std::int64_t value_of(const Tunables& tunables) {
  return tunables.*Member;
}

/// Every axis, in the order of point ids and rows.
inline constexpr auto kAxes = std::to_array<AxisInfo>({
#define LLOYD_PROBLEM_AXIS(name, default_value, lowest, highest, text) \
  {#name, default_value, lowest, highest, text, nullptr, nullptr},
#define LLOYD_TUNABLE(name, default_value, lowest, highest, text) \
  {#name, default_value, lowest, highest, text, value_of<&Tunables::name>, nullptr},
#define LLOYD_SOURCE_AXIS(name, text) {#name, kNoDefault, 0, INT_MAX, text, nullptr, nullptr},
#define LLOYD_INPUT_AXIS(name, key, text) {#name, kDefaultOfKey, 0, INT64_MAX, text, nullptr, key},
#define LLOYD_GPU_AXIS(name, default_value, text) \
  {#name, default_value, 0, INT_MAX, text, nullptr, nullptr, true},
#include "kernels/core/axes.inc"
});

/// Whether the default is the number of this machine's cores.
constexpr bool defaults_to_cores(const AxisInfo& axis) {
  return axis.tunable != nullptr && axis.default_value == kCores;
}

}  // namespace lloyd
