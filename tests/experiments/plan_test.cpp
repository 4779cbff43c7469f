// Tests the plan: which points a spec produces, in which order, and which of them can run.
#include <gtest/gtest.h>

#include "experiments/run/availability.h"
#include "kernels/core/version.h"
#include "tests/experiments/spec_text.h"

namespace lloyd::testing {
namespace {

std::unique_ptr<Version> never_made() { throw std::logic_error("a plan makes no version"); }

VersionInfo test_version(const char* name, Backend backend) {
  VersionInfo info;
  info.name = name;
  info.family = "plantest";
  info.backend = backend;
  return info;
}

VersionInfo version_with_everything() {
  VersionInfo info = test_version("plantest_everything", Backend::cuda);
  info.axes = {"threads_per_block", "samples_per_thread", "threads", "processes", "gpus",
               "device_memory"};
  info.precisions = {Precision::fp32, Precision::fp16};
  info.unsupported = [](const Problem& problem, const Tunables& tunables,
                        const DeviceLimits& device) -> std::optional<std::string> {
    if (problem.k <= 100) return std::nullopt;
    return "k = " + std::to_string(problem.k) + ", samples " +
           std::to_string(tunables.samples_per_thread) + ", on " + device.name + ", stop after " +
           std::to_string(problem.stop.iterations);
  };
  return info;
}

// Versions whose axes, precisions and limits these tests know.
[[maybe_unused]] const bool kRegistered =
    register_version(version_with_everything(), never_made) &&
    register_version(test_version("plantest_host", Backend::cpu), never_made) &&
    register_unavailable(test_version("plantest_unbuilt", Backend::cuda),
                         "built without CUDA (configure with -DLLOYD_CUDA=ON)");

TEST(Plan, AnAxisMultipliesOnlyTheVersionsThatUseIt) {
  EXPECT_EQ(ids_of(R"(name: t
versions: [cpu_sequential, cpu_openmp, luigi_v1_fused]
axes:
  n: [1000]
  k: [5]
  threads_per_block: [128, 256]
  threads: [1, 2]
data: {generator: uniform}
)"),
            (Words{"cpu_sequential/n:1000/k:5/dim:2/precision:fp32",
                   "cpu_openmp/n:1000/k:5/dim:2/threads:1/precision:fp32",
                   "cpu_openmp/n:1000/k:5/dim:2/threads:2/precision:fp32",
                   "luigi_v1_fused/n:1000/k:5/dim:2/threads_per_block:128/precision:fp32",
                   "luigi_v1_fused/n:1000/k:5/dim:2/threads_per_block:256/precision:fp32"}));
}

TEST(Plan, AnAxisThatNoVersionReadsIsTold) {
  const std::string text = R"(name: t
versions: [cpu_sequential, luigi_v1_fused]
axes: {n: [1000], k: [5], dim: 2, threads_per_block: [128, 256], threads: [1, 2], gpus: 1}
)";
  EXPECT_EQ(load_text(text).unread_axes, (Words{"threads", "gpus"}));
  Overrides chosen;
  chosen.only = {"cpu_sequential"};
  EXPECT_EQ(load_text(text, chosen).unread_axes, (Words{"threads", "gpus"}))
      << "the choice of --only is no slip";
}

TEST(Plan, IdsCarryEveryAxisInTheContractsOrder) {
  const Spec spec = load_text(R"(name: t
versions: [plantest_everything]
axes:
  precision: [fp16]
  device_memory: [8]
  gpus: [6]
  processes: [5]
  threads: [4]
  samples_per_thread: [3]
  threads_per_block: [64]
  dim: [7]
  k: [9]
  n: [10]
data: {generator: uniform}
)");
  ASSERT_EQ(spec.points.size(), 1u);
  const Point& point = spec.points.front();
  EXPECT_EQ(point.id,
            "plantest_everything/n:10/k:9/dim:7/threads_per_block:64/samples_per_thread:3/"
            "threads:4/processes:5/"
            "gpus:6/device_memory:8/precision:fp16");
  EXPECT_EQ(to_json(point),
            nlohmann::json::parse(R"({
    "point": "plantest_everything/n:10/k:9/dim:7/threads_per_block:64/)"
                                  R"(samples_per_thread:3/threads:4/)"
                                  R"(processes:5/gpus:6/device_memory:8/precision:fp16",
    "version": "plantest_everything", "n": 10, "k": 9, "dim": 7, "batch": 1,
    "threads_per_block": 64,
    "samples_per_thread": 3, "threads": 4, "processes": 5, "gpus": 6, "device_memory": 8,
    "precision": "fp16",
    "data_name": null, "init": "random_points", "init_seed": 1, "data_seed": 42,
    "host_memory": "pageable",
    "available": true, "reason": null})"));

  const Tunables tunables = point.tunables();
  EXPECT_EQ(tunables.threads_per_block, 64);
  EXPECT_EQ(tunables.samples_per_thread, 3);
  EXPECT_EQ(tunables.threads, 4);
  EXPECT_EQ(tunables.processes, 5);
  EXPECT_EQ(tunables.gpus, 6);
  EXPECT_EQ(tunables.device_memory, std::int64_t{8} << 30) << "bytes, though the spec has GiB";

  Stop stop;
  stop.iterations = 3;
  const Problem problem = point.problem(stop);
  EXPECT_EQ(problem.n, 10);
  EXPECT_EQ(problem.k, 9);
  EXPECT_EQ(problem.dim, 7);
  EXPECT_EQ(problem.precision, Precision::fp16);
  EXPECT_EQ(problem.stop.iterations, 3);
  EXPECT_TRUE(problem.points.empty());
}

TEST(Plan, DeviceMemoryMayBeInBytes) {
  const Spec spec = load_text(R"(name: t
versions: [plantest_everything]
axes: {n: [10], k: [2], device_memory: [17179869184]}
)");
  ASSERT_EQ(spec.points.size(), 1u);
  EXPECT_EQ(spec.points.front().tunables().device_memory, std::int64_t{16} << 30);
  EXPECT_EQ(to_json(spec.points.front()).at("device_memory"), std::int64_t{16} << 30);
}

TEST(Plan, AxesThatAVersionDoesNotUseAreNull) {
  const Spec spec = load_text(R"(name: t
versions: [plantest_host]
axes: {n: [10], k: [2], threads_per_block: [64, 128]}
data: {generator: uniform}
)");
  ASSERT_EQ(spec.points.size(), 1u);
  const nlohmann::json json = to_json(spec.points.front());
  for (const char* axis :
       {"threads_per_block", "samples_per_thread", "threads", "processes", "gpus", "device_memory"})
    EXPECT_TRUE(json.at(axis).is_null()) << axis;
  EXPECT_EQ(spec.points.front().tunables().threads_per_block, Tunables{}.threads_per_block);
}

TEST(Plan, DefaultsOfAxesThatAreLeftOut) {
  const Spec spec = load_text(
      "name: t\nversions: [plantest_everything]\naxes: {n: [10], k: [2]}\n"
      "data: {generator: uniform}\n");
  ASSERT_EQ(spec.points.size(), 1u);
  const Point& point = spec.points.front();
  EXPECT_EQ(point.dim, 2);
  EXPECT_EQ(point.threads_per_block, 256);
  EXPECT_EQ(point.samples_per_thread, 1);
  EXPECT_GE(point.threads.value(), 1);  // all cores that this process may use
  EXPECT_EQ(point.processes, 1);
  EXPECT_EQ(point.gpus, 1);
  EXPECT_EQ(point.device_memory, 0);  // all
  EXPECT_EQ(point.precision, Precision::fp32);
}

TEST(Plan, VersionsInTheSpecsOrderEachOnceThenAxesTheLastFastest) {
  EXPECT_EQ(ids_of(R"(name: t
versions: [plantest_host, "plantest_*t", "luigi_v?_fused", plantest_host]
axes: {n: [20, 10], k: [3, 2], dim: [1]}
data: {generator: uniform}
)"),
            (Words{"plantest_host/n:20/k:3/dim:1/precision:fp32",
                   "plantest_host/n:20/k:2/dim:1/precision:fp32",
                   "plantest_host/n:10/k:3/dim:1/precision:fp32",
                   "plantest_host/n:10/k:2/dim:1/precision:fp32",
                   "plantest_unbuilt/n:20/k:3/dim:1/precision:fp32",
                   "plantest_unbuilt/n:20/k:2/dim:1/precision:fp32",
                   "plantest_unbuilt/n:10/k:3/dim:1/precision:fp32",
                   "plantest_unbuilt/n:10/k:2/dim:1/precision:fp32",
                   "luigi_v1_fused/n:20/k:3/dim:1/threads_per_block:256/precision:fp32",
                   "luigi_v1_fused/n:20/k:2/dim:1/threads_per_block:256/precision:fp32",
                   "luigi_v1_fused/n:10/k:3/dim:1/threads_per_block:256/precision:fp32",
                   "luigi_v1_fused/n:10/k:2/dim:1/threads_per_block:256/precision:fp32"}));
}

TEST(Plan, ZippedAxesAdvanceTogetherAtThePlaceOfTheFirst) {
  EXPECT_EQ(ids_of(R"(name: t
versions: [plantest_host]
axes: {n: [10, 20], k: [2, 3], dim: [4, 5]}
zip: [[dim, n]]
data: {generator: uniform}
)"),
            (Words{"plantest_host/n:10/k:2/dim:4/precision:fp32",
                   "plantest_host/n:10/k:3/dim:4/precision:fp32",
                   "plantest_host/n:20/k:2/dim:5/precision:fp32",
                   "plantest_host/n:20/k:3/dim:5/precision:fp32"}));
}

TEST(Plan, AZippedAxisMayRepeatAValueAndAVersionThatDoesNotUseTheOtherRunsItOnce) {
  EXPECT_EQ(ids_of(R"(name: t
versions: [plantest_host, luigi_v1_fused]
axes: {n: [10, 10, 20], k: [2], dim: [2], threads_per_block: [64, 128, 64]}
zip: [[n, threads_per_block]]
data: {generator: uniform}
)"),
            (Words{"plantest_host/n:10/k:2/dim:2/precision:fp32",
                   "plantest_host/n:20/k:2/dim:2/precision:fp32",
                   "luigi_v1_fused/n:10/k:2/dim:2/threads_per_block:64/precision:fp32",
                   "luigi_v1_fused/n:10/k:2/dim:2/threads_per_block:128/precision:fp32",
                   "luigi_v1_fused/n:20/k:2/dim:2/threads_per_block:64/precision:fp32"}));
}

TEST(Plan, ASingleValueOfAZippedAxisGoesWithAllOfTheOthers) {
  EXPECT_EQ(ids_of(R"(name: t
versions: [plantest_host]
axes: {n: [10, 20], k: [2], dim: [4, 5], precision: [fp32]}
zip: [[n, k, dim]]
data: {generator: uniform}
)"),
            (Words{"plantest_host/n:10/k:2/dim:4/precision:fp32",
                   "plantest_host/n:20/k:2/dim:5/precision:fp32"}));
}

TEST(Plan, TwoZips) {
  EXPECT_EQ(ids_of(R"(name: t
versions: [plantest_host]
axes: {n: [10, 20], k: [2, 3], dim: [4, 5], precision: [fp32, fp64]}
zip: [[n, k], [dim, precision]]
data: {generator: uniform}
)"),
            (Words{"plantest_host/n:10/k:2/dim:4/precision:fp32",
                   "plantest_host/n:10/k:2/dim:5/precision:fp64",
                   "plantest_host/n:20/k:3/dim:4/precision:fp32",
                   "plantest_host/n:20/k:3/dim:5/precision:fp64"}));
}

// The plan of plantest_host and luigi_v1_fused over n = 10, 20, 30; precision fp32, fp64; 64
// threads per block.
struct ExcludeCase {
  const char* exclude;
  std::vector<std::string>
      left;  // "h10s": host, n = 10, single precision; "l30d": luigi, n = 30, double
};
void PrintTo(const ExcludeCase& c, std::ostream* out) { *out << c.exclude; }
class Exclude : public ::testing::TestWithParam<ExcludeCase> {};

TEST_P(Exclude, LeavesOut) {
  const Spec spec = load_text(R"(name: t
versions: [plantest_host, luigi_v1_fused]
axes: {n: [10, 20, 30], k: [2], threads_per_block: [64], precision: [fp32, fp64]}
data: {generator: uniform}
exclude:
)" + std::string("  - ") + GetParam().exclude +
                              "\n");
  std::vector<std::string> left;
  for (const Point& point : spec.points)
    left.push_back(std::string(point.version == "plantest_host" ? "h" : "l") +
                   std::to_string(point.n) + (point.precision == Precision::fp32 ? "s" : "d"));
  EXPECT_EQ(left, GetParam().left);
}

