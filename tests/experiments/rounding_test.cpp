// Rounding to half precision on the host manipulates bits, so the tests try every value and every
// midpoint.
#include "experiments/measure/rounding.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <numeric>
#include <span>
#include <vector>

#include "kernels/core/point_rows.h"

namespace lloyd {
namespace {

// The value of a finite 16-bit pattern, from its definition.
float fp16_value(unsigned bits) {
  const int exponent = static_cast<int>(bits >> 10 & 31),
            significand = static_cast<int>(bits & 1023);
  const double magnitude =
      exponent == 0 ? std::ldexp(significand, -24) : std::ldexp(1024 + significand, exponent - 25);
  return static_cast<float>(bits >> 15 ? -magnitude : magnitude);
}

float bf16_value(unsigned bits) { return std::bit_cast<float>(bits << 16); }

float rounded(Precision precision, float x) {
  round_to_storage(precision, {&x, 1}, 1, "point");
  return x;
}

// Checks all non-negative finite values in ascending order. `infinity` is the bit pattern of
// infinity.
void expect_nearest_even(Precision precision, float (*value)(unsigned), unsigned infinity) {
  for (unsigned bits = 0; bits + 1 < infinity; ++bits) {
    const float low = value(bits), high = value(bits + 1);
    ASSERT_EQ(rounded(precision, low), low);
    ASSERT_EQ(rounded(precision, -low), -low);
    const float middle = std::midpoint(low, high), even = bits % 2 == 0 ? low : high;
    if (static_cast<double>(low) + static_cast<double>(high) != 2 * static_cast<double>(middle))
      continue;  // there is no float between the smallest bf16 values
    ASSERT_EQ(rounded(precision, middle), even) << bits;
    ASSERT_EQ(rounded(precision, -middle), -even) << bits;
    ASSERT_EQ(rounded(precision, std::nextafterf(middle, low)), low) << bits;
    ASSERT_EQ(rounded(precision, std::nextafterf(middle, high)), high) << bits;
  }
}

TEST(Rounding, IsToNearestTiesToEven) {
  expect_nearest_even(Precision::fp16, fp16_value, 0x7C00);
  expect_nearest_even(Precision::bf16, bf16_value, 0x7F80);
  EXPECT_TRUE(std::signbit(rounded(Precision::fp16, -1e-9f)));
}

// Every finite value of the format must give its bits.
void expect_own_bits(Precision precision, float (*value)(unsigned), unsigned infinity) {
  std::vector<float> values;
  std::vector<std::uint16_t> bits;
  for (const unsigned sign : {0u, 0x8000u})
    for (unsigned b = sign; b < sign + infinity; ++b) {
      bits.push_back(static_cast<std::uint16_t>(b));
      values.push_back(value(b));
    }
  EXPECT_EQ(to_halves(precision, values), bits);
}

TEST(Rounding, KeepsTheBitsOfRoundedValues) {
  expect_own_bits(Precision::fp16, fp16_value, 0x7c00);
  expect_own_bits(Precision::bf16, bf16_value, 0x7f80);
}

// All patterns of 16 bits, in columns of 32 rows.
void expect_own_values(Precision precision, float (*value)(unsigned), unsigned infinity) {
  constexpr std::int64_t kAll = 1 << 16, kStride = kAll / 32;
  std::vector<std::uint16_t> bits(kAll);
  std::iota(bits.begin(), bits.end(), 0);
  const HalfRows rows(bits, precision);
  const PartOfRows part(rows, kStride);
  for (const std::int64_t width : {1, 7, 16, 50}) {
    std::vector<float> columns(static_cast<std::size_t>(32 * width)), others(columns.size());
    for (std::int64_t first = 0; first < kStride; first += width) {
      const std::int64_t own = std::min(width, kStride - first);
      const auto out = std::span(columns).first(static_cast<std::size_t>(32 * own));
      rows.read_columns(first, kStride, own, out);
      for (std::int64_t at = 0; at < std::ssize(out); ++at) {
        const auto b = static_cast<unsigned>(at / own * kStride + first + at % own);
        const float x = out[static_cast<std::size_t>(at)];
        if ((b & 0x7fff) > infinity)
          ASSERT_TRUE(std::isnan(x)) << b;
        else if ((b & 0x7fff) == infinity)
          ASSERT_TRUE(std::isinf(x) && std::signbit(x) == (b >> 15 != 0)) << b;
        else
          ASSERT_EQ(std::bit_cast<std::uint32_t>(x), std::bit_cast<std::uint32_t>(value(b))) << b;
      }
      const auto later = std::span(others).first(static_cast<std::size_t>(31 * own));
      part.read_columns(first, kStride, own, later);
      ASSERT_EQ(std::memcmp(later.data(), out.data() + own, later.size_bytes()), 0);
      part.PointRows::read_columns(first, kStride, own, later);  // that of rows in a file
      ASSERT_EQ(std::memcmp(later.data(), out.data() + own, later.size_bytes()), 0);
    }
  }
}

TEST(Rounding, OfPointsInMemoryGivesTheirValuesBack) {
  expect_own_values(Precision::fp16, fp16_value, 0x7c00);
  expect_own_values(Precision::bf16, bf16_value, 0x7f80);
}

TEST(Rounding, LeavesWiderPrecisionsAsTheyAre) {
  for (const Precision precision : {Precision::fp64, Precision::fp32, Precision::tf32}) {
    EXPECT_EQ(storage_precision(precision), Precision::fp32);
    EXPECT_EQ(rounded(precision, 1e38f), 1e38f);
    EXPECT_EQ(rounded(precision, 0.1f), 0.1f);
  }
}

TEST(Rounding, NamesTheFirstValueThatIsBeyondTheRange) {
  std::vector<float> values(6'000, 65'519.996f);  // the last float that rounds to 65,504
  round_to_storage(Precision::fp16, values, 3, "point");
  EXPECT_EQ(values, std::vector<float>(6'000, 65'504.0f));
  values[5'000] = values[4'001] = -65'520;
  try {
    round_to_storage(Precision::fp16, values, 3, "point");
    FAIL() << "65,520 rounds to infinity";
  } catch (const Unsupported& error) {
    EXPECT_STREQ(error.what(), "fp16 ends at 65504: point 1,333 has coordinate 2 = -65520");
  }
  EXPECT_EQ(rounded(Precision::bf16, 65'520), 65'536);
  EXPECT_THROW(rounded(Precision::bf16, 3.4e38f), Unsupported);
  EXPECT_THROW(rounded(Precision::fp16, std::nanf("")), Unsupported);
}

}  // namespace
}  // namespace lloyd
