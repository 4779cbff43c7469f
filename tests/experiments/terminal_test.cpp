#include "experiments/text/terminal.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "experiments/text/table.h"

namespace lloyd {
namespace {

using Lines = std::vector<std::string>;

TEST(Wrapped, BreaksAtBlanksAndLongWordsBehindMarks) {
  EXPECT_EQ(wrapped("one two three", std::nullopt), Lines{"one two three"});
  EXPECT_EQ(wrapped("one two three", 7), (Lines{"one two", "three"}));
  EXPECT_EQ(wrapped("one  two", 3), (Lines{"one", "two"}));
  EXPECT_EQ(wrapped("threads_per_block", 12), (Lines{"threads_per_", "block"}));
  EXPECT_EQ(wrapped("a/b/c", 2), (Lines{"a/", "b/", "c"}));
  EXPECT_EQ(wrapped("abcdef", 4), (Lines{"abcd", "ef"}));
  EXPECT_EQ(wrapped("µµµµ", 3), (Lines{"µµµ", "µ"}));
  EXPECT_EQ(wrapped("", 5), Lines{""});
  EXPECT_EQ(wrapped("ab", 0), (Lines{"a", "b"}));
  EXPECT_EQ(wrapped("in 1.5 µs, 2 ms 3 s", 9), (Lines{"in", "1.5 µs,", "2 ms 3 s"}));
  EXPECT_EQ(wrapped("of 12 samples", 5), (Lines{"of 12", "sampl", "es"}));
}

TEST(Cut, KeepsTheWidth) {
  EXPECT_EQ(cut("abc", 3), "abc");
  EXPECT_EQ(cut("abcd", 3), "ab…");
  EXPECT_EQ(cut("µµµµ", 3), "µµ…");
  EXPECT_EQ(cut("abc", 0), "");
}

TEST(Hanging, GivesALongNameALineOfItsOwn) {
  EXPECT_EQ(hanging("ab", 4, "one two", 8), "ab  one\n    two\n");
  EXPECT_EQ(hanging("abcd", 4, "one", 8), "abcd\n    one\n");
  EXPECT_EQ(hanging("ab", 4, "one two", std::nullopt), "ab  one two\n");
}

Table sample() {
  Table table({{"version"}, {"n", true}, {"reason"}});
  table.add({{"luigi_v3_shared_centroids"}, {"1000"}, {"needs more shared memory than there is"}});
  table.add({{"cpu"}, {"10"}, {"", Colour::bad}}, "noisy: 6 of 6 samples");
  return table;
}

TEST(Table, HasALineForEachRowWithoutALimit) {
  EXPECT_EQ(sample().text({}),
            "version                       n  reason\n"
            "luigi_v3_shared_centroids  1000  needs more shared memory than there is\n"
            "cpu                          10  noisy: 6 of 6 samples\n");
}

/// The text without blanks and line ends, in alphabetical order.
std::string letters(std::string text) {
  std::erase_if(text, [](char c) { return c == ' ' || c == '\n'; });
  std::ranges::sort(text);
  return text;
}

TEST(Table, KeepsToTheWidthAndLosesNothing) {
  for (const std::size_t width : {20, 30, 40, 60, 80, 140}) {
    const std::string text = sample().text({width, false, false});
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      EXPECT_LE(columns(line), width) << text;
      EXPECT_FALSE(line.ends_with(' ')) << text;
    }
    EXPECT_EQ(letters(text), letters(sample().text({}))) << text;
    // The widest columns are broken first, so the number stays whole.
    EXPECT_NE(text.find(" 1000"), std::string::npos) << text;
  }
  EXPECT_EQ(sample().text({40, false, false}),
            "version              n  reason\n"
            "luigi_v3_shared_  1000  needs more\n"
            "centroids               shared memory\n"
            "                        than there is\n"
            "cpu                 10\n"
            "    noisy: 6 of 6 samples\n");
}

TEST(Table, LeavesOutColumnsWithoutText) {
  Table table({{"a"}, {"nothing"}, {"b"}});
  EXPECT_EQ(table.text({}), "a  nothing  b\n");
  table.add({{"x"}, {""}, {"y"}});
  EXPECT_EQ(table.text({}), "a  b\nx  y\n");
  table.add({{""}, {"z"}, {""}});
  EXPECT_EQ(table.text({}), "a  nothing  b\nx           y\n   z\n");
}

TEST(Table, ColoursTheWordsAndNotTheBlanks) {
  Table table({{"a"}, {"status"}, {"b"}});
  table.add({{"x"}, {"ok", Colour::good}, {"y"}});
  EXPECT_EQ(table.text({80, true, true}),
            "\033[1ma\033[0m  \033[1mstatus\033[0m  \033[1mb\033[0m\n"
            "x  \033[32mok\033[0m      y\n");
}

TEST(ColourOf, SaysWhatCounts) {
  EXPECT_EQ(colour_of("ok"), Colour::good);
  EXPECT_EQ(colour_of("unsupported"), Colour::warning);
  EXPECT_EQ(colour_of("warn"), Colour::warning);
  for (const char* bad : {"failed", "incorrect", "imprecise", "timeout", "missing"})
    EXPECT_EQ(colour_of(bad), Colour::bad) << bad;
}

}  // namespace
}  // namespace lloyd
