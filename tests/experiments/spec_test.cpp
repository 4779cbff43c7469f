// Tests the spec: the text and the position of every error, every option that overrides a key, and
// every form of a number.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <limits>
#include <map>
#include <set>

#include "experiments/measure/external.h"
#include "experiments/text/text.h"
#include "kernels/core/version.h"
#include "tests/experiments/spec_text.h"

namespace lloyd::testing {
namespace {

using Words = std::vector<std::string>;

struct ErrorCase {
  // The line of the good spec to replace. 0: the whole spec.
  int line;
  std::string text;  // the replacement
  Words errors;
};
void PrintTo(const ErrorCase& c, std::ostream* out) { *out << "line " << c.line << ": " << c.text; }

class SpecErrors : public ::testing::TestWithParam<ErrorCase> {};

TEST_P(SpecErrors, AreTold) {
  EXPECT_EQ(errors_of(spec_with(GetParam().line, GetParam().text)), GetParam().errors);
}

TEST(Spec, TheGoodSpecIsGood) { EXPECT_EQ(errors_of(spec_with(8, "")), Words{}); }

const char* const kAxes =
    "n, k, dim, threads_per_block, samples_per_thread, threads, processes, gpus, precision";

std::string generator_names() {
  Words names;
  for (const auto& generator : data::generators()) names.push_back(generator.name);
  return join(names);
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
            8, "figurs: [speedup]", {"s.yaml:8:1: unknown key 'figurs'; did you mean 'figures'?"}},
        ErrorCase{8,
                  "colour: blue",
                  {"s.yaml:8:1: unknown key 'colour'; the keys are name, title, versions, "
                   "baseline, axes, zip, "
                   "exclude, data, solve, measure, profile, figures"}},
        ErrorCase{8,
                  "<<: {title: x}",
                  {"s.yaml:8:1: unknown key '<<'; the keys are name, title, versions, baseline, "
                   "axes, zip, exclude, "
                   "data, solve, measure, profile, figures"}},
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
        ErrorCase{8,
                  "title: \"a\\_b\"",
                  {"s.yaml:8:8: not valid YAML: an escape here gives no UTF-8; write the character "
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
                  {"s.yaml:2:28: unknown version 'zzz'; --list-versions shows them all"}},
        ErrorCase{2,
                  "versions: [\"luigy_*\"]",
                  {"s.yaml:2:12: no version matches 'luigy_*'; did you mean 'luigi_*'?"}},
        ErrorCase{2,
                  "versions: [\"zzz*\"]",
                  {"s.yaml:2:12: no version matches 'zzz*'; --list-versions shows them all"}},
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
        ErrorCase{8,
                  "figures: [histogram]",
                  {"s.yaml:8:11: unknown figure 'histogram'; choose from speedup, ladder, phases, "
                   "roofline, occupancy, floor, tpb, dims, scaling, noise, clustering, fastest"}}));

INSTANTIATE_TEST_SUITE_P(
    Axes, SpecErrors,
    ::testing::Values(
        ErrorCase{0,
                  "name: t\nversions: [cpu_sequential]\naxes: [n, k]\ndata: {generator: uniform}\n",
                  {"s.yaml:3:7: axes must be a map (key: value), not a list"}},
        ErrorCase{0,
                  "name: t\nversions: [cpu_sequential]\naxes:\ndata: {generator: uniform}\n",
                  {"s.yaml:3:1: axes must be a map (key: value), not nothing"}},
        ErrorCase{
            0,
            "name: t\nversions: [cpu_sequential]\naxes: {dim: [2]}\ndata: {generator: uniform}\n",
            {"s.yaml:3:1: axes need 'n', the numbers of points, as in n: [1e4, 1e5]",
             "s.yaml:3:1: axes need 'k', the numbers of clusters, as in k: [5, 100]"}},
        ErrorCase{4, "  n: 1e3", {}},
        ErrorCase{4,
                  "  n: 10,000",
                  {"s.yaml:4:6: n must be one value or a list such as [a, b], not '10,000'"}},
        ErrorCase{4, "  n: many", {"s.yaml:4:6: n must be a whole number, not 'many'"}},
        ErrorCase{4, "  n:", {"s.yaml:4:3: n must be one value or a list, not nothing"}},
        ErrorCase{4, "  n: {from: 1}", {"s.yaml:4:6: n must be one value or a list, not a map"}},
        ErrorCase{4, "  n: []", {"s.yaml:4:6: axis 'n' has no values; list at least one"}},
        ErrorCase{4, "  n: [[1000]]", {"s.yaml:4:7: n must list single values, not a list"}},
        ErrorCase{4, "  n: [1000, many]", {"s.yaml:4:13: n must be a whole number, not 'many'"}},
        ErrorCase{6, "  dim: [~]", {"s.yaml:6:9: dim must list single values, not nothing"}},
        ErrorCase{4, "  n: [1.5e0]", {"s.yaml:4:7: n must be a whole number, not 1.5e0"}},
        ErrorCase{4, "  n: [0x10]", {"s.yaml:4:7: n must be a whole number, not '0x10'"}},
        ErrorCase{4, "  n: [1_000_]", {"s.yaml:4:7: n must be a whole number, not '1_000_'"}},
        ErrorCase{4, "  n: [.inf]", {"s.yaml:4:7: n must be a whole number, not '.inf'"}},
        ErrorCase{4,
                  "  n: [1e19]",
                  {"s.yaml:4:7: n must be at most 9,223,372,036,854,775,807, not 1e19"}},
        ErrorCase{4,
                  "  n: [1e999999999]",
                  {"s.yaml:4:7: n must be at most 9,223,372,036,854,775,807, not 1e999999999"}},
        ErrorCase{4, "  n: [0]", {"s.yaml:4:7: n must be at least 1, not 0"}},
        ErrorCase{4, "  n: [-1e30]", {"s.yaml:4:7: n must be at least 1, not -1e30"}},
        ErrorCase{5, "  k: [-5]", {"s.yaml:5:7: k must be at least 1, not -5"}},
        ErrorCase{5, "  k: [3e9]", {"s.yaml:5:7: k must be at most 2,147,483,647, not 3e9"}},
        ErrorCase{6, "  dim: [0]", {"s.yaml:6:9: dim must be at least 1, not 0"}},
        ErrorCase{6,
                  "  threads_per_block: [0, 1025]",
                  {"s.yaml:6:23: threads_per_block must be from 1 to 1024, not 0",
                   "s.yaml:6:26: threads_per_block must be from 1 to 1024, not 1025"}},
        ErrorCase{6,
                  "  samples_per_thread: [0]",
                  {"s.yaml:6:24: samples_per_thread must be at least 1, not 0"}},
        ErrorCase{6, "  threads: [0]", {"s.yaml:6:13: threads must be at least 1, not 0"}},
        ErrorCase{6, "  processes: [0]", {"s.yaml:6:15: processes must be at least 1, not 0"}},
        ErrorCase{6, "  gpus: [0]", {"s.yaml:6:10: gpus must be at least 1, not 0"}},
        ErrorCase{6, "  precision: fp32", {}},
        ErrorCase{6,
                  "  precision: [fp23]",
                  {"s.yaml:6:15: unknown precision 'fp23'; did you mean 'fp32'?"}},
        ErrorCase{
            6,
            "  precision: [double]",
            {"s.yaml:6:15: unknown precision 'double'; choose from fp64, fp32, tf32, fp16, bf16"}},
        ErrorCase{4, "  n: [1000, 2000, 1e3]", {"s.yaml:4:19: n = 1000 is listed twice"}},
        ErrorCase{
            6, "  precision: [fp32, fp32]", {"s.yaml:6:21: precision = fp32 is listed twice"}}));

INSTANTIATE_TEST_SUITE_P(
    PlanOfPoints, SpecErrors,
    ::testing::Values(
        ErrorCase{5,
                  "  k: [5, 2000, 3000]",
                  {"s.yaml:5:10: k = 2000 exceeds n = 1000: a cluster needs a point of its own; "
                   "leave the pair out with "
                   "exclude: [{k: 2000, n: \"< 2000\"}], or pair the values with zip: [[n, k]]",
                   "s.yaml:5:16: k = 3000 exceeds n = 1000: a cluster needs a point of its own; "
                   "leave the pair out with "
                   "exclude: [{k: 3000, n: \"< 3000\"}], or pair the values with zip: [[n, k]]"}},
        ErrorCase{0,
                  "name: t\nversions: [cpu_sequential]\naxes: {n: [1000, 2000], k: [5, "
                  "2000]}\nexclude: [{k: 2000, n: \"< 2000\"}]\ndata: {generator: uniform}\n",
                  {}},
        ErrorCase{5, "  k: [1000]", {}},
        ErrorCase{4,
                  "  n: [9e18]",
                  {"s.yaml:4:7: n = 9,000,000,000,000,000,000 points of dim = 2 overflow: 4 bytes "
                   "a value make more "
                   "than 2^63 bytes"}},
        ErrorCase{4, "  n: [1e18]", {}},
        ErrorCase{8,
                  "exclude: [{dim: 2}]",
                  {"s.yaml:8:1: nothing left to run: exclude leaves out every point"}},
        ErrorCase{0,
                  "name: t\nversions: [luigi_v1_fused]\naxes:\n  n: [" +
                      [] {
                        std::string list = "2000";
                        for (int i = 2001; i < 4000; ++i) list += ", " + std::to_string(i);
                        return list + "]\n  k: [1" + list.substr(4) + "]\n";
                      }() +
                      "data: {generator: uniform}\n",
                  {"s.yaml:3:1: the axes make 4e+06 points; a plan holds at most 1,000,000: list "
                   "fewer values, or let "
                   "axes advance together with zip"}}));

INSTANTIATE_TEST_SUITE_P(
    Zip, SpecErrors,
    ::testing::Values(
        ErrorCase{8, "zip: [n, k]", {}}, ErrorCase{8, "zip: []", {}},
        ErrorCase{8,
                  "zip: n",
                  {"s.yaml:8:6: zip must be a list of axes, as in [n, k], or a list of such "
                   "lists"}},
        ErrorCase{8,
                  "zip: [[n, k], dim]",
                  {"s.yaml:8:6: zip must be a list of axes, as in [n, k], or a list of such "
                   "lists"}},
        ErrorCase{8,
                  "zip: {n: k}",
                  {"s.yaml:8:6: zip must be a list of axes, as in [n, k], or a list of such "
                   "lists"}},
        ErrorCase{8,
                  "zip: [[n]]",
                  {"s.yaml:8:7: zip needs two axes or more that advance together, as in [[n, k]]"}},
        ErrorCase{8, "zip: [[n, dims]]", {"s.yaml:8:11: unknown axis 'dims'; did you mean 'dim'?"}},
        ErrorCase{8, "zip: [[n, [k]]]", {"s.yaml:8:11: zip must list names of axes, not a list"}},
        ErrorCase{8, "zip: [[n, k], [dim, n]]", {"s.yaml:8:21: axis 'n' is zipped twice"}},
        ErrorCase{8, "zip: [[n, n]]", {"s.yaml:8:11: axis 'n' is zipped twice"}},
        ErrorCase{8,
                  "zip: [[n, threads]]",
                  {"s.yaml:8:11: zip names 'threads', but axes does not list it"}},
        ErrorCase{0,
                  "name: t\nversions: [cpu_sequential]\naxes: {n: [10, 20, 10], k: [1, 2, 1]}\n"
                  "zip: [[n, k]]\ndata: {generator: uniform}\n",
                  {"s.yaml:3:35: n = 10, k = 1 is listed twice"}}));

INSTANTIATE_TEST_SUITE_P(
    Exclude, SpecErrors,
    ::testing::Values(
        ErrorCase{8, "exclude: {n: 5}", {}},
        ErrorCase{8,
                  "exclude: {tpb: 5}",
                  {"s.yaml:8:11: unknown key 'tpb' in exclude; did you mean 'threads_per_block'?"}},
        ErrorCase{8,
                  "exclude: 5",
                  {"s.yaml:8:10: exclude must be a list of maps, as in [{version: \"cpu_*\", n: "
                   "\"> 1e6\"}], not '5'"}},
        ErrorCase{8, "exclude: [n]", {"s.yaml:8:11: exclude must be a map (key: value), not 'n'"}},
        ErrorCase{8,
                  "exclude: [{}]",
                  {"s.yaml:8:11: an entry of exclude needs at least one key; {} is every point"}},
        ErrorCase{8,
                  "exclude: [{n: big}]",
                  {"s.yaml:8:15: exclude.n must be a number, a list, or a comparison such as \"> "
                   "1e6\", not 'big'"}},
        ErrorCase{8,
                  "exclude: [{n: \"=> 5\"}]",
                  {"s.yaml:8:15: exclude.n must be a number, a list, or a comparison such as \"> "
                   "1e6\", not '=> 5'"}},
        ErrorCase{8,
                  "exclude: [{n: \"> 1.5\"}]",
                  {"s.yaml:8:15: exclude.n must be a whole number, not 1.5"}},
        ErrorCase{8,
                  "exclude: [{n: [1, [2]]}]",
                  {"s.yaml:8:19: exclude.n must be a value or a list of values, not a list"}},
        ErrorCase{
            8, "exclude: [{n: []}]", {"s.yaml:8:15: exclude.n has no values; list at least one"}},
        ErrorCase{8,
                  "exclude: [{n: }]",
                  {"s.yaml:8:12: exclude.n must be a value or a list of values, not nothing"}},
        ErrorCase{8,
                  "exclude: [{version: cpu_sequental}]",
                  {"s.yaml:8:21: unknown version 'cpu_sequental'; did you mean 'cpu_sequential'?"}},
        ErrorCase{8,
                  "exclude: [{version: \"luigy_*\"}]",
                  {"s.yaml:8:21: no version matches 'luigy_*'; did you mean 'luigi_*'?"}},
        ErrorCase{8,
                  "exclude: [{precision: fp23}]",
                  {"s.yaml:8:23: unknown precision 'fp23'; did you mean 'fp32'?"}}));

INSTANTIATE_TEST_SUITE_P(
    Data, SpecErrors,
    ::testing::Values(
        ErrorCase{
            7, "data: uniform", {"s.yaml:7:7: data must be a map (key: value), not 'uniform'"}},
        ErrorCase{7,
                  "data: {seed: 1}",
                  {"s.yaml:7:7: data needs either a generator or a file; generator: uniform is the "
                   "one of a "
                   "spec without data"}},
        ErrorCase{7,
                  "data: {generator: uniform, file: a.csv}",
                  {"s.yaml:7:28: data has both a generator and a file; keep one of them"}},
        ErrorCase{7,
                  "data: {generator: uniforn}",
                  {"s.yaml:7:19: unknown generator 'uniforn'; did you mean 'uniform'?"}},
        ErrorCase{
            7,
            "data: {generator: [uniform]}",
            {"s.yaml:7:19: data.generator must be one of " + generator_names() + ", not a list"}},
        ErrorCase{
            7,
            "data: {generator: uniform, centers: 3}",
            {"s.yaml:7:28: generator 'uniform' has no key 'centers'; its keys are seed, range"}},
        ErrorCase{
            7,
            "data: {generator: uniform, header: true}",
            {"s.yaml:7:28: generator 'uniform' has no key 'header'; its keys are seed, range"}},
        ErrorCase{7,
                  "data: {generator: uniform, seed: -1}",
                  {"s.yaml:7:34: data.seed must be a whole number from 0 to 2^64 - 1, not '-1'"}},
        ErrorCase{7,
                  "data: {generator: uniform, seed: 18446744073709551616}",
                  {"s.yaml:7:34: data.seed must be a whole number from 0 to 2^64 - 1, not "
                   "'18446744073709551616'"}},
        ErrorCase{7,
                  "data: {generator: uniform, range: 5}",
                  {"s.yaml:7:35: data.range must be a list of two numbers, as in [0, 1]"}},
        ErrorCase{7,
                  "data: {generator: uniform, range: [1]}",
                  {"s.yaml:7:35: data.range must be a list of two numbers, as in [0, 1]"}},
        ErrorCase{7,
                  "data: {generator: uniform, range: [0, high]}",
                  {"s.yaml:7:39: data.range must be a number, not 'high'"}},
        ErrorCase{7,
                  "data: {generator: uniform, range: [1, 1.0]}",
                  {"s.yaml:7:35: data.range must go from low to high, not from 1 to 1.0"}},
        ErrorCase{7,
                  "data: {generator: blobs, centers: 0}",
                  {"s.yaml:7:35: data.centers must be at least 1, not 0"}},
        ErrorCase{7,
                  "data: {generator: blobs, sigma: -1}",
                  {"s.yaml:7:33: data.sigma must be 0 or more, not -1"}},
        ErrorCase{7,
                  "data: {generator: blobs, sigma: wide}",
                  {"s.yaml:7:33: data.sigma must be 0 or more, not 'wide'"}},
        ErrorCase{7,
                  "data: {file: missing.csv}",
                  {"s.yaml:7:14: data.file 'missing.csv' was not found; looked for 'missing.csv'"}},
        ErrorCase{
            7, "data: {file: ''}", {"s.yaml:7:14: data.file '' was not found; looked for ''"}},
        ErrorCase{7, "data: {file: [a]}", {"s.yaml:7:14: data.file must be text, not a list"}},
        ErrorCase{7,
                  "data: {file: a.csv, seed: 4}",
                  {"s.yaml:7:21: a data file has no key 'seed'; its keys are file, format, header, "
                   "delimiter, decimal, index_column, label_column, columns, array"}},
        ErrorCase{7,
                  "data: {file: a.csv, format: cvs}",
                  {"s.yaml:7:29: unknown format 'cvs'; did you mean 'csv'?"}},
        ErrorCase{7,
                  "data: {file: a.csv, header: perhaps}",
                  {"s.yaml:7:29: data.header must be true or false, not 'perhaps'"}},
        ErrorCase{7,
                  "data: {file: a.csv, index_column: -1}",
                  {"s.yaml:7:35: data.index_column must be at least 0, not -1"}},
        ErrorCase{7,
                  "data: {file: a.csv, label_column: 0.5}",
                  {"s.yaml:7:35: data.label_column must be a whole number, not 0.5"}},
        ErrorCase{7,
                  "data: {file: a.csv, label_column: [a, b]}",
                  {"s.yaml:7:35: data.label_column must be a column's name or number, not a list"}},
        ErrorCase{7,
                  "data: {file: a.csv, columns: []}",
                  {"s.yaml:7:30: data.columns lists none; name at least one, or leave it out"}},
        ErrorCase{7,
                  "data: {file: a.csv, columns: [x, {y: 1}]}",
                  {"s.yaml:7:34: data.columns must be a column's name or number, not a map"}},
        ErrorCase{7,
                  "data: {file: a.csv, delimiter: ~~}",
                  {"s.yaml:7:32: data.delimiter must be one of ',', ';', '|', ':', 'tab', not "
                   "'~~'"}},
        ErrorCase{7,
                  "data: {file: a.csv, decimal: comma}",
                  {"s.yaml:7:30: data.decimal must be one of '.', ',', not 'comma'"}},
        ErrorCase{7,
                  "data: {seed: 7}",
                  {"s.yaml:7:7: data needs either a generator or a file; generator: uniform is the "
                   "one of a spec without data"}}));

INSTANTIATE_TEST_SUITE_P(
    Solve, SpecErrors,
    ::testing::Values(
        ErrorCase{8, "solve: fast", {"s.yaml:8:8: solve must be a map (key: value), not 'fast'"}},
        ErrorCase{8,
                  "solve: {iterations: 0}",
                  {"s.yaml:8:21: solve.iterations must be at least 1, not 0"}},
        ErrorCase{8,
                  "solve: {iterations: [20]}",
                  {"s.yaml:8:21: solve.iterations must be a whole number, not a list"}},
        ErrorCase{8,
                  "solve: {tolerance: -0.1}",
                  {"s.yaml:8:20: solve.tolerance must be 0 or more, not -0.1"}},
        ErrorCase{8,
                  "solve: {tolerance: nan}",
                  {"s.yaml:8:20: solve.tolerance must be 0 or more, not 'nan'"}},
        ErrorCase{8,
                  "solve: {min_changes: -1}",
                  {"s.yaml:8:22: solve.min_changes must be at least 0, not -1"}},
        ErrorCase{8,
                  "solve: {min_changes: 0.1}",
                  {"s.yaml:8:22: solve.min_changes must be a whole number, not 0.1"}},
        ErrorCase{8,
                  "solve: {init: kmeans+}",
                  {"s.yaml:8:15: unknown init 'kmeans+'; did you mean 'kmeans++'?"}},
        ErrorCase{8,
                  "solve: {seed: x}",
                  {"s.yaml:8:15: solve.seed must be a whole number from 0 to 2^64 - 1, not 'x'"}},
        ErrorCase{8,
                  "solve: {init: file}",
                  {"s.yaml:8:15: init: file needs init_file, a file with one row a cluster"}},
        ErrorCase{8,
                  "solve: {init_file: c.csv}",
                  {"s.yaml:8:9: init_file needs init: file, but init is random_points"}},
        ErrorCase{8,
                  "solve: {init: file, init_file: c.csv}",
                  {"s.yaml:8:32: solve.init_file 'c.csv' was not found; looked for 'c.csv'"}}));

INSTANTIATE_TEST_SUITE_P(
    MeasureAndProfile, SpecErrors,
    ::testing::Values(
        ErrorCase{
            8, "measure: {warmup: -1}", {"s.yaml:8:19: measure.warmup must be at least 0, not -1"}},
        ErrorCase{8,
                  "measure: {repetitions: 0}",
                  {"s.yaml:8:24: measure.repetitions must be at least 1, not 0"}},
        ErrorCase{8,
                  "measure: {launches: 0}",
                  {"s.yaml:8:21: measure.launches must be at least 1, not 0"}},
        ErrorCase{
            8,
            "measure: {throttled: drop}",
            {"s.yaml:8:22: unknown way with throttled samples 'drop'; choose from keep, retry"}},
        ErrorCase{8,
                  "measure: {repetitions: many}",
                  {"s.yaml:8:24: measure.repetitions must be a whole number, not 'many'"}},
        ErrorCase{8,
                  "measure: {max_noise: 0}",
                  {"s.yaml:8:22: measure.max_noise must be a number above 0, not 0"}},
        ErrorCase{8,
                  "measure: {max_seconds: 0}",
                  {"s.yaml:8:24: measure.max_seconds must be a number above 0, not 0"}},
        ErrorCase{8,
                  "measure: {l2: hot}",
                  {"s.yaml:8:15: unknown state of l2 'hot'; choose from warm, cold"}},
        ErrorCase{8,
                  "measure: {timeout: 0}",
                  {"s.yaml:8:20: measure.timeout must be a number above 0, not 0"}},
        ErrorCase{8,
                  "measure: {timeout: 1e999}",
                  {"s.yaml:8:20: measure.timeout must be a number above 0, not '1e999'"}},
        ErrorCase{8,
                  "measure: {verify: maybe}",
                  {"s.yaml:8:19: measure.verify must be true or false, not 'maybe'"}},
        ErrorCase{
            8, "profile: [nvtx]", {"s.yaml:8:10: profile must be a map (key: value), not a list"}},
        ErrorCase{
            8, "profile: {nvtx: 2}", {"s.yaml:8:17: profile.nvtx must be true or false, not '2'"}},
        ErrorCase{8,
                  "profile: {timeline: [true]}",
                  {"s.yaml:8:21: profile.timeline must be true or false, not a list"}},
        ErrorCase{8, "profile: {counters: l1, cpu: cycles}", {}},
        ErrorCase{8,
                  "profile: {counters: [ocupancy]}",
                  {"s.yaml:8:22: unknown counter 'ocupancy'; did you mean 'occupancy'?"}},
        ErrorCase{8,
                  "profile: {counters: [sm_cycles]}",
                  {"s.yaml:8:22: unknown counter 'sm_cycles'; the presets are occupancy, l1, l2, "
                   "dram, roofline, stalls, "
                   "atomics, bank_conflicts, speed_of_light; --list-metrics shows CUPTI's own"}},
        ErrorCase{8,
                  "profile: {counters: [dram__bytes.sum, lts__t_bytes.sum.per_second, "
                  "sm__cycles_active.avg]}",
                  {}},
        ErrorCase{8,
                  "profile: {cpu: [l1_misses]}",
                  {"s.yaml:8:17: unknown CPU counter 'l1_misses'; did you mean 'l1d_misses'?"}}));

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
                   "data, solve, measure, profile, figures",
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

TEST(Spec, Defaults) {
  const Spec spec = load_text(spec_with(8, ""));
  EXPECT_EQ(spec.name, "t");
  EXPECT_EQ(spec.title, "");
  EXPECT_EQ(spec.baseline, "");
  EXPECT_EQ(spec.text, spec_with(8, ""));
  EXPECT_EQ(spec.path, "s.yaml");
  EXPECT_TRUE(spec.shuffle);
  EXPECT_EQ(spec.figures, Words{});
  EXPECT_EQ(spec.stop.iterations, Stop{}.iterations);
  EXPECT_EQ(spec.init.method, "random_points");
  EXPECT_EQ(spec.measure.repetitions, Measure{}.repetitions);
  EXPECT_TRUE(spec.profile.nvtx);
  EXPECT_EQ(spec.profile.counters, Words{});
}

TEST(Spec, EveryKeyArrives) {
  const Spec spec = load_text(R"(name: all-of_it1
title: Everything, at once
versions: ["cpu_seq*"]
baseline: cpu_sequential
axes:
  n: [10_000]
  k: ["5"]
data:
  generator: blobs
  seed: 18446744073709551615
  range: [-1.5, 2e1]
  centers: 7
  sigma: .5
solve:
  iterations: 1e2
  tolerance: 1e-4
  min_changes: 3
  init: kmeans++
  seed: 9
measure:
  warmup: 0
  repetitions: 11
  launches: 3
  throttled: retry
  max_noise: 0.05
  max_seconds: 2.5
  l2: cold
  timeout: 30
  verify: false
profile:
  nvtx: no
  counters: [l1, dram__bytes.sum, l1]
  timeline: true
  cpu: [cycles, instructions]
figures: [speedup, noise]
)");
  const nlohmann::json expected = nlohmann::json::parse(R"({
    "name": "all-of_it1", "title": "Everything, at once", "baseline": "cpu_sequential",
    "data": {"generator": "blobs", "seed": 18446744073709551615, "range": [-1.5, 20.0],
             "centers": 7, "sigma": 0.5},
    "solve": {"iterations": 100, "tolerance": 1e-4, "min_changes": 3, "init": "kmeans++",
              "init_file": null, "seed": 9},
    "measure": {"launches": 3, "warmup": 0, "repetitions": 11, "max_noise": 0.05,
                "max_seconds": 2.5, "l2": "cold", "timeout": 30.0, "verify": false,
                "throttled": "retry"},
    "profile": {"nvtx": false, "counters": ["l1", "dram__bytes.sum"], "timeline": true,
                "cpu": ["cycles", "instructions"]},
    "shuffle": true, "shuffle_seed": 1, "figures": ["speedup", "noise"],
    "points": ["cpu_sequential/n:10000/k:5/dim:2/precision:fp32"]})");
  EXPECT_EQ(spec.resolved(), expected);
  EXPECT_EQ(spec.resolved().dump(), expected.dump());  // also compares the order of the keys
  EXPECT_EQ(spec.data.describe(),
            "blobs(range=[-1.5,20), centers=7, sigma=0.5, seed=18446744073709551615)");
}

