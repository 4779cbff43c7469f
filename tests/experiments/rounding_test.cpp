// Rounding to half precision on the host manipulates bits, so the tests try every value and every
// midpoint.
#include "experiments/measure/rounding.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <numeric>
#include <vector>

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
