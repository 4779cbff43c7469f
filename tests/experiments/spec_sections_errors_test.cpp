// Tests the text and the position of the errors in data, solve, measure and profile.
#include <gtest/gtest.h>

#include <string>

#include "data/sources/dataset.h"
#include "experiments/text/text.h"
#include "tests/experiments/spec_errors.h"

namespace lloyd::testing {
namespace {

std::string generator_names() {
  Words names;
  for (const auto& generator : data::generators()) names.push_back(generator.name);
  return join(names);
}

INSTANTIATE_TEST_SUITE_P(
    Data, SpecErrors,
    ::testing::Values(
        ErrorCase{
            7, "data: uniform", {"s.yaml:7:7: data must be a map (key: value), not 'uniform'"}},
        ErrorCase{7,
                  "data: {seed: 1}",
                  {"s.yaml:7:7: data needs either a generator or a file; a spec without data uses "
                   "generator: uniform"}},
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
        ErrorCase{
            7,
            "data: {generator: blobs, sigma: 1e39, range: [0, 1e39], centres: 3}",
            {"s.yaml:7:33: data.sigma must be from 0 to 1e30, not 1e+39",
             "s.yaml:7:46: data.range must lie between -1e38 and 1e38, not go from 0 to 1e+39",
             "s.yaml:7:57: unknown key 'centres' in data; did you mean 'centers'?"}},
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
                   "delimiter, decimal, index_column, label_column, columns, array, mapped"}},
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
                  {"s.yaml:7:7: data needs either a generator or a file; a spec without data uses "
                   "generator: uniform"}}));

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
                  {"s.yaml:8:15: init: file needs init_file, a file with one row per cluster"}},
        ErrorCase{8,
                  "solve: {restarts: 0}",
                  {"s.yaml:8:19: solve.restarts must be from 1 to 10000, not 0"}},
        ErrorCase{8,
                  "solve: {init_file: c.csv}",
                  {"s.yaml:8:9: solve.init_file needs solve.init: file, not random_points"}},
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
        ErrorCase{8,
                  "measure: {verify: {}}",
                  {"s.yaml:8:19: measure.verify needs sample, how many points' labels to verify"}},
        ErrorCase{8,
                  "measure: {verify: {sample: 0}}",
                  {"s.yaml:8:28: measure.verify.sample must be at least 1, not 0"}},
        ErrorCase{8,
                  "measure: {verify: {sample: 5, smaple: 5}}",
                  {"s.yaml:8:31: unknown key 'smaple' in measure.verify; did you mean 'sample'?"}},
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

}  // namespace
}  // namespace lloyd::testing