TEST(Spec, DataMayBeLeftOut) {
  const std::string start = "name: t\nversions: cpu_sequential\naxes: {n: 1e3, k: 5}\n";
  EXPECT_EQ(load_text(start).data.describe(), "uniform(range=[0,1), seed=42)");
  EXPECT_EQ(load_text(start).resolved(),
            load_text(start + "data: {generator: uniform, seed: 42}\n").resolved());
  Overrides overrides;
  overrides.seed = 7;
  EXPECT_EQ(load_text(start, overrides).data.seed, 7u);
}

TEST(Spec, OneValueIsAListOfOne) {
  EXPECT_EQ(load_text("name: t\nversions: cpu_sequential\naxes: {n: 1e3, k: 5, precision: fp64}\n"
                      "zip: [n, k]\nexclude: {n: 7}\nprofile: {counters: l1, cpu: cycles}\n"
                      "figures: speedup\n")
                .resolved(),
            load_text("name: t\nversions: [cpu_sequential]\n"
                      "axes: {n: [1000], k: [5], precision: [fp64]}\n"
                      "zip: [[n, k]]\nexclude: [{n: 7}]\nprofile: {counters: [l1], cpu: [cycles]}\n"
                      "figures: [speedup]\n")
                .resolved());
}

TEST(Spec, EveryPresetCounterFigureAndInitIsKnown) {
  EXPECT_EQ(
      errors_of(spec_with(8,
                          "profile: {counters: [occupancy, l1, l2, dram, roofline, stalls, "
                          "atomics, bank_conflicts, "
                          "speed_of_light], cpu: [l1d_misses, llc_misses, instructions, cycles]}\n"
                          "figures: [speedup, roofline, tpb, phases, ladder, occupancy, scaling, "
                          "dims, floor, noise]")),
      Words{});
  for (const char* init : {"random_points", "kmeans++", "kmeans||"})
    EXPECT_EQ(load_text(spec_with(8, std::string("solve: {init: ") + init + "}")).init.method,
              init);
}

