// Philox4x32-10, the counter-based generator of all random numbers in this folder.
//
// Salmon, Moraes, Dror & Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC'11. It uses only
// integer operations, so it gives the same words on every machine, thread count and device.
#pragma once

#include <cstdint>

#include "kernels/core/host_device.h"

namespace lloyd::data {

struct Words {
  std::uint32_t word[4];
};

/// Maps a 128-bit counter and a 64-bit key (both with the low word first) to 128 random bits.
LLOYD_HOST_DEVICE inline Words philox4x32_10(Words counter, std::uint64_t key) {
  std::uint32_t key0 = static_cast<std::uint32_t>(key);
  std::uint32_t key1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = std::uint64_t{0xD2511F53u} * counter.word[0];
    const std::uint64_t product1 = std::uint64_t{0xCD9E8D57u} * counter.word[2];
    counter = {{static_cast<std::uint32_t>(product1 >> 32) ^ counter.word[1] ^ key0,
                static_cast<std::uint32_t>(product1),
                static_cast<std::uint32_t>(product0 >> 32) ^ counter.word[3] ^ key1,
                static_cast<std::uint32_t>(product0)}};
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return counter;
}

/// The purpose of a number. It is part of the counter, so that numbers of different purposes are
/// independent even if the user gives the points and the initial centroids the same seed. Changing
/// a value changes every data set.
enum class Stream : std::uint32_t { points, centers, choice, init_draw, init_round, shape, check };

/// Words 4·block … 4·block + 3 of row `row` of a stream.
LLOYD_HOST_DEVICE inline Words random_words(std::uint64_t seed, Stream stream, std::uint64_t row,
                                            std::uint32_t block) {
  return philox4x32_10({{static_cast<std::uint32_t>(row), static_cast<std::uint32_t>(row >> 32),
                         block, static_cast<std::uint32_t>(stream)}},
                       seed);
}

/// In [0, 1), a multiple of 2^-24: exact as a double and as a float.
LLOYD_HOST_DEVICE inline double unit24(std::uint32_t word) { return (word >> 8) * 0x1p-24; }

/// In (0, 1), an odd multiple of 2^-33, so never closer than 2^-33 to either end: exact as a
/// double.
LLOYD_HOST_DEVICE inline double open_unit32(std::uint32_t word) { return (word + 0.5) * 0x1p-32; }

/// In [0, 1), a multiple of 2^-53: exact as a double.
LLOYD_HOST_DEVICE inline double unit53(std::uint32_t high, std::uint32_t low) {
  return static_cast<double>((std::uint64_t{high} << 32 | low) >> 11) * 0x1p-53;
}

/// In 0 … count − 1. Some values are likelier than others by at most count / 2^32 (relative).
LLOYD_HOST_DEVICE inline std::uint32_t below(std::uint32_t word, std::uint32_t count) {
  return static_cast<std::uint32_t>((std::uint64_t{word} * count) >> 32);
}

}  // namespace lloyd::data
