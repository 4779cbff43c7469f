#include "profiling/program.h"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>

namespace lloyd::profiling {
namespace {

TEST(OutputOf, IsTheStandardOutputOfAProgramThatSucceeds) {
  EXPECT_EQ(output_of({"sh", "-c", "echo one; echo two >&2"}), "one\n");
  EXPECT_EQ(output_of({"sh", "-c", "echo one; exit 3"}), std::nullopt);
  EXPECT_EQ(output_of({"no-such-program"}), std::nullopt);
}

TEST(OutputOf, EndsInTimeWhateverTheProgramDoesWithItsOutput) {
  for (const char* script : {"sleep 20", "echo one; exec >&-; sleep 20"}) {
    const auto start = std::chrono::steady_clock::now();
    EXPECT_EQ(output_of({"sh", "-c", script}, 0.2), std::nullopt) << script;
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10)) << script;
  }
}

}  // namespace
}  // namespace lloyd::profiling