TEST(Spec, WindowsLinesAndAByteOrderMarkAreFine) {
  std::string text = "\xEF\xBB\xBF";
  for (const std::string& line : good_lines()) text += line + "\r\n";
  EXPECT_EQ(errors_of(text), Words{});
}

// --- Data files ---

constexpr const char* kFileSpec = R"(name: t
versions: [cpu_sequential]
axes:
  k: [2]
data:
  file: points.csv
)";

TEST(DataFile, NAndDimAreTheFilesWhenLeftOut) {
  const Folder folder;
  folder.write("points.csv", "1,2,3\n4,5,6\n7,8,9\n0,0,0\n");
  folder.write("s.yaml", kFileSpec);
  const Spec spec = load_spec("s.yaml", {});
  EXPECT_EQ(ids_of(spec), Words{"cpu_sequential/n:4/k:2/dim:3/precision:fp32"});
  EXPECT_EQ(spec.data.file, folder.path() / "points.csv");
  EXPECT_EQ(spec.data_file, "points.csv");
  EXPECT_EQ(spec.resolved().at("data"),
            nlohmann::json::parse(R"({"file": "points.csv", "format": null, "header": null,
                                      "delimiter": null, "decimal": ".", "index_column": null,
                                      "label_column": null, "columns": null, "array": null})"));
}

