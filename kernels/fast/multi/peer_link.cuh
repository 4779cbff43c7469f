// How kernels of several GPUs add up values while they run. Each shard stores its values into an
// inbox of every shard, its own included, over NVLink; then it reads what its own inbox got.
//
// Half a value and the number of its exchange travel in one access, so the number says that the
// half is there: no fence, no flag that follows the data, one way over the link (NCCL's LL
// protocol). NOTES.md: why that is correct.
#pragma once

#include <cstdint>
#include <cstring>

#include "kernels/fast/lib/ptx/sys.cuh"
#include "kernels/fast/multi/peer_exchange.h"

namespace lloyd::fast {

/// An inbox is [2][shards][capacity] units of 8 bytes. Exchanges of even and of odd numbers take
/// turns. All shards make the same exchanges; each of them has at least one unit.
struct PeerLink {
  int shard, shards;
  std::int64_t capacity;             // units of an exchange
  ulonglong2* inboxes[kMostShards];  // of every shard
  unsigned* failed;                  // in the host's memory: not 0 once a shard has failed

  /// Sends unit i of exchange `number` to all shards.
  __device__ __forceinline__ void send(std::int64_t i, std::uint64_t unit, unsigned number) const {
    const unsigned long long tag = static_cast<unsigned long long>(number) << 32;
    const ulonglong2 words{tag | (unit & kLow), tag | unit >> 32};
    for (int to = 0; to < shards; ++to)
      ptx::st_relaxed_sys(inboxes[to] + place(shard, i, number), words);
  }

  /// Waits for unit i of exchange `number` from all shards. Returns false once a shard has failed;
  /// the units are arbitrary then.
  __device__ __forceinline__ bool receive(std::int64_t i, unsigned number,
                                          std::uint64_t (&units)[kMostShards]) const {
    const ulonglong2* const inbox = inboxes[shard] + place(0, i, number);
    const long long start = clock64();
    for (unsigned polls = 1;; ++polls) {
      ulonglong2 words[kMostShards];
#pragma unroll
      for (int from = 0; from < kMostShards; ++from)
        if (from < shards) words[from] = ptx::ld_relaxed_sys(inbox + from * capacity);
      unsigned long long missing = 0;
#pragma unroll
      for (int from = 0; from < kMostShards; ++from) {
        if (from >= shards) break;
        missing |= (words[from].x >> 32 ^ number) | (words[from].y >> 32 ^ number);
        units[from] = (words[from].x & kLow) | words[from].y << 32;
      }
      if (missing == 0) return true;
      if (polls % kPollsUntilLook == 0 && gives_up(start)) return false;
    }
  }

 private:
  static constexpr unsigned long long kLow = 0xffffffff;
  static constexpr unsigned kPollsUntilLook = 4096;         // about 1 ms
  static constexpr long long kMostClocks = 20'000'000'000;  // 10 s at 2 GHz

  __device__ __forceinline__ std::int64_t place(int from, std::int64_t i, unsigned number) const {
    return (static_cast<std::int64_t>(number & 1) * shards + from) * capacity + i;
  }

  /// Whether a shard has failed, or has kept this one waiting for too long.
  __device__ __forceinline__ bool gives_up(long long start) const {
    if (ptx::ld_relaxed_sys(failed) != 0) return true;
    if (clock64() - start < kMostClocks) return false;
    ptx::st_relaxed_sys(failed, 1u);
    return true;
  }
};

/// The sum of what units hold: one T of 8 bytes, in the order of shards.
template <typename T>
__device__ __forceinline__ T sum_of_units(const std::uint64_t (&units)[kMostShards], int shards) {
  static_assert(sizeof(T) == sizeof(std::uint64_t));
  T total;
#pragma unroll
  for (int from = 0; from < kMostShards; ++from) {
    if (from >= shards) continue;
    T value;
    memcpy(&value, &units[from], sizeof value);
    total = from == 0 ? value : total + value;
  }
  return total;
}

}  // namespace lloyd::fast
