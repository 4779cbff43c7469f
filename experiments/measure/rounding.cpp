#include "experiments/measure/rounding.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "kernels/core/limits.h"

namespace lloyd {
namespace {

// Rounds a float to nearest, ties to even, and clears the lowest `bits` bits of its significand. A
// carry correctly moves into the exponent.
float drop_bits(float x, int bits) {
  const auto word = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t half = (1u << (bits - 1)) - 1, odd = (word >> bits) & 1;
  return std::bit_cast<float>((word + half + odd) >> bits << bits);
}

float to_fp16(float x) {
  if (std::abs(x) >= 0x1p-14f) return drop_bits(x, 13);
  // A subnormal fp16 value is a multiple of 2^-24, which is the last place of 0.5.
  return std::copysign((std::abs(x) + 0.5f) - 0.5f, x);
}

float to_bf16(float x) { return drop_bits(x, 16); }

std::uint16_t bf16_bits(float rounded) {
  return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(rounded) >> 16);
}

std::uint16_t fp16_bits(float rounded) {
  const auto word = std::bit_cast<std::uint32_t>(rounded);
  const std::uint32_t sign = word >> 16 & 0x8000, magnitude = word & 0x7fffffff;
  const float size = std::abs(rounded);
  // The exponent's bias is 127 in float and 15 in fp16. A subnormal is a multiple of 2^-24.
  const std::uint32_t bits = size >= 0x1p-14f ? (magnitude >> 13) - ((127 - 15) << 10)
                                              : static_cast<std::uint32_t>(size * 0x1p24f);
  return static_cast<std::uint16_t>(sign | bits);
}

}  // namespace

Precision storage_precision(Precision precision) {
  return precision == Precision::fp16 || precision == Precision::bf16 ? precision : Precision::fp32;
}

void round_to_storage(Precision precision, std::span<float> values, int dim, const char* what) {
  if (storage_precision(precision) == Precision::fp32) return;
  const bool fp16 = precision == Precision::fp16;
  const float largest = fp16 ? 65504 : 0x1.FEp127f;
  const auto size = static_cast<std::int64_t>(values.size());
  std::int64_t beyond = size;
#pragma omp parallel for schedule(static) reduction(min : beyond)
  for (std::int64_t i = 0; i < size; ++i) {
    float& x = values[static_cast<std::size_t>(i)];
    const float rounded = fp16 ? to_fp16(x) : to_bf16(x);
    // Leave a value beyond the format unchanged, so that the error below can show it.
    if (std::abs(rounded) <= largest)
      x = rounded;
    else
      beyond = std::min(beyond, i);
  }
  if (beyond == size) return;
  throw Unsupported(fmt::format("{} ends at {:.6g}: {} {} has coordinate {} = {}",
                                to_string(precision), largest, what, with_commas(beyond / dim),
                                beyond % dim, values[static_cast<std::size_t>(beyond)]));
}

std::vector<std::uint16_t> to_halves(Precision precision, std::span<const float> rounded) {
  std::vector<std::uint16_t> halves(rounded.size());
  const auto size = static_cast<std::int64_t>(rounded.size());
#pragma omp parallel for schedule(static)
  for (std::int64_t i = 0; i < size; ++i) {
    const float x = rounded[static_cast<std::size_t>(i)];
    halves[static_cast<std::size_t>(i)] =
        precision == Precision::fp16 ? fp16_bits(x) : bf16_bits(x);
  }
  return halves;
}

}  // namespace lloyd
