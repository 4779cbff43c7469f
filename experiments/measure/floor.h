// The physical floor of a problem: what no version can go below on a machine with these ceilings.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "kernels/core/version.h"

namespace lloyd {

/// The ceilings that a floor is made of, of one GPU or of one machine's CPU. Bytes and FLOP per second.
struct FloorRates {
  std::optional<double> dram, cache;  // reading
  std::int64_t cache_bytes = 0;  // what is smaller stays in cache from one iteration to the next
  std::optional<double> fp64, fp32, tf32, fp16, bf16;  // the best unit's
};

/// Compulsory work of one iteration.
struct IterationWork {
  double bytes = 0;
  double flops = 0;
  double resident_bytes = 0;  // points and centroids
};

/// Bytes: every point is read once. Its coordinates take 2 B where the arithmetic is fp16 or bf16 and 4 B otherwise, since
/// the problem is given in float32. Centroids are read once and written once. Labels (int32) are written once a solve, since only
/// the last ones are handed back: 4·n / iterations. With min_changes > 0 they are compared in each iteration: read and written.
///
/// Operations: n·k distances. As ‖x‖² − 2·x·c + ‖c‖² they take dim multiplications and dim additions each, the norms being of lower
/// order: 2·n·k·dim. The direct form, a subtraction, a multiplication and an addition (3·n·k·dim), is never fewer: it
/// takes two instructions of the same unit where this takes one FMA. Comparisons, the n·dim additions of the update and divisions
/// are left out: a floor may be too low, never too high.
IterationWork iteration_work(const Problem& problem);

/// max(bytes / bandwidth, operations / rate) of one iteration in milliseconds, to be held against iteration_ms; on `devices` of
/// these each has its share. Bandwidth is the cache's when points and centroids fit it. nullopt when a ceiling that it
/// takes is missing; `why_not` then says which.
///
/// What can go below: versions that skip distances (bounds), and fp32 put together from products of narrower types.
std::optional<double> floor_ms(const Problem& problem, const FloorRates& rates, int devices,
                               std::string& why_not);

}  // namespace lloyd
