#include "experiments/text/differences.h"

#include <gtest/gtest.h>

namespace lloyd {
namespace {

using nlohmann::json;

TEST(Differences, NameThePlaceAndBothValues) {
  EXPECT_EQ(differences({{"a", 1}}, {{"a", 1}}), "");
  EXPECT_EQ(differences({{"measure", {{"warmup", 1}}}}, {{"measure", {{"warmup", 2}}}}),
            "measure/warmup: was 1, is 2");
  EXPECT_EQ(differences({{"a", 1}}, {{"b", "x"}}), "a: was 1, is absent; b: was absent, is \"x\"");
  EXPECT_EQ(differences({{"range", {0, 1}}}, {{"range", nullptr}}), "range: was [0,1], is null");
  EXPECT_EQ(differences({{"title", std::string(500, 'a')}}, {{"title", 1}}),
            "title: was \"" + std::string(79, 'a') + "… (502 B), is 1");
}

TEST(Differences, ShowTheFirstThree) {
  EXPECT_EQ(differences({{"a", 1}, {"b", 1}, {"c", 1}, {"d", 1}}, json::object()),
            "a: was 1, is absent; b: was 1, is absent; c: was 1, is absent; …");
}

TEST(Differences, OfLongListsAreWhatOneOfThemHasAlone) {
  const json was = {{"points", {"p1", "p2", "p3", "p4", "p5"}}};
  EXPECT_EQ(differences(was, {{"points", {"p0", "p1", "p2", "p3", "p5", "p6"}}}),
            "points: 6 instead of 5; gone: \"p4\"; new: 2 of them, as \"p0\"");
  EXPECT_EQ(differences(was, {{"points", {"p5", "p4", "p3", "p2", "p1"}}}),
            "points: the same in another order");
}

}  // namespace
}  // namespace lloyd
