// Lower bounds of all scores of 32 points, by tiles.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "kernels/core/version.h"
#include "kernels/fast_cpu/amx/parts.h"

namespace lloyd::fast_cpu::amx {

/// All centroids, in groups of 32.
struct Centroids {
  const std::uint16_t* tiles;  // groups × steps × kStepValues
  const float *starts, *norms;
  int groups, steps;
};

/// What is read after this call, to be brought into L2 during it: as many bytes of each as the
/// block of points has.
struct Ahead {
  const void *block, *rows;
};

/// The smallest and the second smallest lower bound of each point, and whose the smallest is.
struct Nearest {
  alignas(64) float best[kVectors], second[kVectors];
  alignas(64) std::int32_t label[kVectors];
};

/// The lower bound of point p and centroid j: starts[j] − (products of parts) − reach[p]·norms[j].
struct Engine {
  /// `points`: steps × kStepValues. Pointers are aligned to 64 bytes.
  void (*nearest)(const std::uint16_t* points, const float* reach, const Centroids& centroids,
                  const Ahead& ahead, Nearest& nearest);
  /// Bit p of candidates[j]: the lower bound of point p and centroid j is at most limits[p].
  void (*candidates)(const std::uint16_t* points, const float* reach, const float* limits,
                     const Centroids& centroids, std::uint32_t* candidates);
};

/// The engine of AMX instructions. Call it only where why_not() is empty.
const Engine& hardware();
/// Why this machine cannot run hardware(). Asks the kernel for the permission to use tiles.
std::optional<std::string> why_not();

/// fast_cpu_amx with this engine, so that tests can run it without AMX.
std::unique_ptr<Version> make_version(const Engine& engine);

}  // namespace lloyd::fast_cpu::amx
