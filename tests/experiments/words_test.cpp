// Tests how a word of a spec finds the names that are meant: suggestions and globs.
#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "experiments/spec/spec.h"
#include "experiments/text/text.h"

namespace lloyd {
namespace {

using Words = std::vector<std::string>;

TEST(Text, Suggestions) {
  const Words axes = {"n",       "k",         "dim",  "threads_per_block", "samples_per_thread",
                      "threads", "processes", "gpus", "precision"};
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"tbp", "threads_per_block"},
      {"tpb", "threads_per_block"},
      {"TPB", "threads_per_block"},
      {"spt", "samples_per_thread"},
      {"N", "n"},
      {"dims", "dim"},
      {"dimensions", "dim"},
      {"d", "dim"},
      {"thread", "threads"},
      {"threads_pre_block", "threads_per_block"},
      {"gpu", "gpus"},
      {"proc", "processes"},
      {"prescision", "precision"},
      {"threads per block", "threads_per_block"},
      {"x", ""},
      {"", ""},
      {"banana", ""},
      {"block", ""}};
  for (const auto& [word, wanted] : cases)
    EXPECT_EQ(suggestion(word, axes), wanted.empty() ? "" : "; did you mean '" + wanted + "'?")
        << word;
  EXPECT_EQ(suggestion("cpu", {"cpu_openmp", "cpu_sequential"}), "");  // two names begin like this
  EXPECT_EQ(suggestion("anything", {}), "");
  EXPECT_EQ(closest("cpu_opnmp", {"cpu_sequential", "cpu_openmp"}), 1);
  EXPECT_EQ(closest("banana", {"cpu_sequential", "cpu_openmp"}), std::nullopt);
}

TEST(Text, Globs) {
  const std::vector<std::tuple<std::string, std::string, bool>> cases = {
      {"luigi_*", "luigi_v1_fused", true},
      {"luigi_*", "luigi_", true},
      {"luigi_*", "cpu_luigi_", false},
      {"*", "", true},
      {"*", "anything", true},
      {"?", "", false},
      {"luigi_v?_fused", "luigi_v1_fused", true},
      {"luigi_v?_fused", "luigi_v12_fused", false},
      {"*_v*_*d", "luigi_v1_fused", true},
      {"*a*b*c", "aabbcc", true},
      {"*a*b*c", "aabbccd", false},
      {"cpu", "cpu_openmp", false},
      {"cpu**mp", "cpu_openmp", true},
      {"", "", true},
      {"", "x", false},
      {"luigi[_]v1", "luigi_v1", false},
      {std::string(40, '*') + "b", std::string(5000, 'a'), false}};
  for (const auto& [pattern, text, matches] : cases)
    EXPECT_EQ(glob_match(pattern, text), matches) << pattern << " " << text;
}

}  // namespace
}  // namespace lloyd