TEST(DataFile, OptionsOfTheReaderArrive) {
  const Folder folder;
  folder.write("points.csv", "i;junk\n");
  folder.write("points.txt", "id x y class\n1 2 3 0\n4 5 6 1\n");
  folder.write("s.yaml",
               std::string("name: t\nversions: [cpu_sequential]\naxes: {k: [1]}\n"
                           "data: {file: points.txt, format: space, header: true, index_column: 0, "
                           "label_column: -1}\n"));
  EXPECT_EQ(ids_of(load_spec("s.yaml", {})), Words{"cpu_sequential/n:2/k:1/dim:2/precision:fp32"});
}

TEST(DataFile, ColumnsHaveNamesOrNumbers) {
  const Folder folder;
  folder.write("points.csv", "id;y;1;x;kind\na;1,5;2;3;b\n");
  const auto source = [&](const std::string& keys) {
    folder.write("s.yaml",
                 "name: t\nversions: cpu_sequential\naxes: {k: 1}\ndata:\n  file: points.csv\n"
                 "  delimiter: \";\"\n  decimal: ','\n" +
                     keys);
    return load_spec("s.yaml", {}).data;
  };
  const data::Source read = source("  columns: [3, y, \"1\"]\n  header: true\n");
  EXPECT_EQ(read.columns, (std::vector<data::Column>{3, "y", "1"}));
  EXPECT_EQ(read.describe(), "points.csv(columns=[3, 'y', '1'])");
  EXPECT_EQ(data::read_file(read).values()[1], 1.5f);
  EXPECT_EQ(data::read_file(read).values()[2], 2.0f);
  const data::Source left = source("  index_column: id\n  label_column: -1\n  header: true\n");
  EXPECT_EQ(left.index_column, data::Column("id"));
  EXPECT_EQ(left.label_column, data::Column(-1));
  EXPECT_EQ(source("  columns: x\n  header: yes\n").columns, std::vector<data::Column>{"x"});
}

