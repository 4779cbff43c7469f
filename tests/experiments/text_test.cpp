#include "experiments/text/text.h"

#include <gtest/gtest.h>

namespace lloyd {
namespace {

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

}  // namespace
}  // namespace lloyd