INSTANTIATE_TEST_SUITE_P(
    Forms, Exclude,
    ::testing::Values(
        ExcludeCase{"{n: 20}", {"h10s", "h10d", "h30s", "h30d", "l10s", "l10d", "l30s", "l30d"}},
        ExcludeCase{"{n: 2e1}", {"h10s", "h10d", "h30s", "h30d", "l10s", "l10d", "l30s", "l30d"}},
        ExcludeCase{"{n: [10, 30]}", {"h20s", "h20d", "l20s", "l20d"}},
        ExcludeCase{"{n: \"> 1e1\"}", {"h10s", "h10d", "l10s", "l10d"}},
        ExcludeCase{"{n: \">=20\"}", {"h10s", "h10d", "l10s", "l10d"}},
        ExcludeCase{"{n: \"< 2_0\"}",
                    {"h20s", "h20d", "h30s", "h30d", "l20s", "l20d", "l30s", "l30d"}},
        ExcludeCase{"{n: \" <= 20 \"}", {"h30s", "h30d", "l30s", "l30d"}},
        ExcludeCase{"{n: \"!= 20\"}", {"h20s", "h20d", "l20s", "l20d"}},
        ExcludeCase{"{n: [10, \"> 20\"]}", {"h20s", "h20d", "l20s", "l20d"}},
        ExcludeCase{"{version: plantest_host}", {"l10s", "l10d", "l20s", "l20d", "l30s", "l30d"}},
        ExcludeCase{"{version: \"luigi_*\", precision: fp64}",
                    {"h10s", "h10d", "h20s", "h20d", "h30s", "h30d", "l10s", "l20s", "l30s"}},
        ExcludeCase{"{version: [\"luigi_*\", \"plan*\"], precision: \"*64\", n: \"> 10\"}",
                    {"h10s", "h10d", "h20s", "h30s", "l10s", "l10d", "l20s", "l30s"}},
        // plantest_host has no threads per block, so the key cannot match it.
        ExcludeCase{"{threads_per_block: 64}", {"h10s", "h10d", "h20s", "h20d", "h30s", "h30d"}},
        ExcludeCase{
            "{threads_per_block: \"!= 32\", n: 10}",
            {"h10s", "h10d", "h20s", "h20d", "h30s", "h30d", "l20s", "l20d", "l30s", "l30d"}},
        // A version that this spec does not have, or a value that no axis has, excludes nothing.
        ExcludeCase{"{version: plantest_unbuilt, n: 7}",
                    {"h10s", "h10d", "h20s", "h20d", "h30s", "h30d", "l10s", "l10d", "l20s", "l20d",
                     "l30s", "l30d"}},
        ExcludeCase{"{n: 10}\n  - {n: 30}", {"h20s", "h20d", "l20s", "l20d"}}));