TEST(DataFile, AnIdColumnIsAnErrorWithItsRemedy) {
  const Folder folder;
  folder.write("points.csv", "name,x,y\na,1,2\n");
  folder.write("s.yaml", kFileSpec);
  try {
    load_spec("s.yaml", {});
    FAIL() << "no error";
  } catch (const SpecError& error) {
    EXPECT_STREQ(error.what(),
                 "s.yaml:6:9: data.file cannot be used: points.csv:2:1: 'a' is not a number (to "
                 "leave this column out, set index_column: name)");
  }
}

TEST(DataFile, TheFirstRowsAndColumns) {
  const Folder folder;
  folder.write("points.csv", "1,2,3\n4,5,6\n7,8,9\n0,0,0\n");
  folder.write("s.yaml",
               "name: t\nversions: [cpu_sequential]\naxes: {n: [2, 4], k: [2], dim: [3, 1]}\ndata: "
               "{file: points.csv}\n");
  EXPECT_EQ(ids_of(load_spec("s.yaml", {})).size(), 4u);
}

Words file_errors(const Folder& folder, const std::string& spec, const Overrides& overrides = {}) {
  folder.write("s.yaml", spec);
  try {
    load_spec("s.yaml", overrides);
    return {};
  } catch (const SpecError& error) {
    return error.errors;
  }
}

