// Tests the text and the position of the errors in axes, zip and exclude.
#include <gtest/gtest.h>

#include <string>

#include "tests/experiments/spec_errors.h"

namespace lloyd::testing {
namespace {

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
                   "per value make more than 2^63 bytes"}},
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
                  {"s.yaml:3:35: n = 10, k = 1 is listed twice"}},
        ErrorCase{0,
                  "name: t\nversions: [cpu_sequential]\naxes: {n: [10, 20, 10], k: [1]}\n"
                  "zip: [[n, k]]\ndata: {generator: uniform}\n",
                  {"s.yaml:3:20: n = 10, k = 1 is listed twice"}}));

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

}  // namespace
}  // namespace lloyd::testing
