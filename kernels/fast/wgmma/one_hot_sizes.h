// How one_hot_engine.cuh divides shared memory, and in which order a slice's labels stand there.
#pragma once

#include "kernels/fast/wgmma/assignment.h"

namespace lloyd::fast {
namespace {
namespace one_hot {

constexpr int kWarpgroup = 128;  // threads
constexpr int kSlice = 64;       // points that a consumer takes at a time
constexpr int kMostColumns = 128;
constexpr int kProducerRegisters = 24;  // of a thread, once it has left the others to consumers
// Slices after which a consumer takes its sums out of the registers: NOTES.md, "Sums by products".
constexpr int kMostSlices = 64;

// The fragments of the one-hot matrix are those of an A operand: of 16 points, quad lane q needs
// the labels of 2q and 2q + 1, and of the two 8 behind these. In this order a thread finds those of
// all 64 points in 32 contiguous bytes.
__host__ __device__ constexpr int label_place(int point) {
  const int pair = point / 16 * 2 + point % 16 / 8;
  return point % 8 / 2 * (kSlice / 4) + 2 * pair + point % 2;
}

template <int kPanels, int kColumns>
struct Sizes {
  // Warpgroups that multiply. Each waits for one thing after the other, so more of them are faster,
  // as long as registers have their sums and scores.
  static constexpr int kSums = kPanels * kColumns / 2;  // of a thread
  static constexpr int kConsumers = kSums > 64 ? 2 : (kSums == 64 ? 3 : 4);
  static constexpr int kThreads = kWarpgroup * (1 + kConsumers);
  // Registers of a thread: of each when the kernel starts, and then of a consumer's, which get what
  // the producer gives back. Registers are handed out in eights.
  static constexpr int kFirstRegisters = (64 << 10) / kThreads / 8 * 8;
  static constexpr int kRegisters =
      (kFirstRegisters * (1 + kConsumers) - kProducerRegisters) / kConsumers / 8 * 8;

  static constexpr int kStage = kPanels * kSlice * 128;  // bytes of a slice
  static constexpr int kCentroids = product_bytes(kPanels * kPanel, kColumns);
  // Besides stages and centroids: at most 16 stages' norms and barriers, labels, counts, ‖c‖²/2,
  // and what aligns panels.
  static constexpr int kOther = 16 * (kSlice * 4 + 16) + 1536 + kConsumers * kSlice * 4 + 1024;
  static constexpr int kMost = 227 * 1024;  // of a block
  static constexpr int kFit = (kMost - kOther - kCentroids) / kStage;
  // A multiple of the consumers, so that a stage always has the same one. It would otherwise meet
  // phases that it has not seen, and take a stage that is still being filled for one that is full:
  // copies do not end in the order in which they began.
  static constexpr int kDepth = (kFit < 16 ? kFit : 16) / kConsumers * kConsumers;
  static constexpr int kShared = kOther + kCentroids + kDepth * kStage;
  static_assert(kDepth >= 2 * kConsumers && kDepth % kConsumers == 0);
};

}  // namespace one_hot
}  // namespace
}  // namespace lloyd::fast
