#include "experiments/text/pattern.h"

#include <gtest/gtest.h>

namespace lloyd {
namespace {

std::string error_of(const std::string& text) {
  try {
    const Pattern pattern(text);
    return "";
  } catch (const Pattern::Error& error) {
    return error.what();
  }
}

TEST(Pattern, IsLookedForAnywhere) {
  EXPECT_TRUE(Pattern("k:5/").found_in("cpu/n:1/k:5/dim:2"));
  EXPECT_FALSE(Pattern("^k:5/").found_in("cpu/n:1/k:5/dim:2"));
  EXPECT_TRUE(Pattern("").found_in(""));
}

TEST(Pattern, ErrorsSayWhatIsWrongAndWhere) {
  EXPECT_EQ(error_of("k:("), "'k:(' is not a regular expression: missing )");
  EXPECT_EQ(error_of("ab**c"),
            "'ab**c' is not a regular expression: bad repetition operator, '**' at character 3");
  EXPECT_EQ(error_of("x(?=y)"),
            "'x(?=y)' is not a regular expression: invalid perl operator, '(?=' at character 2");
  EXPECT_EQ(error_of(std::string(1'000'000, 'a')),
            "'" + std::string(60, 'a') +
                "…' is too long for a regular expression: 1000000 bytes, at most 10000");
}

TEST(Pattern, TakesTimeInProportionToTheText) {
  EXPECT_FALSE(Pattern("(((a+)+)+)+$").found_in(std::string(100'000, 'a') + "b"));
}

}  // namespace
}  // namespace lloyd
