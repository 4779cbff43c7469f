// The physical floor of a problem: no version can be faster on a machine with these ceilings.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "kernels/core/version.h"

namespace lloyd {

/// A level of memory. Data that fits into it stays there from one iteration to the next.
struct MemoryLevel {
  std::string name;
  double bytes = 0;                 // that fit into it, together with the levels above it
  std::optional<double> bandwidth;  // of reading
};

/// The ceilings of one GPU, or of one machine's CPU, that determine a floor. In bytes and FLOP per
/// second.
struct FloorRates {
  std::vector<MemoryLevel> levels;  // nearest first; what fits into none of them is in the last
#define LLOYD_PRECISION(name, bits) std::optional<double> name;  // of the fastest unit for each
#include "kernels/core/precisions.inc"
  // Of the link between host and device. Infinite for a CPU.
  std::optional<double> upload, download;
  // The bytes that a version may allocate on one device: its memory, or less (device_memory).
  double capacity = std::numeric_limits<double>::infinity();
};

/// The work that one iteration cannot avoid, of all problems of a batch.
struct IterationWork {
  double bytes = 0;
  double flops = 0;
  double resident_bytes = 0;  // points and centroids
  double point_bytes = 0;
};

/// Bytes: an iteration reads every point once. A coordinate takes 2 B if the arithmetic is fp16 or
/// bf16 and 4 B otherwise, because the problem is given in float32. It takes 2 B also for a version
/// that widens such points (VersionInfo::widens_halves), because another one need not. Centroids
/// are read once and written once. A label takes as few bytes as k allows (label_bytes()). Labels
/// are written once per solve, because only the last ones are returned: n labels / iterations. With
/// min_changes > 0 each iteration compares the labels, so it reads and writes them.
///
/// Operations: n·k distances. In the form ‖x‖² − 2·x·c + ‖c‖² each takes dim multiplications and
/// dim additions, in total 2·n·k·dim; the norms are of lower order. The direct form takes a
/// subtraction, a multiplication and an addition (3·n·k·dim). It never costs less, because it needs
/// two instructions of the same unit where the expanded form needs one FMA. Comparisons, divisions
/// and the n·dim additions of the update are left out: a floor may be too low, but never too high.
IterationWork iteration_work(const Problem& problem);

/// max(bytes / bandwidth, operations / rate) of one iteration in milliseconds, comparable with
/// iteration_ms. The work is divided evenly among `devices`. The bandwidth is that of the nearest
/// level of memory that points and centroids fit into. Points that do not fit into the capacity of
/// the devices cross the link in every iteration, and the floor is at least their bytes at the rate
/// of the upload. Returns nullopt if a required ceiling is missing; `why_not` then names it.
///
/// Two kinds of version can be faster than this floor: those that skip distances (bounds), and
/// those that compute fp32 or fp64 from products of narrower types.
std::optional<double> floor_ms(const Problem& problem, const FloorRates& rates, int devices,
                               std::string& why_not);

/// The same of the whole job, comparable with end_to_end_ms: the points go to the device and the
/// labels come back, and `iteration_floor_ms` is what floor_ms() returned. The first iteration can
/// follow the upload point by point, and the download the last one, so these two cost nothing of
/// their own. A coordinate takes 2 B or 4 B as above, a label as few bytes as k allows.
std::optional<double> end_to_end_floor_ms(const Problem& problem, const FloorRates& rates,
                                          int devices, double iteration_floor_ms,
                                          std::string& why_not);

}  // namespace lloyd