DeviceLimits small_device() {
  DeviceLimits device;
  device.name = "Small GPU";
  device.max_threads_per_block = 512;
  device.shared_bytes = device.shared_bytes_optin = 49152;
  return device;
}

std::vector<std::string> reasons(const std::string& versions, const std::string& axes,
                                 const std::optional<DeviceLimits>& device) {
  Spec spec = load_text("name: t\nversions: [" + versions + "]\naxes: {n: [1000], " + axes +
                        "}\ndata: {generator: uniform}\nsolve: {iterations: 7}\n");
  decide_availability(spec.points, spec.stop, device, "no NVIDIA GPU was found", spec.data);
  std::vector<std::string> all;
  for (const Point& point : spec.points) {
    EXPECT_EQ(point.available, point.reason.empty());
    EXPECT_EQ(to_json(point).at("available"), point.available);
    EXPECT_EQ(to_json(point).at("reason").is_null(), point.available);
    all.push_back(point.reason);
  }
  return all;
}

TEST(Plan, InputAxesAreInIdsOnlyIfListed) {
  const std::string start = "name: t\nversions: [cpu_sequential]\naxes: {n: [10], k: [2]";
  const Point plain = load_text(start + "}\nsolve: {init: kmeans++, seed: 7}\n").points.at(0);
  EXPECT_EQ(plain.id, "cpu_sequential/n:10/k:2/dim:2/precision:fp32");
  EXPECT_EQ(plain.init, "kmeans++");
  EXPECT_EQ(plain.init_seed, 7u);
  EXPECT_EQ(plain.data_seed, 42u);

  const std::vector<Point> points =
      load_text(start + ", init: [random_points, kmeans++], init_seed: [3, 4]}\n").points;
  ASSERT_EQ(points.size(), 4u);
  EXPECT_EQ(points[3].id, "cpu_sequential/n:10/k:2/dim:2/precision:fp32/init:kmeans++/init_seed:4");
  EXPECT_EQ(points[3].init, "kmeans++");
  EXPECT_EQ(points[3].init_seed, 4u);
  EXPECT_NE(points[2].inputs(), points[3].inputs());

  Overrides overrides;
  overrides.set = {"data_seed=5"};
  const Point set = load_text(start + "}\n", overrides).points.at(0);
  EXPECT_EQ(set.id, "cpu_sequential/n:10/k:2/dim:2/precision:fp32/data_seed:5");
  EXPECT_EQ(set.source({{.source = {.generator = "uniform"}}}).describe(),
            "uniform(range=[0,1), seed=5)");
}

