// A consumer of one_hot_engine.cuh: a warpgroup that labels slices of points and adds them up in
// its registers.
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/fast/lib/pipeline.cuh"
#include "kernels/fast/lib/ptx/bar.cuh"
#include "kernels/fast/lib/ptx/wgmma.cuh"
#include "kernels/fast/wgmma/assignment.h"
#include "kernels/fast/wgmma/one_hot_sizes.h"

namespace lloyd::fast {
namespace {
namespace one_hot {

// What a block leaves to the finish, and what is added up there.
struct Slots {
  float* sums;       // of each block: k × padded
  unsigned* counts;  // of each block: k
  // Of each consumer: the sums that it has taken out of its registers, k × padded. Null where no
  // consumer has more than kMostSlices slices.
  float* taken;
  int padded;
};

// The end of shared memory. A point's label stands there as a value of T, −1 where there is none.
template <typename T, int kDepth, int kConsumers>
struct Tail {
  Ring<kDepth> ring;
  std::uint64_t centroids_full;
  alignas(16) float half_norms[kDepth][kSlice];
  alignas(16) float bias[kMostColumns];         // ‖c‖²/2, in the order of place_row()
  alignas(16) T labels[kConsumers][2][kSlice];  // in the order of label_place()
  unsigned counts[kMostColumns];                // points of each cluster in this block
};

#if LLOYD_HOPPER_CODE
using namespace ptx;

// 1 where the labels of two points are `cluster`, else 0, as two values of T.
template <typename T>
__device__ __forceinline__ std::uint32_t one_hot_pair(std::uint32_t labels, std::uint32_t cluster) {
  using Pair = std::conditional_t<std::is_same_v<T, __half>, __half2, __nv_bfloat162>;
  const Pair ones =
      __heq2(*reinterpret_cast<const Pair*>(&labels), *reinterpret_cast<const Pair*>(&cluster));
  return *reinterpret_cast<const std::uint32_t*>(&ones);
}

// The number of a cluster twice, as two values of T.
template <typename T>
__device__ __forceinline__ std::uint32_t twice(int cluster) {
  const T value = static_cast<T>(static_cast<float>(cluster));
  return *reinterpret_cast<const std::uint16_t*>(&value) * 0x10001u;
}

// One of the warpgroups that multiply.
template <typename T, int kPanels, int kColumns>
struct Consumer {
  using Sizes = one_hot::Sizes<kPanels, kColumns>;
  static constexpr int kConsumers = Sizes::kConsumers;
  using Shared = Tail<T, Sizes::kDepth, kConsumers>;
  using Score = Wgmma<T, kColumns, -1>;
  // Products of 192 columns are three of 64.
  static constexpr int kWide = kPanels == 3 ? kPanel : kPanels * kPanel;
  static constexpr int kPieces = kPanels * kPanel / kWide, kBlocks = kColumns / 64;
  using Add = Wgmma<T, kWide>;
  static constexpr int kSteps = kSlice / 16;
  // What a consumer does while its sums of a slice are under way. It starts the scores of the next
  // slice (kTogether), or only sets what they start from (kBegins), or waits, and the products of
  // the other consumers fill the gap. There are too few registers for kTogether above 64 clusters,
  // and for kBegins with three consumers. Above 128 dimensions there are only four to eight stages,
  // and memory is the limit: a stage must not stay in use until the next one is full.
  static constexpr bool kTogether = kBlocks == 1 && kPanels < 3;
  static constexpr bool kBegins = kBlocks == 2 && kPanels == 2;
  using Sums = float[kBlocks][kPieces][Add::kRegisters];

  const Assignment& in;
  const Slots& slots;
  const char *centroids, *stages;
  Shared& tail;
  int consumer;
  int warp = static_cast<int>(threadIdx.x) % 128 / 32;
  int group = static_cast<int>(threadIdx.x) % 32 / 4, quad = static_cast<int>(threadIdx.x) % 4;
  int row = warp * 16 + group;  // this thread's first row of a product, of two 8 apart

  // Sets what the scores of the points in stage `slot` start from.
  __device__ __forceinline__ void begin(float (&acc)[Score::kRegisters], int slot) const {
    const float* norms = tail.half_norms[slot];
    start_from<kColumns>(acc, norms[row], norms[row + 8], reinterpret_cast<const char*>(tail.bias),
                         quad);
  }

