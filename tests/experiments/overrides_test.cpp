// Tests the options of the command line that override a key of the spec.
#include <gtest/gtest.h>

#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "tests/experiments/spec_errors.h"

namespace lloyd::testing {
namespace {

struct OverrideCase {
  Overrides overrides;
  Words errors;  // empty: the spec is correct
};
void PrintTo(const OverrideCase& c, std::ostream* out) {
  *out << ::testing::PrintToString(c.errors);
}

Overrides set(Words options) {
  Overrides overrides;
  overrides.set = std::move(options);
  return overrides;
}
Overrides only(Words globs) {
  Overrides overrides;
  overrides.only = std::move(globs);
  return overrides;
}
Overrides filter(std::string text) {
  Overrides overrides;
  overrides.filter = std::move(text);
  return overrides;
}
Overrides profile(std::string list) {
  Overrides overrides;
  overrides.profile = std::move(list);
  return overrides;
}
template <typename T>
Overrides with(std::optional<T> Overrides::*member, T value) {
  Overrides overrides;
  overrides.*member = value;
  return overrides;
}

class OverrideErrors : public ::testing::TestWithParam<OverrideCase> {};
TEST_P(OverrideErrors, AreTold) {
  EXPECT_EQ(errors_of(spec_with(8, ""), GetParam().overrides), GetParam().errors);
}

INSTANTIATE_TEST_SUITE_P(
    Options, OverrideErrors,
    ::testing::Values(
        OverrideCase{set({"n"}), {"--set: 'n' must be axis=value,value"}},
        OverrideCase{set({"tbp=32"}),
                     {"--set: unknown axis 'tbp'; did you mean 'threads_per_block'?"}},
        OverrideCase{set({"colour=1"}),
                     {std::string("--set: unknown axis 'colour'; choose from ") + kAxes}},
        OverrideCase{set({"n="}), {"--set: axis 'n' has no values; list at least one"}},
        OverrideCase{set({"n=1e3,,5"}), {"--set: n must be a whole number, not ''"}},
        OverrideCase{set({"n=five", "dim=0"}),
                     {"--set: n must be a whole number, not 'five'",
                      "--set: dim must be at least 1, not 0"}},
        OverrideCase{set({"n=10,1e1"}), {"--set: n = 10 is listed twice"}},
        OverrideCase{set({"n=10", "n=20"}),
                     {"--set: axis 'n' is set twice; write --set n=value,value once"}},
        OverrideCase{set({"precision=fp46"}),
                     {"--set: unknown precision 'fp46'; did you mean 'fp64'?"}},
        OverrideCase{set({"n=3"}),
                     {"--set: k = 5 exceeds n = 3: a cluster needs a point of its own; leave the "
                      "pair out with exclude: "
                      "[{k: 5, n: \"< 5\"}], or pair the values with zip: [[n, k]]"}},
        OverrideCase{
            set({"dim=2147483647", "n=4e9"}),
            {"--set: n = 4,000,000,000 points of dim = 2,147,483,647 overflow: 4 bytes per "
             "value make more than 2^63 bytes"}},
        OverrideCase{only({"luigi_v2*"}),
                     {"--only: no version of this spec matches 'luigi_v2*'; it has cpu_sequential, "
                      "luigi_v1_fused"}},
        OverrideCase{only({"luigi_v1_fuse"}),
                     {"--only: no version of this spec matches 'luigi_v1_fuse'; did you mean "
                      "'luigi_v1_fused'?"}},
        OverrideCase{only({"cpu_sequential", "zzz"}),
                     {"--only: no version of this spec matches 'zzz'; it has cpu_sequential, "
                      "luigi_v1_fused"}},
        OverrideCase{only({""}),
                     {"--only: names no version; this spec has cpu_sequential, luigi_v1_fused"}},
        OverrideCase{filter("k:7"),
                     {"--filter: 'k:7' matches none of the 2 points; one is "
                      "cpu_sequential/n:1000/k:5/dim:2/precision:fp32"}},
        OverrideCase{with(&Overrides::repetitions, 0),
                     {"--repetitions: must be at least 1, not 0"}},
        OverrideCase{with(&Overrides::warmup, -1), {"--warmup: must be at least 0, not -1"}},
        OverrideCase{with(&Overrides::timeout, 0.0),
                     {"--timeout: must be a finite number above 0, not 0"}},
        OverrideCase{with(&Overrides::timeout, std::numeric_limits<double>::quiet_NaN()),
                     {"--timeout: must be a finite number above 0, not nan"}},
        OverrideCase{with(&Overrides::timeout, std::numeric_limits<double>::infinity()),
                     {"--timeout: must be a finite number above 0, not inf"}},
        OverrideCase{profile("counter"),
                     {"--profile: unknown kind 'counter'; did you mean 'counters'?"}},
        OverrideCase{profile("none,nvtx"),
                     {"--profile: 'none' cannot be combined with anything else"}},
        OverrideCase{
            profile(""),
            {"--profile: names nothing; choose from none, nvtx, counters, timeline, cpu, all"}}));

TEST(Overrides, AFilterThatIsNoRegularExpression) {
  const Words errors = errors_of(spec_with(8, ""), filter("k:("));
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_EQ(errors.front().rfind("--filter: 'k:(' is not a regular expression: ", 0), 0u)
      << errors.front();
}

TEST(Overrides, AFilterOfAnyDepthAnswersAtOnce) {
  // With a backtracking matcher each of these crashed or never ended.
  for (const std::string& hostile :
       {std::string("((((c|p|u|_)+)+)+)+$"), std::string("(.*)*(.*)*(.*)*x$"),
        std::string(900, '(') + "c" + std::string(900, ')'), std::string(9000, '('),
        std::string("((((((.{100}){100}){100}){100}){100}){100})"), std::string(1 << 20, 'a')})
    EXPECT_LE(errors_of(spec_with(8, ""), filter(hostile)).size(), 1u);
}

TEST(Overrides, TheirErrorsFollowThoseOfTheFile) {
  EXPECT_EQ(errors_of(spec_with(8, "figurs: []"), set({"n=x"})),
            (Words{"s.yaml:8:1: unknown key 'figurs'; did you mean 'figures'?",
                   "--set: n must be a whole number, not 'x'"}));
}

TEST(Overrides, SetReplacesAnAxisOrAddsIt) {
  EXPECT_EQ(
      ids_of(spec_with(8, ""), set({"n=1e4, 2_000", "threads_per_block=32", "precision=fp64"})),
      (Words{"cpu_sequential/n:10000/k:5/dim:2/precision:fp64",
             "cpu_sequential/n:2000/k:5/dim:2/precision:fp64",
             "luigi_v1_fused/n:10000/k:5/dim:2/threads_per_block:32/precision:fp64",
             "luigi_v1_fused/n:2000/k:5/dim:2/threads_per_block:32/precision:fp64"}));
}

TEST(Overrides, SetMendsAnAxisThatIsWrongNowhereElse) {
  // The whole file is still read, so an error in it remains an error.
  EXPECT_EQ(errors_of(spec_with(4, "  n: [x]"), set({"n=1000"})),
            Words{"s.yaml:4:7: n must be a whole number, not 'x'"});
  // --set may supply an axis that the file leaves out.
  EXPECT_EQ(errors_of(spec_with(4, "  #"), set({"n=1000"})), Words{});
}

TEST(Overrides, SetOfAZippedAxisKeepsTheLengths) {
  const std::string text =
      "name: t\nversions: [cpu_sequential]\naxes: {n: [10, 20], k: [1, 2]}\nzip: [[n, k]]\ndata: "
      "{generator: uniform}\n";
  EXPECT_EQ(ids_of(text, set({"n=30,40"})),
            (Words{"cpu_sequential/n:30/k:1/dim:2/precision:fp32",
                   "cpu_sequential/n:40/k:2/dim:2/precision:fp32"}));
  EXPECT_EQ(errors_of(text, set({"n=30,40,50"})),
            Words{"--set: zipped axes need the same number of values, or one: n has 3, k has 2"});
}

TEST(Overrides, OnlyChoosesVersionsInTheSpecsOrderAndMayLeaveOutTheBaseline) {
  const std::string text = spec_with(8, "baseline: cpu_sequential");
  EXPECT_EQ(ids_of(text, only({"luigi_*"})),
            Words{"luigi_v1_fused/n:1000/k:5/dim:2/threads_per_block:256/precision:fp32"});
  EXPECT_EQ(ids_of(text, only({"luigi_*,cpu_*"})), ids_of(text));
  EXPECT_EQ(ids_of(text, only({"luigi_*", "*sequential"})), ids_of(text));
  EXPECT_EQ(load_text(text, only({"luigi_*"})).baseline, "cpu_sequential");
  EXPECT_EQ(errors_of(spec_with(8, "exclude: [{version: \"luigi_*\"}]"), only({"luigi_*"})),
            Words{"--only: nothing left to run: exclude leaves out every point of these versions"});
}

TEST(Overrides, FilterChoosesPointsByASearchInTheirIds) {
  const std::string text = spec_with(5, "  k: [5, 50]");
  EXPECT_EQ(ids_of(text, filter("sequential.*k:5/")),
            Words{"cpu_sequential/n:1000/k:5/dim:2/precision:fp32"});
  EXPECT_EQ(ids_of(text, filter("k:50?/")).size(), 4u);
}

TEST(Overrides, OfTheMeasurement) {
  const std::string text = spec_with(8, "measure: {repetitions: 3, warmup: 2, timeout: 5}");
  EXPECT_EQ(load_text(text).measure.repetitions, 3);
  EXPECT_EQ(load_text(text, with(&Overrides::repetitions, 4)).measure.repetitions, 4);
  EXPECT_EQ(load_text(text, with(&Overrides::warmup, 0)).measure.warmup, 0);
  EXPECT_EQ(load_text(text, with(&Overrides::timeout, 0.5)).measure.timeout, 0.5);
  EXPECT_FALSE(load_text(text, with(&Overrides::shuffle, false)).shuffle);
  EXPECT_TRUE(load_text(text, with(&Overrides::shuffle, true)).shuffle);
}

TEST(Overrides, OneSeedForDataCentroidsAndOrder) {
  const Spec spec =
      load_text(spec_with(8, "solve: {seed: 5}"), with(&Overrides::seed, std::uint64_t{77}));
  EXPECT_EQ(spec.data[0].source.seed, 77u);
  EXPECT_EQ(spec.init.seed, 77u);
  EXPECT_EQ(spec.shuffle_seed, 77u);
  EXPECT_EQ(spec.resolved().at("solve").at("seed"), 77);
}

struct ProfileCase {
  const char* spec;  // line 8
  const char* list;
  bool nvtx;
  Words counters;
  bool timeline;
  Words cpu;
};
void PrintTo(const ProfileCase& c, std::ostream* out) { *out << c.spec << " --profile " << c.list; }
class ProfileOverride : public ::testing::TestWithParam<ProfileCase> {};
TEST_P(ProfileOverride, IsTheWholeProfile) {
  const Profile made = load_text(spec_with(8, GetParam().spec), profile(GetParam().list)).profile;
  EXPECT_EQ(made.nvtx, GetParam().nvtx);
  EXPECT_EQ(made.counters, GetParam().counters);
  EXPECT_EQ(made.timeline, GetParam().timeline);
  EXPECT_EQ(made.cpu, GetParam().cpu);
}

const Words kDefaults = {"occupancy", "l1", "l2", "roofline"};
const Words kAllCpu = {"l1d_misses", "llc_misses", "instructions", "cycles"};
const char* const kProfiled = "profile: {counters: [dram], timeline: true, cpu: [cycles]}";

INSTANTIATE_TEST_SUITE_P(
    Lists, ProfileOverride,
    ::testing::Values(ProfileCase{kProfiled, "none", false, {}, false, {}},
                      ProfileCase{kProfiled, "nvtx", true, {}, false, {}},
                      ProfileCase{kProfiled, "counters", false, {"dram"}, false, {}},
                      ProfileCase{"", "counters", false, kDefaults, false, {}},
                      ProfileCase{"", "timeline", false, {}, true, {}},
                      ProfileCase{kProfiled, "cpu", false, {}, false, {"cycles"}},
                      ProfileCase{"", "cpu", false, {}, false, kAllCpu},
                      ProfileCase{"", "nvtx, cpu", true, {}, false, kAllCpu},
                      ProfileCase{"", "all", true, kDefaults, true, kAllCpu},
                      ProfileCase{kProfiled, "all", true, {"dram"}, true, {"cycles"}}));

}  // namespace
}  // namespace lloyd::testing
