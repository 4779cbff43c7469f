// What fast_auto knows and how it decides: nearest measured problem first. No CUDA in here.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/version.h"

namespace lloyd::fast {

/// One measurement: what an iteration took.
struct Measured {
  Precision precision;
  std::int64_t n;
  int k, dim;
  const char* version;
  int threads_per_block;  // 0: the version does not read it
  double iteration_ms;
};

/// kernels/fast/auto_table.inc: up to three versions for each problem that was measured.
std::span<const Measured> measured();

/// `table` with what stands for `problem` best at the front: of the same precision before others, then by the distance
/// log²(n / n') + log²(k / k') + log²(dim / dim'), then by time. Each version is there once, where it comes first.
std::vector<Measured> ranked(std::span<const Measured> table, const Problem& problem);

/// Why a measured version cannot run the problem: what unsupported_reason says; "is not in this build".
std::optional<std::string> reason_against(const Measured& candidate, const Problem& problem,
                                          const Tunables& tunables, const DeviceLimits& device);

/// `tunables` with those that the measurement was made with.
Tunables as_measured(const Measured& candidate, Tunables tunables);

}  // namespace lloyd::fast
