#include "experiments/text/text.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace lloyd {
namespace {

using Words = std::vector<std::string>;

TEST(Utf8, WhatIsValidStays) {
  for (const std::string text : {"", "plain", "µs × 3 – „quoted“", "日本語", "🚀", "a\nb\x1b[0m"}) {
    EXPECT_EQ(invalid_utf8(text), std::string_view::npos) << text;
    EXPECT_EQ(valid_utf8(text), text);
  }
}

TEST(Utf8, EachInvalidByteIsReplaced) {
  const std::string r = "\uFFFD";
  EXPECT_EQ(valid_utf8("caf\xe9!"), "caf" + r + "!");
  EXPECT_EQ(valid_utf8("\xff\xfe"), r + r);
  EXPECT_EQ(valid_utf8("torn \xe2\x82"), "torn " + r + r);
  EXPECT_EQ(valid_utf8("\xc0\xaf"), r + r);                  // overlong encoding of '/'
  EXPECT_EQ(valid_utf8("\xed\xa0\x80"), r + r + r);          // a surrogate
  EXPECT_EQ(valid_utf8("\xf4\x90\x80\x80"), r + r + r + r);  // above U+10FFFF
  EXPECT_EQ(invalid_utf8("caf\xe9!"), 3u);
}

TEST(Text, OneThingHasNoPlural) {
  EXPECT_EQ(counted(0, "point"), "0 points");
  EXPECT_EQ(counted(1, "point"), "1 point");
  EXPECT_EQ(counted(2, "point"), "2 points");
}

TEST(Utf8, JsonOfAnyBytesIsWritten) {
  const nlohmann::json json = {{"reason", "caf\xe9"}};
  EXPECT_EQ(json_text(json), "{\"reason\":\"caf\uFFFD\"}");
  EXPECT_EQ(nlohmann::json::parse(json_text(json)).at("reason"), "caf\uFFFD");
}

TEST(Shortened, CutsBetweenCharacters) {
  EXPECT_EQ(shortened("abc", 3), "abc");
  EXPECT_EQ(shortened("µµµ", 3), "µ… (6 B)");
  EXPECT_EQ(invalid_utf8(shortened("日本語", 4)), std::string_view::npos);
}

TEST(ShellWord, IsQuotedWhereAShellWouldReadItAsSomethingElse) {
  EXPECT_EQ(shell_word("/data/v1.0/a_b-c.py"), "/data/v1.0/a_b-c.py");
  EXPECT_EQ(shell_word("/data/my versions/a.py"), "'/data/my versions/a.py'");
  EXPECT_EQ(shell_word("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_word(""), "''");
  for (const std::string word : {"$HOME", "a;b", "~", "*", "n=1", "µs"})
    EXPECT_EQ(shell_word(word), "'" + word + "'");
}

TEST(Terminal, ShowsWhatWouldMoveTheCursor) {
  EXPECT_EQ(for_terminal("\x1b[2J|<b>\n\r\t\x7f"), "\\x1b[2J|<b>\\x0a\\x0d\\x09\\x7f");
  EXPECT_EQ(for_terminal(std::string("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(for_terminal("\u009b2J"), "\\u009b2J");  // CSI as one character
  EXPECT_EQ(for_terminal("ok\u202edeliaf"), "ok\\u202edeliaf");
  EXPECT_EQ(for_terminal("4.0 µs, \xe9"), "4.0 µs, \uFFFD");
}

TEST(Markdown, IsTextAndNothingElse) {
  EXPECT_EQ(for_markdown("a | b"), "a \\| b");
  EXPECT_EQ(for_markdown("<img src=x>"), "\\<img src=x\\>");
  EXPECT_EQ(for_markdown("`rm` [x](javascript:y) &lt;"), "\\`rm\\` \\[x\\](javascript:y) \\&lt;");
  EXPECT_EQ(for_markdown("two\nlines"), "two\\\\x0alines");
  EXPECT_EQ(for_markdown("luigi_v1_fused"), "luigi_v1_fused");
}

TEST(InQuotes, IsShortAndWhole) {
  EXPECT_EQ(in_quotes("a\x1b"), "'a\\x1b'");
  const std::string quoted = in_quotes(std::string(59, 'a') + "µµ");
  EXPECT_EQ(quoted, "'" + std::string(59, 'a') + "…'");
}

TEST(Text, WholeNumbers) {
  const std::vector<std::pair<std::string, std::int64_t>> whole = {
      {"0", 0},
      {"-0", 0},
      {"7", 7},
      {"+7", 7},
      {"-7", -7},
      {"007", 7},
      {"1e6", 1000000},
      {"1E6", 1000000},
      {"1e+6", 1000000},
      {"1_000_000", 1000000},
      {"10_000", 10000},
      {"1.5e3", 1500},
      {"1.50", -1},
      {"2.0", 2},
      {"2.", 2},
      {"20e-1", 2},
      {"0e999999", 0},
      {".5e1", 5},
      {"1_0e1_0", -1},
      {"9223372036854775807", std::numeric_limits<std::int64_t>::max()},
      {"1e18", 1000000000000000000}};
  for (const auto& [text, value] : whole) {
    const auto parsed = parse_whole(text).as_int64();
    if (value == -1)
      EXPECT_FALSE(parsed.has_value()) << text;
    else
      EXPECT_EQ(parsed, value) << text;
  }
  using Form = WholeNumber::Form;
  const std::vector<std::pair<std::string, Form>> forms = {
      {"1.5", Form::fraction},
      {"1.5e0", Form::fraction},
      {"1e-1", Form::fraction},
      {"1e-99999", Form::fraction},
      {"18446744073709551615", Form::whole},
      {"18446744073709551616", Form::too_large},
      {"1e20", Form::too_large},
      {"1e99999", Form::too_large},
      {"", Form::not_a_number},
      {"e6", Form::not_a_number},
      {".", Form::not_a_number},
      {"-", Form::not_a_number},
      {"_1", Form::not_a_number},
      {"1_", Form::not_a_number},
      {"1__0", Form::not_a_number},
      {"1 0", Form::not_a_number},
      {"1,000", Form::not_a_number},
      {"0x10", Form::not_a_number},
      {"1e", Form::not_a_number},
      {"1e6x", Form::not_a_number},
      {"nan", Form::not_a_number},
      {std::string(100000, '1'), Form::not_a_number}};
  for (const auto& [text, form] : forms)
    EXPECT_EQ(parse_whole(text).form, form) << text.substr(0, 30);
}

TEST(Text, RealNumbers) {
  EXPECT_EQ(parse_real("0.02"), 0.02);
  EXPECT_EQ(parse_real("-1_000.5e-1"), -100.05);
  EXPECT_EQ(parse_real("+.5"), 0.5);
  EXPECT_EQ(parse_real("1e-400"), 0.0);
  for (const char* text : {"", "x", "nan", "inf", ".inf", "1e400", "0x1p3", "1.2.3", "1 "})
    EXPECT_EQ(parse_real(text), std::nullopt) << text;
}

TEST(Text, Lists) {
  EXPECT_EQ(split_list("a, b ,c"), (Words{"a", "b", "c"}));
  EXPECT_EQ(split_list("a,,"), (Words{"a", "", ""}));
  EXPECT_EQ(split_list("  "), Words{});
}

}  // namespace
}  // namespace lloyd
