// Tests what a correct spec means: its defaults, its keys and its forms.
#include <gtest/gtest.h>

#include "tests/experiments/spec_text.h"

namespace lloyd::testing {
namespace {

TEST(Spec, TheGoodSpecIsGood) { EXPECT_EQ(errors_of(spec_with(8, "")), Words{}); }

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
  distance: cosine
  init: kmeans++
  seed: 9
  restarts: 4
measure:
  warmup: 0
  repetitions: 11
  launches: 3
  throttled: retry
  warm_seconds: 0.5
  max_noise: 0.05
  max_seconds: 2.5
  l2: cold
  timeout: 30
  verify: false
profile:
  nvtx: no
  counters: [l1, dram__bytes.sum, l1]
  timeline: true
  convergence: yes
  cpu: [cycles, instructions]
figures: [speedup, noise]
)");
  const nlohmann::json expected = nlohmann::json::parse(R"({
    "name": "all-of_it1", "title": "Everything, at once", "baseline": "cpu_sequential",
    "data": {"generator": "blobs", "seed": 18446744073709551615, "range": [-1.5, 20.0],
             "centers": 7, "sigma": 0.5},
    "solve": {"iterations": 100, "tolerance": 1e-4, "min_changes": 3, "distance": "cosine",
              "init": "kmeans++", "init_file": null, "seed": 9, "restarts": 4},
    "measure": {"launches": 3, "warmup": 0, "repetitions": 11, "max_noise": 0.05,
                "max_seconds": 2.5, "l2": "cold", "timeout": 30.0, "verify": false,
                "throttled": "retry", "warm_seconds": 0.5},
    "profile": {"nvtx": false, "counters": ["l1", "dram__bytes.sum"], "timeline": true,
                "convergence": true, "cpu": ["cycles", "instructions"]},
    "shuffle": true, "shuffle_seed": 1, "figures": ["speedup", "noise"],
    "points": ["cpu_sequential/n:10000/k:5/dim:2/precision:fp32"]})");
  EXPECT_EQ(spec.resolved(), expected);
  EXPECT_EQ(spec.resolved().dump(), expected.dump());  // also compares the order of the keys
  EXPECT_EQ(spec.data[0].source.describe(),
            "blobs(range=[-1.5,20), centers=7, sigma=0.5, seed=18446744073709551615) by cosine");
}

TEST(Spec, DataMayBeLeftOut) {
  const std::string start = "name: t\nversions: cpu_sequential\naxes: {n: 1e3, k: 5}\n";
  EXPECT_EQ(load_text(start).data[0].source.describe(), "uniform(range=[0,1), seed=42)");
  EXPECT_EQ(load_text(start).resolved(),
            load_text(start + "data: {generator: uniform, seed: 42}\n").resolved());
  Overrides overrides;
  overrides.seed = 7;
  EXPECT_EQ(load_text(start, overrides).data[0].source.seed, 7u);
}

TEST(Spec, DistanceMayStandAtTheTop) {
  const std::string start = "name: t\nversions: cpu_sequential\naxes: {n: 1e3, k: 5}\n";
  const auto resolved = [&](const std::string& more) { return load_text(start + more).resolved(); };
  EXPECT_EQ(resolved("distance: cosine\n"), resolved("solve: {distance: cosine}\n"));
  EXPECT_EQ(resolved("distance: cosine\nsolve: {seed: 1}\n"), resolved("distance: cosine\n"));
  EXPECT_EQ(resolved("distance: euclidean\n"), resolved(""));
  EXPECT_NE(resolved("distance: cosine\n"), resolved(""));
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

TEST(Spec, AFigureMayHaveAnotherAxisOnX) {
  EXPECT_EQ(load_text(spec_with(8,
                                "figures: [{speedup: {x: n}}, {speedup: {x: k}, tpb: {x: n}}, "
                                "speedup, {tpb: {x: precision}}]"))
                .figures,
            (Words{"speedup", "speedup:k", "tpb:n", "tpb:precision"}));
  EXPECT_EQ(load_text(spec_with(8,
                                "figures: [{fastest: {x: n}}, {fastest: {x: data}}, "
                                "{scaling: {x: threads}}, {noise: {x: init}}]"))
                .figures,
            (Words{"fastest", "fastest:data", "scaling:threads", "noise:init"}));
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

}  // namespace
}  // namespace lloyd::testing