TEST(DataFile, MoreThanItHasIsAnErrorAtTheValue) {
  const Folder folder;
  folder.write("points.csv", "1,2,3\n4,5,6\n7,8,9\n0,0,0\n");
  EXPECT_EQ(
      file_errors(folder,
                  "name: t\nversions: [cpu_sequential]\naxes: {n: [2, 5000], k: [2], dim: [4]}\n"
                  "data: {file: points.csv}\n"),
      (Words{"s.yaml:3:15: n = 5,000 is more than the 4 points of points.csv",
             "s.yaml:3:36: dim = 4 is more than the 3 dimensions of points.csv"}));
  Overrides overrides;
  overrides.set = {"n=5"};
  EXPECT_EQ(file_errors(folder, kFileSpec, overrides),
            Words{"--set: n = 5 is more than the 4 points of points.csv"});
}

TEST(DataFile, MoreClustersThanRows) {
  const Folder folder;
  folder.write("points.csv", "1,2,3\n");
  EXPECT_EQ(file_errors(folder, kFileSpec),
            Words{"s.yaml:4:7: k = 2 exceeds n = 1: a cluster needs a point of its own; leave the "
                  "pair out with exclude: "
                  "[{k: 2, n: \"< 2\"}], or pair the values with zip: [[n, k]]"});
}

TEST(DataFile, FaultsOfTheFileAreErrorsOfTheSpecWithBothPlaces) {
  const Folder folder;
  const auto starts = [](const Words& errors, const std::string& start) {
    return errors.size() == 1 && errors.front().substr(0, start.size()) == start;
  };
  for (const auto& [bytes, place] : std::vector<std::pair<std::string, std::string>>{
           {"1,2\n3,x\n", ":2:3: "}, {"1,2\n3\n", ":2:"}, {"1,nan\n", ":1:3: "}, {"", ": "}}) {
    folder.write("points.csv", bytes);
    const Words errors = file_errors(folder, kFileSpec);
    EXPECT_TRUE(starts(errors, "s.yaml:6:9: data.file cannot be used: points.csv" + place))
        << bytes << ::testing::PrintToString(errors);
  }
  EXPECT_TRUE(starts(
      file_errors(folder, "name: t\nversions: [cpu_sequential]\naxes: {k: [2]}\ndata: {file: .}\n"),
      "s.yaml:4:14: data.file cannot be used: "));
}

