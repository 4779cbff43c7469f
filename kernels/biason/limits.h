// What both of biason's versions need of the device. A build without CUDA knows it too.
#pragma once

#include <optional>
#include <string>

#include "kernels/core/limits.h"

namespace lloyd::biason {

/// The study's blocks are 32 × 32 threads: its versions have no axis threads_per_block.
inline constexpr int kSide = 32;
inline constexpr int kThreads = kSide * kSide;

inline std::optional<std::string> block_too_large(const DeviceLimits& device) {
  if (device.max_threads_per_block >= kThreads) return std::nullopt;
  return "needs " + std::to_string(kThreads) + " threads per block, device allows " +
         std::to_string(device.max_threads_per_block);
}

}  // namespace lloyd::biason