TEST(Plan, HostMemoryIsForVersionsOnAGpu) {
  const std::string start =
      "name: t\nversions: [cpu_sequential, luigi_v1_fused]\naxes: {n: [10], "
      "k: [2]";
  const std::string cpu = "cpu_sequential/n:10/k:2/dim:2/precision:fp32",
                    gpu = "luigi_v1_fused/n:10/k:2/dim:2/threads_per_block:256/precision:fp32";
  const std::vector<Point> plain = load_text(start + "}\n").points;
  ASSERT_EQ(plain.size(), 2u);
  EXPECT_EQ(plain[0].host_memory, "");
  EXPECT_TRUE(to_json(plain[0]).at("host_memory").is_null());
  EXPECT_EQ(plain[1].id, gpu);
  EXPECT_EQ(plain[1].host_memory, "pageable");

  const Spec both = load_text(start + ", host_memory: [pageable, pinned]}\n");
  ASSERT_EQ(both.points.size(), 3u);
  EXPECT_EQ(both.points[0].id, cpu);
  EXPECT_EQ(both.points[1].id, gpu + "/host_memory:pageable");
  EXPECT_EQ(both.points[2].id, gpu + "/host_memory:pinned");
  EXPECT_EQ(to_json(both.points[2]).at("host_memory"), "pinned");
}