TEST(DataFile, FoundBesideTheSpecFirstThenInTheCurrentFolder) {
  const Folder folder;
  folder.write("specs/s.yaml", kFileSpec);
  folder.write("points.csv", "1\n2\n");
  EXPECT_EQ(load_spec("specs/s.yaml", {}).points.front().n, 2);
  folder.write("specs/points.csv", "1\n2\n3\n");
  EXPECT_EQ(load_spec("specs/s.yaml", {}).points.front().n, 3);
  EXPECT_EQ(load_spec("specs/s.yaml", {}).data.file, folder.path() / "specs" / "points.csv");

  folder.write("specs/s.yaml",
               "name: t\nversions: [cpu_sequential]\naxes: {k: [2]}\ndata: {file: no.csv}\n");
  try {
    load_spec("specs/s.yaml", {});
    FAIL() << "no error";
  } catch (const SpecError& error) {
    EXPECT_STREQ(error.what(),
                 "specs/s.yaml:4:14: data.file 'no.csv' was not found; looked for 'specs/no.csv' "
                 "and 'no.csv'");
  }
}

TEST(InitFile, NeedsOneRowAClusterAndTheDimensionsOfThePoints) {
  const Folder folder;
  folder.write("c.csv", "1,2\n3,4\n5,6\n");
  const std::string head = "name: t\nversions: [cpu_sequential]\naxes: {n: [10], ";
  const std::string tail = "}\ndata: {generator: uniform}\nsolve: {init: file, init_file: c.csv}\n";
  EXPECT_EQ(file_errors(folder, head + "k: [3], dim: [2]" + tail), Words{});
  EXPECT_EQ(file_errors(folder, head + "k: [3, 4], dim: [3]" + tail),
            (Words{"s.yaml:3:24: k = 4, but c.csv has 3 rows: init_file needs one row a cluster",
                   "s.yaml:3:34: dim = 3, but the rows of c.csv have 2 values"}));
  folder.write("s.yaml", head + "k: [3], dim: [2]" + tail);
  const Spec spec = load_spec("s.yaml", {});
  EXPECT_EQ(spec.init.file.file, folder.path() / "c.csv");
  EXPECT_EQ(spec.resolved().at("solve").at("init_file"), "c.csv");
}

// --- The command line ---

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
        OverrideCase{set({"dim=2147483647", "n=4e9"}),
                     {"--set: n = 4,000,000,000 points of dim = 2,147,483,647 overflow: 4 bytes a "
                      "value make more than "
                      "2^63 bytes"}},
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
        OverrideCase{profile("none,nvtx"), {"--profile: 'none' goes with nothing else"}},
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
            Words{"s.yaml:2:12: unknown version '" + sixty + "…'; --list-versions shows them all"});
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

TEST(SpecFiles, AreFoundAgainWhereverTheSpecIs) {
  const Folder folder;
  const std::string text =
      "name: t\nversions: [cpu_sequential]\naxes: {k: [1]}\ndata: {file: p.csv}\n";
  folder.write("a/s.yaml", text);
  folder.write("a/p.csv", "1,2\n3,4\n");
  const FoundFiles found = load_spec("a/s.yaml", {}).files();
  EXPECT_EQ(found, (FoundFiles{{"p.csv", (folder.path() / "a/p.csv").string()}}));
  folder.write("b/s.yaml", text);
  EXPECT_THROW(load_spec("b/s.yaml", {}), SpecError);
  EXPECT_EQ(load_spec("b/s.yaml", {}, "", 0, found).points.at(0).n, 2);
  EXPECT_EQ(load_spec("b/s.yaml", {}, "b/s.yaml", 0, found).points.at(0).n, 2);
  // If the user typed the spec's path, a file beside the spec is used. If nobody typed the path,
  // such a file is there by chance.
  folder.write("b/p.csv", "1,2\n");
  EXPECT_EQ(load_spec("b/s.yaml", {}, "", 0, found).points.at(0).n, 2);
  EXPECT_EQ(load_spec("b/s.yaml", {}, "b/s.yaml", 0, found).points.at(0).n, 1);
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
  EXPECT_EQ(errors_of(text, set({"n=30"})),
            Words{"--set: zipped axes need as many values each: n has 1, k has 2"});
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
  EXPECT_EQ(spec.data.seed, 77u);
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

// --- Finding a spec ---

class Environment {
 public:
  Environment(const char* name, const std::string& value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    setenv(name, value.c_str(), 1);
  }
  Environment(const Environment&) = delete;
  ~Environment() {
    if (before_)
      setenv(name_, before_->c_str(), 1);
    else
      unsetenv(name_);
  }

 private:
  const char* name_;
  std::optional<std::string> before_;
};

TEST(FindSpec, CurrentFolderThenTheHomeDirectory) {
  const Folder folder;
  EXPECT_EQ(find_spec("sweeps/quickstart.yaml"),
            home_directory() / "experiments/sweeps/quickstart.yaml");
  const Environment home("LLOYDBENCH_HOME", (folder.path() / "home").string());
  folder.write("home/experiments/sweeps/quickstart.yaml", "");
  EXPECT_EQ(find_spec("sweeps/quickstart.yaml"),
            folder.path() / "home/experiments/sweeps/quickstart.yaml");
  folder.write("sweeps/quickstart.yaml", "");
  EXPECT_EQ(find_spec("sweeps/quickstart.yaml"), "sweeps/quickstart.yaml");
  EXPECT_EQ(find_spec((folder.path() / "sweeps/quickstart.yaml").string()),
            folder.path() / "sweeps/quickstart.yaml");
}

std::string find_error(const std::string& name) {
  try {
    return "found " + find_spec(name).string();
  } catch (const SpecError& error) {
    return error.what();
  }
}

TEST(FindSpec, SaysWhereItLookedAndWhatThereIs) {
  const Folder folder;
  const Environment home("LLOYDBENCH_HOME", (folder.path() / "home").string());
  folder.write("home/experiments/sweeps/mine.yaml", "");
  folder.write("home/experiments/sweeps/notes.txt", "");
  folder.write("here.yaml", "");
  const std::string error = find_error("sweeps/mini.yaml");
  const auto line = [&](int number) {
    std::size_t begin = 0;
    while (number-- > 0) begin = error.find('\n', begin) + 1;
    return error.substr(begin, error.find('\n', begin) - begin);
  };
  const std::string root = folder.path().string();
  EXPECT_EQ(line(0), "sweeps/mini.yaml: no such spec; did you mean 'sweeps/mine.yaml'?");
  EXPECT_EQ(line(1), "  looked for " + root + "/sweeps/mini.yaml, " + root +
                         "/home/experiments/sweeps/mini.yaml");
  EXPECT_EQ(line(2).rfind("  there are sweeps/mine.yaml", 0), 0u) << line(2);

  EXPECT_EQ(find_error("mine").rfind("mine: no such spec; did you mean 'sweeps/mine.yaml'?\n", 0),
            0u);
  EXPECT_NE(find_error("her.yaml").find("did you mean 'here.yaml'?"), std::string::npos);
  EXPECT_EQ(find_error("home").rfind("home: is a folder, not a spec", 0), 0u);
}

// Every shipped spec loads. If its data is not shipped, the error names the missing file.
TEST(ShippedSpecs, Load) {
  if (find_version("python_numpy") == nullptr) discover_external_versions();
  const std::filesystem::path sweeps = home_directory() / "experiments/sweeps";
  const Folder elsewhere;
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(sweeps)) {
    if (entry.path().extension() != ".yaml") continue;
    SCOPED_TRACE(entry.path().string());
    ++count;
    try {
      const Spec spec = load_spec(entry.path(), {});
      EXPECT_EQ(spec.name, entry.path().stem());
      // These specs have a baseline other than cpu_sequential. The flores_alves study compares with
      // its OpenMP program. In `dims` a single core would take hours. Weak scaling compares with
      // one worker of the same version, and counters have no baseline.
      const std::map<std::string, std::string> others{{"counters", ""},
                                                      {"luigi_nvprof", ""},
                                                      {"flores", "cpu_openmp"},
                                                      {"peers", "peer_torch"},
                                                      {"dims", "wang_global"},
                                                      {"scaling_weak", ""},
                                                      {"scaling_weak_hybrid", ""},
                                                      {"fast_regimes", "peer_flash_kmeans"},
                                                      {"fast_sweep", "peer_flash_kmeans"},
                                                      {"fast_reproducible", "fast_wgmma"},
                                                      {"fast_counters", ""},
                                                      {"fast_tune", "fast_cublas"},
                                                      {"fast_auto", "fast_auto"},
                                                      {"fast_unseen", "fast_auto"},
                                                      {"fast_wide", "peer_flash_kmeans"}};
      const auto other = others.find(spec.name);
      EXPECT_EQ(spec.baseline, other == others.end() ? "cpu_sequential" : other->second);
      EXPECT_FALSE(spec.title.empty());
      EXPECT_FALSE(spec.figures.empty());
      const std::string schema = "# yaml-language-server: $schema=spec.schema.json\n# ";
      EXPECT_TRUE(spec.text.starts_with(schema)) << "names the schema, then says what it is about";
    } catch (const SpecError& error) {
      ASSERT_EQ(error.errors.size(), 1u) << error.what();
      EXPECT_NE(error.errors.front().find("data.file 'data/"), std::string::npos) << error.what();
      EXPECT_NE(error.errors.front().find("was not found"), std::string::npos) << error.what();
    }
  }
  EXPECT_GE(count, 11);
}

