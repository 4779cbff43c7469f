// Tests which parts of a version's own report of a run are accepted.
#include "experiments/measure/external_protocol.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace lloyd {
namespace {

std::string refusal(const std::string& iterations, const std::string& solve_ms) {
  const auto reply = nlohmann::json::parse(R"({"ok": true, "iterations": )" + iterations +
                                           R"(, "solve_ms": )" + solve_ms + "}");
  try {
    parse_run_reply(reply, 5, 20);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

TEST(RunReply, HasIterationsThatWereAskedFor) {
  EXPECT_EQ(refusal("20", "4"), "");
  EXPECT_EQ(refusal("1", "4"), "");
  for (const char* wrong :
       {"0", "-5", "21", "2000000", "4294967316", "18446744073709551615", "-9223372036854775808"})
    EXPECT_EQ(refusal(wrong, "4"),
              std::string("run: reports ") + wrong + " iterations, but 1 to 20 were asked for");
  for (const char* wrong : {"20.0", "\"20\"", "null", "true", "[20]"})
    EXPECT_EQ(refusal(wrong, "4"), "run: reports no solve_ms and iterations");
}

TEST(RunReply, HasATimeThatCanBeOne) {
  EXPECT_EQ(refusal("20", "0.001"), "");
  EXPECT_EQ(refusal("20", "5.9"), "");
  EXPECT_NE(refusal("20", "6.1"), "");
  for (const char* wrong : {"0", "1e-9", "1e-300", "0.0"})
    EXPECT_NE(refusal("20", wrong).find("in less than a nanosecond"), std::string::npos) << wrong;
  for (const char* wrong : {"-1", "-1e-9", "\"4\"", "true"})
    EXPECT_NE(refusal("20", wrong).find("which is not a duration"), std::string::npos) << wrong;
  EXPECT_EQ(refusal("20", "null"), "run: reports no solve_ms and iterations");
}

// Printing, comparing or copying deeply nested JSON overflows the stack.
TEST(Answer, IsRefusedWhenNestedTooDeeply) {
  const std::string deep = std::string(200'000, '[') + std::string(200'000, ']');
  std::string unavailable;
  EXPECT_THROW(parse_description("odd_version", deep, unavailable), std::runtime_error);
  EXPECT_THROW(parse_reply("run", "odd_version", R"({"ok": true, "solve_ms": )" + deep + "}"),
               std::runtime_error);
  const auto reply = parse_reply("run", "odd_version", R"({"ok": true, "solve_ms": [[["["]]]})");
  EXPECT_THROW(milliseconds(reply, "solve_ms"), std::runtime_error);
}

}  // namespace
}  // namespace lloyd