TEST(Plan, ExcludeKnowsTheDefaultsOfInputAxes) {
  const std::string start =
      "name: t\nversions: [cpu_sequential]\naxes: {n: [10], k: [2, 3]}\nexclude: ";
  EXPECT_EQ(load_text(start + "[{k: 3, init: \"random*\"}]\n").points.size(), 1u);
  EXPECT_EQ(load_text(start + "[{k: 3, init: kmeans++}]\n").points.size(), 2u);
  EXPECT_EQ(load_text(start + "[{k: 3, init_seed: \"< 2\"}]\n").points.size(), 1u);
}

TEST(Availability, CpuVersionsNeedNoDevice) {
  EXPECT_EQ(reasons("cpu_sequential, plantest_host", "k: [5]", std::nullopt), (Words{"", ""}));
}

TEST(Availability, NoDevice) {
  EXPECT_EQ(reasons("plantest_everything", "k: [5]", std::nullopt),
            (Words{"no NVIDIA GPU was found"}));
}

TEST(Availability, BuiltWithoutCuda) {
  const std::string reason = "built without CUDA (configure with -DLLOYD_CUDA=ON)";
  EXPECT_EQ(reasons("plantest_unbuilt", "k: [5]", std::nullopt), (Words{reason}));
  EXPECT_EQ(reasons("plantest_unbuilt", "k: [5]", small_device()), (Words{reason}));
}