// tests/test_readme.py checks with the program that our regimes are those of the table.
TEST(ShippedSpecs, PeersTakePartInTheFastRegimesWhereTheyCan) {
  if (find_version("python_numpy") == nullptr) discover_external_versions();
  const Spec spec = load_spec(home_directory() / "experiments/sweeps/fast_regimes.yaml", {}, "", 0);
  std::map<std::string, std::multiset<std::string>> rows;
  for (const Point& point : spec.points)
    rows[point.version].insert(
        fmt::format("{} {} {} {}", point.n, point.k, point.dim, to_string(point.precision)));
  const std::multiset<std::string> ours = rows.at("fast_auto");
  std::multiset<std::string> theirs = ours;
  for (const std::string& row : ours)
    if (const auto at = row.find("fp32"); at != std::string::npos)
      theirs.insert(row.substr(0, at) + "tf32");
  EXPECT_EQ(rows.at("peer_flash_kmeans"), theirs);
  EXPECT_EQ(rows.at("luigi_v4_device_update").size(), ours.size() - 1);
  // The spec leaves out points that take minutes: for the other peers, those with more than a
  // million points.
  std::erase_if(theirs, [](const std::string& row) { return std::stoll(row) > 1'000'000; });
  EXPECT_EQ(rows.at("peer_cuvs"), theirs);
  EXPECT_EQ(rows.at("peer_faiss"), theirs);
  EXPECT_EQ(rows.at("peer_torch").size(), 5u);  // without A3 and tf32
}

TEST(ShippedSpecs, RunOnTheRealFiles) {
  const char* given = std::getenv("LLOYD_REAL_DATA");
  const std::filesystem::path real = given != nullptr
                                         ? std::filesystem::path(given)
                                         : home_directory().parent_path() / "shared" / "data";
  if (!std::filesystem::exists(real / "uva") || !std::filesystem::exists(real / "stamp"))
    GTEST_SKIP() << "no uva/ and stamp/ in " << real
                 << "; set LLOYD_REAL_DATA to the folder that has them";
  const Folder folder;
  std::filesystem::create_directory_symlink(real, "data");
  const auto first = [](const char* name) {
    return load_spec(home_directory() / "experiments/sweeps" / name, {}).points.front().id;
  };
  EXPECT_EQ(first("uva.yaml"), "cpu_sequential/n:10000/k:30/dim:20/precision:fp32");
  EXPECT_EQ(first("uva100.yaml"), "cpu_sequential/n:10000/k:30/dim:100/precision:fp32");
  EXPECT_EQ(first("stamp.yaml"), "cpu_sequential/n:2048/k:16/dim:16/precision:fp32");
  EXPECT_EQ(first("stamp16384.yaml"), "cpu_sequential/n:16384/k:16/dim:24/precision:fp32");
}

// --- Words and numbers ---

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
}  // namespace lloyd::testing