  // Starts the products of the points in stage `slot` and all centroids.
  __device__ __forceinline__ void score(float (&acc)[Score::kRegisters], int slot) const {
    hold(acc);
    wgmma_fence();
    const std::uint64_t x = wgmma_descriptor(stages + slot * Sizes::kStage),
                        c = wgmma_descriptor(centroids);
#pragma unroll
    for (int s = 0; s < kPanels * kPanel / 16; ++s)
      Score::run(acc, x + step_offset(kSlice, s), c + step_offset(kColumns, s), 1);
    wgmma_commit();
  }

  // Finds the labels of a slice, writes and counts them, and hands them to the other threads.
  __device__ __forceinline__ void label(float (&acc)[Score::kRegisters], int slice,
                                        T* labels) const {
    hold(acc);
    Best best;
    scan(acc, in.mask, 0, best);
    const int upper = resolve(best, 0, in.mask, kColumns, in.k),
              lower = resolve(best, 1, in.mask, kColumns, in.k);
    if (quad < 2) {
      const int at = row + 8 * quad, nearest = quad == 0 ? upper : lower;
      const std::int64_t point = std::int64_t{slice} * kSlice + at;
      const bool real = point < in.n;
      labels[label_place(at)] = static_cast<T>(real ? static_cast<float>(nearest) : -1.0f);
      if (real) {
        atomicAdd(&tail.counts[nearest], 1u);
        if (in.labels != nullptr) write_label(in, point, nearest);
      }
    }
    // The other threads may still read the labels of the slice before: these are elsewhere.
    bar_sync(1 + consumer, 128);
  }

  // Starts adding up the points in stage `slot`, which have these labels.
  __device__ __forceinline__ void add(Sums& sums, const T* labels, int slot) const {
    std::uint32_t pairs[2 * kSteps];
#pragma unroll
    for (int i = 0; i < kSteps / 2; ++i) {
      const uint4 four = reinterpret_cast<const uint4*>(labels)[quad * (kSteps / 2) + i];
      pairs[4 * i] = four.x;
      pairs[4 * i + 1] = four.y;
      pairs[4 * i + 2] = four.z;
      pairs[4 * i + 3] = four.w;
    }
    std::uint32_t a[kBlocks][kSteps][4];
#pragma unroll
    for (int m = 0; m < kBlocks; ++m)
#pragma unroll
      for (int s = 0; s < kSteps; ++s)
#pragma unroll
        for (int i = 0; i < 4; ++i)
          a[m][s][i] = one_hot_pair<T>(pairs[2 * s + i / 2], twice<T>(64 * m + row + i % 2 * 8));
    wgmma_fence();
    const std::uint64_t x = wgmma_across_descriptor(stages + slot * Sizes::kStage, kSlice * 128);
#pragma unroll
    for (int s = 0; s < kSteps; ++s)
#pragma unroll
      for (int m = 0; m < kBlocks; ++m)
#pragma unroll
        for (int p = 0; p < kPieces; ++p)
          Add::run_across(sums[m][p], a[m][s], x + p * (kSlice * 128 >> 4) + s * (16 * 128 >> 4),
                          1);
    wgmma_commit();
  }

  // Calls visit(two neighbouring sums of this thread, their place in k × padded).
  template <typename Visit>
  __device__ __forceinline__ void each(Sums& sums, Visit visit) const {
#pragma unroll
    for (int m = 0; m < kBlocks; ++m)
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int cluster = 64 * m + row + 8 * i;
        if (cluster >= in.k) continue;
#pragma unroll
        for (int p = 0; p < kPieces; ++p)
#pragma unroll
          for (int b = 0; b < kWide / 8; ++b) {
            const int t = p * kWide + 8 * b + 2 * quad;
            float* two = &sums[m][p][4 * b + 2 * i];
            if (t < slots.padded) visit(two[0], two[1], cluster * slots.padded + t);
          }
      }
  }

  // Moves the sums out of the registers. They are rounded towards zero there, so they must not
  // become too large beside what is added (NOTES.md).
  __device__ __forceinline__ void take(Sums& sums, float* taken, bool first) const {
    each(sums, [&](float& a, float& b, int at) {
      auto* to = reinterpret_cast<float2*>(taken + at);
      const float2 old = first ? float2{} : *to;
      *to = {old.x + a, old.y + b};
    });
#pragma unroll
    for (int i = 0; i < kBlocks * kPieces * Add::kRegisters; ++i) (&sums[0][0][0])[i] = 0;
  }