TEST(Availability, PrecisionThatTheVersionDoesNotComputeIn) {
  EXPECT_EQ(reasons("plantest_host", "k: [5], precision: [fp64, fp32]", std::nullopt),
            (Words{"computes in fp32 only, not fp64", ""}));
  EXPECT_EQ(reasons("plantest_everything", "k: [5], precision: [bf16, fp16]", small_device()),
            (Words{"computes in fp32, fp16 only, not bf16", ""}));
}

TEST(Availability, TheVersionsOwnLimits) {
  EXPECT_EQ(
      reasons("plantest_everything", "k: [100, 101], samples_per_thread: [4]", small_device()),
      (Words{"", "k = 101, samples 4, on Small GPU, stop after 7"}));
}

TEST(Availability, ThreadsPerBlock) {
  EXPECT_EQ(
      reasons("plantest_everything", "k: [5], threads_per_block: [512, 1024]", small_device()),
      (Words{"", "needs 1024 threads per block, device allows 512"}));
}

TEST(Availability, AsManyGpusAsReachEachOther) {
  const std::string two =
      "needs 2 GPUs, this machine has 1 (GPU 0 and those of its model after it "
      "that reach each other's memory)";
  EXPECT_EQ(reasons("plantest_everything", "k: [5], gpus: [1, 2]", small_device()),
            (Words{"", two}));
  DeviceLimits pair = small_device();
  pair.team = {0, 1};
  EXPECT_EQ(reasons("plantest_everything", "k: [5], gpus: [1, 2]", pair), (Words{"", ""}));
  EXPECT_EQ(reasons("plantest_everything", "k: [5], gpus: [1, 2]", std::nullopt),
            (Words{"no NVIDIA GPU was found", "needs 2 GPUs; no NVIDIA GPU was found"}));
}

TEST(Plan, KnowsTheMostGpusOfItsPoints) {
  EXPECT_EQ(most_gpus({}), 1);
  EXPECT_EQ(most_gpus(load_text("name: t\nversions: [cpu_sequential, plantest_everything]\n"
                                "axes: {n: [10], k: [2], gpus: [1, 4, 2]}\n")
                          .points),
            4);
}

TEST(Availability, AVersionThatThisBuildDoesNotKnow) {
  std::vector<Point> points(1);
  points.front().version = "plantest_gone";
  decide_availability(points, Stop{}, small_device(), "", {{.source = {.generator = "uniform"}}});
  EXPECT_FALSE(points.front().available);
  EXPECT_EQ(points.front().reason, "this build has no version of that name");
}

TEST(Availability, ADecisionReplacesTheOneBefore) {
  Spec spec = load_text(
      "name: t\nversions: [plantest_everything]\naxes: {n: [10], k: [2]}\n"
      "data: {generator: uniform}\n");
  decide_availability(spec.points, spec.stop, std::nullopt, "busy", spec.data);
  EXPECT_EQ(spec.points.front().reason, "busy");
  decide_availability(spec.points, spec.stop, small_device(), "", spec.data);
  EXPECT_TRUE(spec.points.front().available);
  EXPECT_EQ(spec.points.front().reason, "");
}

}  // namespace
}  // namespace lloyd::testing
