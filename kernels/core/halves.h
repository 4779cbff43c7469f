// Numbers in 16 bits: fp16 and bf16, on the host.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "kernels/core/version.h"

namespace lloyd {

inline constexpr float kLargestFp16 = 65504, kLargestBf16 = 0x1.FEp127f;

/// Rounds a float to nearest, ties to even, and clears the lowest `bits` bits of its significand. A
/// carry correctly moves into the exponent.
inline float drop_bits(float x, int bits) {
  const auto word = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t half = (1u << (bits - 1)) - 1, odd = (word >> bits) & 1;
  return std::bit_cast<float>((word + half + odd) >> bits << bits);
}

/// The nearest value of the format, ties to even. Beyond kLargestFp16 or kLargestBf16 it is larger.
inline float rounded_to_fp16(float x) {
  // A subnormal fp16 value is a multiple of 2^-24, which is the last place of 0.5.
  return std::abs(x) >= 0x1p-14f ? drop_bits(x, 13) : std::copysign((std::abs(x) + 0.5f) - 0.5f, x);
}
inline float rounded_to_bf16(float x) { return drop_bits(x, 16); }

/// The bits of a value of the format.
inline std::uint16_t fp16_bits(float rounded) {
  const auto word = std::bit_cast<std::uint32_t>(rounded);
  const std::uint32_t sign = word >> 16 & 0x8000, magnitude = word & 0x7fffffff;
  const float size = std::abs(rounded);
  // The exponent's bias is 127 in float and 15 in fp16. A subnormal is a multiple of 2^-24.
  const std::uint32_t bits = size >= 0x1p-14f ? (magnitude >> 13) - ((127 - 15) << 10)
                                              : static_cast<std::uint32_t>(size * 0x1p24f);
  return static_cast<std::uint16_t>(sign | bits);
}
inline std::uint16_t bf16_bits(float rounded) {
  return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(rounded) >> 16);
}

/// The value of bits, which every float can have.
inline float float_of_fp16(std::uint16_t bits) {
  const std::uint32_t sign = std::uint32_t{bits} << 16 & 0x80000000, magnitude = bits & 0x7fff;
  // Multiplying by 2^112 corrects the bias of the exponent, also of subnormals. Infinity and NaN
  // then only need the largest exponent. Without a branch, compilers convert several at once.
  const auto size = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude << 13) * 0x1p112f);
  const std::uint32_t exponent = magnitude < 0x7c00 ? 0 : 0x7f800000;
  return std::bit_cast<float>(sign | size | exponent);
}
inline float float_of_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(std::uint32_t{bits} << 16);
}

}  // namespace lloyd