  // Leaves the sums of all consumers, in their order, in the block's slot.
  __device__ __forceinline__ void leave(Sums& sums, char* scratch) const {
    constexpr int kEach = kBlocks * kPieces * Add::kRegisters;
    static_assert((kConsumers - 1) * kEach * 128 * 4 <= Sizes::kDepth * Sizes::kStage);
    const auto of = [&](int other) {
      return reinterpret_cast<float*>(scratch) + (other - 1) * (128 * kEach) + threadIdx.x % 128;
    };
    bar_sync(1 + kConsumers, kConsumers * 128);  // no product reads a stage any more
    if (consumer > 0) {
#pragma unroll
      for (int i = 0; i < kEach; ++i) of(consumer)[128 * i] = (&sums[0][0][0])[i];
    }
    bar_sync(1 + kConsumers, kConsumers * 128);
    if (consumer == 1) {
      const int j = static_cast<int>(threadIdx.x) % 128;
      if (j < in.k) slots.counts[blockIdx.x * in.k + j] = tail.counts[j];
    }
    if (consumer > 0) return;
#pragma unroll
    for (int other = 1; other < kConsumers; ++other)
#pragma unroll
      for (int i = 0; i < kEach; ++i) (&sums[0][0][0])[i] += of(other)[128 * i];
    float* slot = slots.sums + std::int64_t{blockIdx.x} * in.k * slots.padded;
    each(sums, [&](float a, float b, int at) { *reinterpret_cast<float2*>(slot + at) = {a, b}; });
  }

  // All slices of this consumer: every kConsumers-th one of the block. A turn begins when a slice
  // has its labels:
  //   add     starts the product that adds the slice up
  //   score   starts the products of the next slice, before or after the sums are done (kTogether)
  //   label   the next slice
  // ptxas must see no product in flight over the loop's back edge (see wgmma_wait).
  __device__ __forceinline__ void run(char* scratch) {
    const int slices = static_cast<int>((in.n + kSlice - 1) / kSlice);
    const int step = kConsumers * static_cast<int>(gridDim.x);
    int slice = static_cast<int>(blockIdx.x + consumer * gridDim.x);
    RingPlace<Sizes::kDepth> at{consumer, 0};
    float* taken = slots.taken == nullptr
                       ? nullptr
                       : slots.taken + (std::int64_t{blockIdx.x} * kConsumers + consumer) * in.k *
                                           slots.padded;
    int slices_done = 0;
    bool has_taken = false;
    Sums sums = {};
    float acc[Score::kRegisters];
    if (slice < slices) {
      mbarrier_wait(&tail.centroids_full, 0);
      tail.ring.wait(at);
      begin(acc, at.slot);
      score(acc, at.slot);
      wgmma_wait<0>();
      label(acc, slice, tail.labels[consumer][0]);
      for (; slice + step < slices; ++slices_done) {
        if (taken != nullptr && slices_done > 0 && slices_done % kMostSlices == 0) {
          take(sums, taken, !has_taken);
          has_taken = true;
        }
        hold_all(sums);
        add(sums, tail.labels[consumer][slices_done & 1], at.slot);
        const int before = at.slot;
        for (int i = 0; i < kConsumers; ++i) at.advance();
        slice += step;
        if constexpr (!kTogether && !kBegins) settle(sums, before);
        tail.ring.wait(at);
        begin(acc, at.slot);
        if constexpr (kBegins) {
          hold(acc);  // before the wait
          settle(sums, before);
        }
        score(acc, at.slot);
        if constexpr (kTogether) settle(sums, before);
        wgmma_wait<0>();
        label(acc, slice, tail.labels[consumer][(slices_done & 1) ^ 1]);
      }
      hold_all(sums);
      add(sums, tail.labels[consumer][slices_done & 1], at.slot);
      wgmma_wait<0>();
      hold_all(sums);
    }
    if (has_taken) {
      each(sums, [&](float& a, float& b, int place) {
        const float2 old = *reinterpret_cast<const float2*>(taken + place);
        a += old.x;
        b += old.y;
      });
    }
    leave(sums, scratch);
  }

  // Waits for all products, and gives the stage of the slice that was added up back.
  __device__ __forceinline__ void settle(Sums& sums, int slot) const {
    wgmma_wait<0>();
    hold_all(sums);
    __syncwarp();
    if (threadIdx.x % 32 == 0) tail.ring.release(slot);
  }

  static __device__ __forceinline__ void hold_all(Sums& sums) {
#pragma unroll
    for (int m = 0; m < kBlocks; ++m)
#pragma unroll
      for (int p = 0; p < kPieces; ++p) hold(sums[m][p]);
  }
};
#endif

}  // namespace one_hot
}  // namespace
}  // namespace lloyd::fast
