// Tests the text and the position of the errors of a whole spec and of its first keys.
#include "tests/experiments/spec_errors.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

namespace lloyd::testing {
namespace {

const std::string kAllVersions =
    "; --list-versions shows them all; one of your own needs a line in kernels/CMakeLists.txt and "
    "a build, or LLOYDBENCH_VERSIONS";

TEST_P(SpecErrors, AreTold) {
  EXPECT_EQ(errors_of(spec_with(GetParam().line, GetParam().text)), GetParam().errors);
}

INSTANTIATE_TEST_SUITE_P(
    Yaml, SpecErrors,
    ::testing::Values(
        ErrorCase{0, "", {"s.yaml:1:1: the spec is empty; it needs name, versions and axes"}},
        ErrorCase{
            0, "# nothing\n", {"s.yaml:1:1: the spec is empty; it needs name, versions and axes"}},
        ErrorCase{0, "- a\n", {"s.yaml:1:1: a spec must be a map (key: value), not a list"}},
        ErrorCase{
            0, "just words\n", {"s.yaml:1:1: a spec must be a map (key: value), not 'just words'"}},
        ErrorCase{2,
                  "versions: [cpu_sequential",
                  {"s.yaml:3:5: not valid YAML: end of sequence flow not found"}},
        ErrorCase{8, "a: b: c", {"s.yaml:8:5: not valid YAML: illegal map value"}},
        ErrorCase{8,
                  "axes:\n\tn: [1e4]",
                  {"s.yaml:9:3: not valid YAML: illegal map value (line 9 is indented with a tab; "
                   "YAML takes spaces)"}},
        ErrorCase{2,
                  "versions: [*_fused]",
                  {"s.yaml:2:12: not valid YAML: the referenced anchor is not defined "
                   "(a glob that begins with * needs quotes: \"*_fused\")"}},
        ErrorCase{
            8,
            "---\nname: u\n",
            {"s.yaml:8:1: the spec ends before this; it is a second document, or out of place"}},
        ErrorCase{
            0,
            "  a: b\n, c\nd: e\n",
            {"s.yaml:2:1: the spec ends before this; it is a second document, or out of place"}},
        ErrorCase{8, "title: x\n...\n", {}},
        ErrorCase{0, std::string(50000, '['), {"s.yaml:1:1: not valid YAML: nested too deeply"}},
        ErrorCase{8, "[a]: 1", {"s.yaml:8:1: a key must be a word, not a list"}}));

INSTANTIATE_TEST_SUITE_P(
    Keys, SpecErrors,
    ::testing::Values(
        ErrorCase{
            8, "n: 100", {"s.yaml:8:1: unknown key 'n'; it is an axis and belongs under axes"}},
        ErrorCase{8,
                  "tolerance: 1\nseed: 3",
                  {"s.yaml:8:1: unknown key 'tolerance'; it belongs under solve",
                   "s.yaml:9:1: unknown key 'seed'; it belongs under data or solve"}},
        ErrorCase{8,
                  "distance: cosine\nsolve: {distance: cosine}",
                  {"s.yaml:9:9: distance is given at the top of the spec, too; keep one"}},
        ErrorCase{8,
                  "distance: cosin",
                  {"s.yaml:8:11: unknown distance 'cosin'; did you mean 'cosine'?"}},
        ErrorCase{8,
                  "measure: {iterations: 3}",
                  {"s.yaml:8:11: unknown key 'iterations' in measure; it belongs under solve"}},
        ErrorCase{8,
                  "solve: {figures: [tpb]}",
                  {"s.yaml:8:9: unknown key 'figures' in solve; it is a key of the spec itself and "
                   "belongs to no section"}},
        ErrorCase{
            8, "figurs: [speedup]", {"s.yaml:8:1: unknown key 'figurs'; did you mean 'figures'?"}},
        ErrorCase{8,
                  "colour: blue",
                  {"s.yaml:8:1: unknown key 'colour'; the keys are name, title, versions, "
                   "baseline, axes, zip, "
                   "exclude, data, distance, solve, measure, profile, figures"}},
        ErrorCase{8,
                  "<<: {title: x}",
                  {"s.yaml:8:1: unknown key '<<'; the keys are name, title, versions, baseline, "
                   "axes, zip, exclude, "
                   "data, distance, solve, measure, profile, figures"}},
        ErrorCase{5,
                  "  k: [5]\n  tbp: [32]",
                  {"s.yaml:6:3: unknown axis 'tbp'; did you mean 'threads_per_block'?"}},
        ErrorCase{5,
                  "  k: [5]\n  colour: [1]",
                  {std::string("s.yaml:6:3: unknown axis 'colour'; the axes are ") + kAxes}},
        ErrorCase{8,
                  "solve: {iteratons: 3}",
                  {"s.yaml:8:9: unknown key 'iteratons' in solve; did you mean 'iterations'?"}},
        ErrorCase{8,
                  "measure: {warm: 1}",
                  {"s.yaml:8:11: unknown key 'warm' in measure; did you mean 'warmup'?"}},
        ErrorCase{8,
                  "profile: {gpu: 1}",
                  {"s.yaml:8:11: unknown key 'gpu' in profile; did you mean 'cpu'?"}},
        ErrorCase{8,
                  "exclude: [{tpb: 32}]",
                  {"s.yaml:8:12: unknown key 'tpb' in exclude; did you mean 'threads_per_block'?"}},
        ErrorCase{7,
                  "data: {generator: uniform, ranges: [0, 1]}",
                  {"s.yaml:7:28: unknown key 'ranges' in data; did you mean 'range'?"}},
        ErrorCase{8, "name: u", {"s.yaml:8:1: 'name' is given twice; the first is in line 1"}},
        ErrorCase{6, "  n: [7]", {"s.yaml:6:3: 'n' is given twice; the first is in line 4"}},
        ErrorCase{8,
                  "solve: {seed: 1,\n  seed: 2}",
                  {"s.yaml:9:3: 'seed' is given twice; the first is in line 8"}},
        ErrorCase{0,
                  "title: nothing else\n",
                  {"s.yaml:1:1: 'name' is missing; a spec needs name, versions and axes",
                   "s.yaml:1:1: 'versions' is missing; a spec needs name, versions and axes",
                   "s.yaml:1:1: 'axes' is missing; a spec needs name, versions and axes"}}));

INSTANTIATE_TEST_SUITE_P(
    Identity, SpecErrors,
    ::testing::Values(
        ErrorCase{1,
                  "name: K 1000",
                  {"s.yaml:1:7: name 'K 1000' must be of lower-case letters, digits, '_' and '-' "
                   "(it names the folder of the results)"}},
        ErrorCase{1,
                  "name: ''",
                  {"s.yaml:1:7: name '' must be of lower-case letters, digits, '_' and '-' "
                   "(it names the folder of the results)"}},
        ErrorCase{1, "name: [t]", {"s.yaml:1:7: name must be text, not a list"}},
        ErrorCase{1, "name:", {"s.yaml:1:1: name must be text, not nothing"}},
        ErrorCase{8,
                  "title: \"caf\xe9\"",
                  {"s.yaml:8:12: the byte 0xE9 is not UTF-8; save the file as UTF-8"}},
        ErrorCase{
            8,
            "title: \"a\\_b\"",
            {"s.yaml:8:8: not valid YAML: an escape here does not give UTF-8; write the character "
             "instead of \\N or \\_"}},
        ErrorCase{8,
                  "title: \"\\e[2J\"",
                  {"s.yaml:8:8: title must be one line without control characters, not "
                   "'\\x1b[2J'"}},
        ErrorCase{8, "title: >\n  folded over\n  two lines", {}},
        ErrorCase{8, "title: {a: b}", {"s.yaml:8:8: title must be text, not a map"}},
        ErrorCase{2, "versions: cpu_sequential", {}},
        ErrorCase{2,
                  "versions: cpu_sequential, cpu_openmp",
                  {"s.yaml:2:11: versions must be one value or a list such as [a, b], not "
                   "'cpu_sequential, cpu_openmp'"}},
        ErrorCase{2,
                  "versions: {cpu: sequential}",
                  {"s.yaml:2:11: versions must be one value or a list, not a map"}},
        ErrorCase{2, "versions: []", {"s.yaml:2:11: versions lists none; name at least one"}},
        ErrorCase{2,
                  "versions: [[cpu_sequential]]",
                  {"s.yaml:2:12: versions must list single values, not a list"}},
        ErrorCase{2,
                  "versions: [cpu_sequental]",
                  {"s.yaml:2:12: unknown version 'cpu_sequental'; did you mean 'cpu_sequential'?"}},
        ErrorCase{2,
                  "versions: [cpu_sequential, zzz]",
                  {"s.yaml:2:28: unknown version 'zzz'" + kAllVersions}},
        ErrorCase{2,
                  "versions: [\"luigy_*\"]",
                  {"s.yaml:2:12: no version matches 'luigy_*'; did you mean 'luigi_*'?"}},
        ErrorCase{
            2, "versions: [\"zzz*\"]", {"s.yaml:2:12: no version matches 'zzz*'" + kAllVersions}},
        ErrorCase{
            8,
            "baseline: luigi_v2_split",
            {"s.yaml:8:11: baseline 'luigi_v2_split' is not among the versions; add it to them"}},
        ErrorCase{
            8,
            "baseline: cpu_seq",
            {"s.yaml:8:11: baseline: unknown version 'cpu_seq'; did you mean 'cpu_sequential'?"}},
        ErrorCase{8, "baseline: best:cpu", {}},
        ErrorCase{8,
                  "baseline: \"cpu_*\"",
                  {"s.yaml:8:11: baseline 'cpu_*' is a pattern; name one version, or best:cpu"}},
        ErrorCase{8,
                  "baseline: best:gpu",
                  {"s.yaml:8:11: baseline: unknown 'best:gpu'; did you mean 'best:cpu'?"}},
        ErrorCase{8,
                  "baseline: best:cpu\nmeasure: {verify: false}",
                  {"s.yaml:9:19: verify: false leaves no version that baseline 'best:cpu' may "
                   "take"}},
        ErrorCase{0,
                  "name: t\nversions: [luigi_v1_fused]\nbaseline: best:cpu\naxes: {n: 9, k: 2}\n",
                  {"s.yaml:3:11: baseline 'best:cpu' needs a version on the CPU among the "
                   "versions"}},
        ErrorCase{
            8, "baseline: [cpu_sequential]", {"s.yaml:8:11: baseline must be text, not a list"}},
        ErrorCase{8, "figures: speedup", {}},
        ErrorCase{
            8, "figures: speed", {"s.yaml:8:10: unknown figure 'speed'; did you mean 'speedup'?"}},
        ErrorCase{8,
                  "figures: [speedups]",
                  {"s.yaml:8:11: unknown figure 'speedups'; did you mean 'speedup'?"}},
        ErrorCase{
            8,
            "figures: [histogram]",
            {"s.yaml:8:11: unknown figure 'histogram'; choose from speedup, ladder, phases, "
             "roofline, cpu_roofline, occupancy, floor, tpb, dims, scaling, noise, convergence, "
             "clustering, fastest"}},
        ErrorCase{8,
                  "figures: speedup, tpb",
                  {"s.yaml:8:10: figures must be one value or a list "
                   "such as [a, b], not 'speedup, tpb'"}},
        ErrorCase{8, "figures: {speedup: {x: k}}", {}},
        ErrorCase{8, "figures: [noise, {speedup: {x: threads}, tpb: {x: k}}]", {}},
        ErrorCase{
            8,
            "figures: [{speedup: {x: thread}}, {speedup: {x: size}}]",
            {"s.yaml:8:25: unknown axis 'thread'; did you mean 'threads'?",
             "s.yaml:8:49: unknown axis 'size'; the axes are n, k, dim, batch, threads_per_block, "
             "samples_per_thread, threads, processes, gpus, device_memory, precision, data, "
             "data_seed, init, init_seed, host_memory"}},
        ErrorCase{8,
                  "figures: [{speedups: {x: k}}, {roofline: {x: k}}]",
                  {"s.yaml:8:12: unknown figure 'speedups'; did you mean 'speedup'?",
                   "s.yaml:8:32: figure 'roofline' has no axis on x that can be chosen; those that "
                   "have one are dims, fastest, noise, scaling, speedup, tpb"}},
        ErrorCase{8,
                  "figures: [{tpb: {y: k}}, {tpb: k}, {tpb: {x: [k]}}, [tpb]]",
                  {"s.yaml:8:18: unknown key 'y' in figure tpb; the keys are x",
                   "s.yaml:8:32: figure tpb must be a map (key: value), not 'k'",
                   "s.yaml:8:46: figure tpb needs one axis, such as {x: k}; the axes are n, k, "
                   "dim, batch, threads_per_block, samples_per_thread, threads, processes, gpus, "
                   "device_memory, precision, data, data_seed, init, init_seed, host_memory",
                   "s.yaml:8:53: figures must list names, not a list; an axis is chosen by "
                   "{speedup: {x: k}}"}}));

TEST(Spec, TellsAllErrorsInTheOrderOfTheFile) {
  EXPECT_EQ(errors_of(R"(name: No
colour: blue
versions: [cpu_sequental]
axes:
  k: [0, 3]
  n: [two]
solve: {iterations: 0}
data: {generator: unifrm}
)"),
            (Words{"s.yaml:1:7: name 'No' must be of lower-case letters, digits, '_' and '-' (it "
                   "names the folder of the "
                   "results)",
                   "s.yaml:2:1: unknown key 'colour'; the keys are name, title, versions, "
                   "baseline, axes, zip, exclude, "
                   "data, distance, solve, measure, profile, figures",
                   "s.yaml:3:12: unknown version 'cpu_sequental'; did you mean 'cpu_sequential'?",
                   "s.yaml:5:7: k must be at least 1, not 0",
                   "s.yaml:6:7: n must be a whole number, not 'two'",
                   "s.yaml:7:21: solve.iterations must be at least 1, not 0",
                   "s.yaml:8:19: unknown generator 'unifrm'; did you mean 'uniform'?"}));
}

TEST(Spec, OneFaultDoesNotHideAnotherInTheAxes) {
  EXPECT_EQ(errors_of(spec_with(5, "  k: [5, 2000]\n  threads: [none]")),
            (Words{"s.yaml:5:10: k = 2000 exceeds n = 1000: a cluster needs a point of its own; "
                   "leave the pair out with "
                   "exclude: [{k: 2000, n: \"< 2000\"}], or pair the values with zip: [[n, k]]",
                   "s.yaml:6:13: threads must be a whole number, not 'none'"}));
}

TEST(Spec, AnErrorIsToldUnderTheNameThatTheUserTyped) {
  const Folder folder;
  folder.write("deep/s.yaml", spec_with(8, "figurs: []"));
  try {
    load_spec("deep/s.yaml", {}, "sweeps/s.yaml");
    FAIL() << "no error";
  } catch (const SpecError& error) {
    EXPECT_STREQ(error.what(), "sweeps/s.yaml:8:1: unknown key 'figurs'; did you mean 'figures'?");
  }
}

TEST(Spec, AnErrorsTextIsOneErrorALine) {
  const SpecError error({"a:1:1: x", "a:2:1: y"});
  EXPECT_STREQ(error.what(), "a:1:1: x\na:2:1: y");
}

TEST(Spec, ALongOrBinaryValueDoesNotFillTheScreen) {
  EXPECT_EQ(errors_of(spec_with(4, "  n: [" + std::string(5000, 'x') + "]")),
            Words{"s.yaml:4:7: n must be a whole number, not '" + std::string(60, 'x') + "…'"});
  EXPECT_EQ(errors_of(spec_with(4, "  n: [\"a\\tb\\e\"]")),
            Words{"s.yaml:4:7: n must be a whole number, not 'a\\x09b\\x1b'"});
}

TEST(Spec, FilesThatCannotBeRead) {
  const Folder folder;
  folder.write("folder/x", "");
  const auto message = [](const char* path) -> std::string {
    try {
      load_spec(path, {});
    } catch (const SpecError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(message("folder"), "folder: is a folder, not a spec");
  EXPECT_EQ(message("missing.yaml"), "missing.yaml: cannot be read: No such file or directory");
}

TEST(SpecErrors, OfWhatIsTooLong) {
  EXPECT_EQ(
      errors_of(std::string(10'000'000, 'a')),
      Words{"s.yaml: is longer than 1,000,000 bytes, which no spec needs; is it a data file?"});
  const std::string sixty(60, 'a');
  EXPECT_EQ(errors_of(spec_with(1, "name: " + sixty + "aaaa")), Words{});
  EXPECT_EQ(errors_of(spec_with(1, "name: " + std::string(900'000, 'a'))),
            Words{"s.yaml:1:7: name '" + sixty +
                  "…' has 900,000 characters; at most 64 (it names the folder of the results)"});
  EXPECT_EQ(errors_of(spec_with(8, "title: " + std::string(201, 'a'))),
            Words{"s.yaml:8:8: title '" + sixty + "…' has 201 bytes; at most 200"});
  EXPECT_EQ(errors_of(spec_with(2, "versions: [" + std::string(900'000, 'a') + "]")),
            Words{"s.yaml:2:12: unknown version '" + sixty + "…'" + kAllVersions});
}

TEST(SpecErrors, OfNumbersThatAreNotFinite) {
  for (const char* value : {".inf", "-.inf", ".nan", "inf", "nan", "1e400"}) {
    for (const std::string key : {"timeout", "max_noise", "max_seconds"})
      EXPECT_EQ(errors_of(spec_with(8, fmt::format("measure: {{{}: {}}}", key, value))),
                Words{fmt::format("s.yaml:8:{}: measure.{} must be a number above 0, not '{}'",
                                  13 + key.size(), key, value)});
    EXPECT_EQ(errors_of(spec_with(8, fmt::format("solve: {{tolerance: {}}}", value))).size(), 1u);
    EXPECT_EQ(errors_of(spec_with(4, fmt::format("  n: [{}]", value))).size(), 1u);
  }
}

}  // namespace
}  // namespace lloyd::testing
