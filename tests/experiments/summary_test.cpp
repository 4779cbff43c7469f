#include "experiments/record/summary.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace lloyd {
namespace {

/// What a summary takes from environment.json, of a machine without a GPU.
nlohmann::ordered_json environment_of(const std::string& host) {
  return {{"gpus", nlohmann::ordered_json::array()},
          {"t_utc", "2026"},
          {"host", host},
          {"cpu", {{"model", nullptr}, {"cores", 2}}},
          {"build", {{"commit", "1"}, {"dirty", false}}}};
}

Point point(const std::string& version, int k) {
  Point p;
  p.version = version;
  p.id = version + "/n:100/k:" + std::to_string(k) + "/dim:2/precision:fp32";
  p.n = 100;
  p.k = k;
  p.dim = 2;
  return p;
}

Row ok_row(const Point& p, double ms) {
  Row row = measurement_row(p, {"uniform", 42}, std::nullopt);
  row["status"] = "ok";
  row["iteration_ms"] = ms;
  row["solve_ms"] = 20 * ms;
  return row;
}

TEST(FormatMs, KeepsThreeDigits) {
  EXPECT_EQ(format_ms(0.0012345), "1.23 µs");
  EXPECT_EQ(format_ms(0.5), "500 µs");
  EXPECT_EQ(format_ms(45.67), "45.7 ms");
  EXPECT_EQ(format_ms(1234.0), "1.23 s");
}

TEST(Summary, DividesByTheBaselineOfTheSameProblem) {
  Spec spec;
  spec.baseline = "cpu_sequential";
  spec.points = {point("cpu_sequential", 5), point("cpu_openmp", 5), point("cpu_openmp", 7),
                 point("cpu_openmp", 9)};
  std::vector<Row> rows;
  for (const double ms : {7.0, 8.0, 9.0}) rows.push_back(ok_row(spec.points[0], ms));
  for (const double ms : {3.0, 2.0, 1.0}) rows.push_back(ok_row(spec.points[1], ms));
  rows.push_back(
      unmeasured_row(spec.points[2], {"uniform", 42}, std::nullopt, "timeout", "too slow"));
  const std::vector<SummaryLine> lines = summarize(spec, rows, {});
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[0].speedup, "1×");
  EXPECT_EQ(lines[1].speedup, "4×");
  EXPECT_EQ(lines[1].median, "2.00 ms");
  EXPECT_EQ(lines[1].interval, "");  // three samples
  EXPECT_EQ(lines[2].status, "timeout");
  EXPECT_EQ(lines[2].reason, "too slow");
  EXPECT_EQ(lines[3].status, "not run");
}

TEST(Summary, HasIterationsTimeAndInertiaWhereARuleMayEndASolve) {
  Spec spec;
  spec.points = {point("cpu_sequential", 5), point("cpu_openmp", 5)};
  std::vector<Row> rows;
  for (const int iterations : {12, 31, 12}) {
    rows.push_back(ok_row(spec.points[0], 2));
    rows.back()["iterations"] = iterations;
    rows.back()["solve_ms"] = 2 * iterations;
    rows.back()["inertia"] = 1000 + iterations;
  }
  const Terminal wide{.width = 200};
  EXPECT_EQ(summarize(spec, rows, {})[0].iterations, "");
  EXPECT_EQ(summary_table(summarize(spec, rows, {}), wide).find("inertia"), std::string::npos);
  spec.stop.tolerance = 1e-4;
  const std::vector<SummaryLine> lines = summarize(spec, rows, {});
  EXPECT_EQ(lines[0].iterations, "12 to 31");
  EXPECT_EQ(lines[0].total, "24.0 ms");
  EXPECT_EQ(lines[0].inertia, "1012");
  EXPECT_EQ(lines[1].total, "");  // not run
  const std::string table = summary_table(lines, wide);
  for (const char* text : {"iterations", "solve", "inertia", "12 to 31", "24.0 ms", "1012"})
    EXPECT_NE(table.find(text), std::string::npos) << text;
}

TEST(Summary, HasWholeJobsWhereAPointRanOnAGpu) {
  Spec spec;
  spec.points = {point("cpu_sequential", 5), point("luigi_v1_fused", 5),
                 point("luigi_v1_fused", 7)};
  std::vector<Row> rows;
  for (const double ms : {30.0, 31.0, 35.0}) {
    rows.push_back(ok_row(spec.points[0], 2));
    rows.back()["end_to_end_ms"] = ms + 10;
  }
  EXPECT_EQ(summarize(spec, rows, {})[0].whole, "");
  for (const double ms : {30.0, 31.0, 35.0}) {
    rows.push_back(ok_row(spec.points[1], 1));
    rows.back()["end_to_end_ms"] = ms;
  }
  rows.push_back(ok_row(spec.points[2], 1));  // does not report it
  const std::vector<SummaryLine> lines = summarize(spec, rows, {});
  EXPECT_EQ(lines[0].whole, "41.0 ms");
  EXPECT_EQ(lines[1].whole, "31.0 ms");
  EXPECT_EQ(lines[2].whole, "");
  const std::string table = summary_table(lines, {.width = 200});
  for (const char* text : {"end to end", "41.0 ms", "31.0 ms"})
    EXPECT_NE(table.find(text), std::string::npos) << text;
}

TEST(Summary, IsOverTheFp32OfABaselineThatLacksThePrecision) {
  Spec spec;
  spec.baseline = "cpu_sequential";
  spec.points = {point("cpu_sequential", 5), point("luigi_v1_fused", 5)};
  spec.points[1].precision = Precision::fp16;
  const std::vector<SummaryLine> lines =
      summarize(spec, {ok_row(spec.points[0], 8), ok_row(spec.points[1], 2)}, {});
  EXPECT_EQ(lines[1].speedup, "4×");
  EXPECT_EQ(lines[1].over, "");
}

TEST(Summary, TakesTheFastestVerifiedVersionOnTheCpuOfEachProblem) {
  Spec spec;
  spec.baseline = kBestCpu;
  for (const int k : {5, 7})
    for (const char* version : {"cpu_sequential", "cpu_openmp", "cpu_eigen", "luigi_v1_fused"})
      spec.points.push_back(point(version, k));
  const double ms[] = {8, 4, 2, 1, 3, 6, 12, 1};
  std::vector<Row> rows;
  for (std::size_t i = 0; i < spec.points.size(); ++i) {
    rows.push_back(ok_row(spec.points[i], ms[i]));
    rows.back()["verified"] = spec.points[i].version != "cpu_eigen";
  }
  std::vector<SummaryLine> lines = summarize(spec, rows, {});
  // cpu_eigen, faster at k = 5, is not verified; luigi_v1_fused runs on the GPU
  const char* speedups[] = {"0.5×", "1×", "2×", "4×", "1×", "0.5×", "0.25×", "3×"};
  for (std::size_t i = 0; i < lines.size(); ++i) {
    EXPECT_EQ(lines[i].speedup, speedups[i]) << lines[i].point;
    EXPECT_EQ(lines[i].over, i < 4 ? "cpu_openmp" : "cpu_sequential");
  }
  EXPECT_NE(summary_table(lines, {}).find("  speedup  over"), std::string::npos);
  EXPECT_NE(summary_table(lines, {}).find("       4×  cpu_openmp"), std::string::npos);
  // a CPU of another machine is no denominator
  rows[3]["host"] = "elsewhere";
  EXPECT_EQ(summarize(spec, rows, {})[3].speedup, "");
}

TEST(Summary, TellsHostsOfOneNameApartByTheirGpus) {
  Spec spec;
  spec.baseline = "wang_global";
  spec.points = {point("wang_global", 5), point("wang_shared", 5), point("cpu_openmp", 5)};
  std::vector<Row> rows;
  for (const Point& of : spec.points) rows.push_back(ok_row(of, 1));
  const auto on = [&](const char* baseline, const char* other) {
    rows[0]["gpu_uuid"] = baseline;
    rows[1]["gpu_uuid"] = other;
    return summarize(spec, rows, {});
  };
  EXPECT_EQ(on("GPU-a", "GPU-a,GPU-b")[1].speedup, "1×");
  EXPECT_EQ(on("GPU-a", "GPU-a")[2].speedup, "1×");
  const std::vector<SummaryLine> apart = on("GPU-a", "GPU-b");
  EXPECT_EQ(apart[0].speedup, "1×");
  EXPECT_EQ(apart[1].speedup, "");
  EXPECT_NE(apart[1].remark.find("with GPU-b, but the baseline on"), std::string::npos);
  EXPECT_EQ(apart[2].speedup, "");  // it may be of either host
  // a node has one place, whatever its GPUs
  for (Row& row : rows) row["node"] = "n1";
  EXPECT_EQ(on("GPU-a", "GPU-b")[1].speedup, "1×");
}

TEST(Summary, TakesTheMedianOfTheLaunchesMedians) {
  Spec spec;
  spec.baseline = "cpu_sequential";
  spec.points = {point("cpu_sequential", 5), point("cpu_openmp", 5)};
  std::vector<Row> rows;
  const auto add = [&](const Point& of, int launch, const std::vector<double>& samples) {
    for (const double ms : samples) {
      rows.push_back(ok_row(of, ms));
      rows.back()["launch"] = launch;
    }
  };
  add(spec.points[0], 0, {8, 8, 8});
  // The median of all 11 samples together would be 1 ms.
  add(spec.points[1], 0, {1, 1, 1, 1, 1, 1, 1});
  add(spec.points[1], 1, {2, 2});
  add(spec.points[1], 2, {4, 4});
  const std::vector<SummaryLine> lines = summarize(spec, rows, {});
  // 2 · exp(±4.302653 · ln 2 / √3)
  EXPECT_EQ(lines[1].median, "2.00 ms");
  EXPECT_EQ(lines[1].interval, "[357 µs, 11.2 ms]");
  EXPECT_EQ(lines[1].noise, "still noisy: interval ±271% after 11 samples");  // of that interval
  EXPECT_EQ(lines[1].speedup, "4×");
}

TEST(Summary, CountsTheRestartsNearTheBestAndTakesEachAsOneObservation) {
  Spec spec;
  spec.restarts = 3;
  spec.points = {point("cpu_sequential", 5)};
  std::vector<Row> rows;
  const double ms[] = {1, 2, 4}, inertia[] = {100, 100.9, 101.1};
  for (int launch = 0; launch < 2; ++launch)
    for (int restart = 0; restart < 3; ++restart)
      for (int i = 0; i < 7; ++i) {
        rows.push_back(ok_row(spec.points[0], ms[restart]));
        rows.back()["launch"] = launch;
        rows.back()["restart"] = restart;
        rows.back()["inertia"] = inertia[restart];
      }
  const std::vector<SummaryLine> lines = summarize(spec, rows, {});
  EXPECT_EQ(lines[0].median, "2.00 ms");
  EXPECT_EQ(lines[0].interval, "[357 µs, 11.2 ms]");  // of three observations, not of 42
  EXPECT_EQ(lines[0].inertia, "100");
  EXPECT_EQ(lines[0].restarts, "2 of 3");
  EXPECT_NE(summary_table(lines, {}).find("restarts within 1%"), std::string::npos);
}

TEST(Summary, NamesEachHostOfTheParts) {
  nlohmann::ordered_json environment = environment_of("first");
  nlohmann::ordered_json other = environment_of("vm");
  other["node"] = "n2";
  other["cpu"] = {{"model", "Xeon"}, {"cores", 1}};
  const std::string alone = summary_markdown(Spec{}, {}, environment);
  EXPECT_NE(alone.find("2026 on first: unknown CPU (2 cores), no GPU."), std::string::npos)
      << alone;
  environment["parts"] = {{{"environment", environment}}, {{"environment", other}}};
  const std::string text = summary_markdown(Spec{}, {}, environment);
  EXPECT_NE(text.find("2026 on first: unknown CPU (2 cores), n2: Xeon (1 core), no GPU."),
            std::string::npos)
      << text;
}

TEST(Summary, NothingOfAVersionIsMarkdownOrMovesTheCursor) {
  Spec spec;
  spec.points = {point("cpu_openmp", 5)};
  spec.title = "<script>alert(1)</script> | `x`";
  const std::string reason = "\x1b[2J|<img src=x>\n| fake | row | ok | 1 ms | 9x |\n\xff";
  const std::vector<SummaryLine> lines = summarize(
      spec, {unmeasured_row(spec.points[0], {"uniform", 42}, std::nullopt, "failed", reason)}, {});
  EXPECT_EQ(lines[0].reason, reason);  // rows keep the original text
  const std::string table = summary_table(lines, {});
  EXPECT_NE(table.find("\\x1b[2J|<img src=x>\\x0a| fake"), std::string::npos) << table;
  EXPECT_EQ(table.find('\x1b'), std::string::npos);
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), 2) << table;
  const std::string markdown = summary_markdown(spec, lines, environment_of("a|<b>"));
  EXPECT_NE(markdown.find("# \\<script\\>alert(1)\\</script\\> \\| \\`x\\`\n"), std::string::npos)
      << markdown;
  EXPECT_NE(markdown.find("on a\\|\\<b\\>"), std::string::npos) << markdown;
  EXPECT_NE(markdown.find("\\\\x1b\\[2J\\|\\<img src=x\\>"), std::string::npos) << markdown;
  EXPECT_EQ(markdown.find("\n| fake"), std::string::npos) << markdown;
}

TEST(Summary, SaysOnceWhyManyPointsAreUnsupported) {
  Spec spec;
  std::vector<Row> rows;
  for (const int k : {5, 6, 7, 8}) {
    spec.points.push_back(point("luigi_v1_fused", k));
    rows.push_back(unmeasured_row(spec.points.back(), {"uniform", 42}, std::nullopt, "unsupported",
                                  "no CUDA device: none"));
  }
  spec.points.push_back(point("cpu_openmp", 5));
  rows.push_back(
      unmeasured_row(spec.points.back(), {"uniform", 42}, std::nullopt, "timeout", "too slow"));
  const std::string markdown =
      summary_markdown(spec, summarize(spec, rows, {}), environment_of("h"));
  EXPECT_TRUE(markdown.ends_with(
      "| cpu_openmp | n:100 k:5 dim:2 precision:fp32 | timeout | too slow |  |  |\n"
      "\nUnsupported here:\n\n* 4 points of luigi_v1_fused: no CUDA device: none\n"))
      << markdown;
}

TEST(Summary, SaysWhetherSolvesMayEndEarlier) {
  const nlohmann::ordered_json environment = environment_of("h");
  Spec spec;
  spec.stop.iterations = 7;
  EXPECT_NE(summary_markdown(spec, {}, environment).find("7 iterations, initial"),
            std::string::npos);
  spec.stop.tolerance = 0.1;
  EXPECT_NE(summary_markdown(spec, {}, environment).find("7 iterations at most, initial"),
            std::string::npos);
}

TEST(Summary, CountsTheCores) {
  nlohmann::ordered_json environment = environment_of("h");
  const auto has = [&](const char* text) {
    return summary_markdown(Spec{}, {}, environment).find(text) != std::string::npos;
  };
  EXPECT_TRUE(has("h: unknown CPU (2 cores), no GPU."));
  environment["cpu"]["cores"] = 1;
  EXPECT_TRUE(has("h: unknown CPU (1 core), no GPU."));
}

TEST(FormatInterval, NamesAUnitOnce) {
  EXPECT_EQ(format_interval(1.2, 1.25), "[1.20, 1.25 ms]");
  EXPECT_EQ(format_interval(0.5, 1.25), "[500 µs, 1.25 ms]");
}

/// Two points that were measured, and two of one other version that were not.
std::vector<SummaryLine> four_points() {
  std::vector<SummaryLine> lines(4);
  for (int i = 0; i < 4; ++i) {
    const Point p = point(i < 2 ? "cpu_sequential" : "luigi_v1_fused", i % 2 == 0 ? 5 : 100);
    SummaryLine& line = lines[static_cast<std::size_t>(i)];
    line.point = p.id;
    line.version = p.version;
    line.status = i < 2 ? "ok" : "unsupported";
    line.reason = i < 2 ? "" : "no CUDA device: no NVIDIA driver is installed";
    if (i < 2) line.median = "4.93 µs";
    if (i < 2) line.speedup = "1×";
  }
  lines[0].interval = "[4.88, 5.01 µs]";
  lines[0].noise = "noisy: 6 of 6 samples";
  return lines;
}

TEST(SummaryTable, NamesWhatAllPointsShareAndEachReasonOnce) {
  EXPECT_EQ(summary_table(four_points(), {}),
            "all points: n:100 dim:2 precision:fp32\n"
            "version           k  per iteration     95% interval  speedup\n"
            "cpu_sequential    5        4.93 µs  [4.88, 5.01 µs]       1×  noisy: 6 of 6 samples\n"
            "cpu_sequential  100        4.93 µs                        1×\n"
            "\n"
            "unsupported  luigi_v1_fused k:5, luigi_v1_fused k:100\n"
            "             no CUDA device: no NVIDIA driver is installed\n");
}

TEST(SummaryTable, KeepsToANarrowWindow) {
  EXPECT_EQ(summary_table(four_points(), {50, false, false}),
            "all points: n:100 dim:2 precision:fp32\n"
            "version           k        per       95%  speedup\n"
            "                     iteration  interval\n"
            "cpu_sequential    5    4.93 µs    [4.88,       1×\n"
            "                                5.01 µs]\n"
            "    noisy: 6 of 6 samples\n"
            "cpu_sequential  100    4.93 µs                 1×\n"
            "\n"
            "unsupported  luigi_v1_fused k:5, luigi_v1_fused\n"
            "             k:100\n"
            "             no CUDA device: no NVIDIA driver is\n"
            "             installed\n");
}

TEST(SummaryTable, HasStatusesWhereTheyDiffer) {
  std::vector<SummaryLine> lines = four_points();
  lines[1].status = "unfinished";
  const std::string text = summary_table(lines, {100, true, false});
  EXPECT_NE(text.find("  \033[32mok\033[0m  "), std::string::npos) << text;
  EXPECT_NE(text.find("  \033[33munfinished\033[0m  "), std::string::npos) << text;
  EXPECT_NE(text.find("\n\033[33munsupported\033[0m  luigi"), std::string::npos) << text;
}

TEST(Summary, SaysWhatPartOfAFileIsUsed) {
  const Point p = point("cpu_sequential", 5);  // uses 100 × 2 values
  EXPECT_EQ(data_part(p, {}), "");
  EXPECT_EQ(data_part(p, {100, 2}), "");
  EXPECT_EQ(data_part(p, {5000, 2}), "first 100 of 5,000 rows");
  EXPECT_EQ(data_part(p, {100, 20}), "first 2 of 20 columns");
  EXPECT_EQ(data_part(p, {5000, 20}), "first 100 of 5,000 rows, first 2 of 20 columns");
  RowSource source{"a.csv", std::nullopt};
  EXPECT_TRUE(measurement_row(p, source, std::nullopt).at("data_part").is_null());
  source.file = {5000, 2};
  EXPECT_EQ(measurement_row(p, source, std::nullopt).at("data_part"), "first 100 of 5,000 rows");
  Spec spec;
  spec.points = {p};
  spec.data[0].extent = {5000, 2};
  EXPECT_EQ(summarize(spec, {ok_row(p, 1)}, {})[0].remark, "first 100 of 5,000 rows");
}

TEST(Summary, MarksWhatHasMoreThreadsThanCores) {
  Spec spec;
  std::vector<Row> rows;
  for (const int processes : {2, 3}) {
    Point p = point("cpu_mpi_openmp", 5);
    p.processes = processes;
    p.threads = 2;
    p.id += "/processes:" + std::to_string(processes);
    spec.points.push_back(p);
    rows.push_back(unmeasured_row(p, {"uniform", 42, 4, {}, "core"}, std::nullopt, "timeout", ""));
    EXPECT_EQ(rows.back().at("binding"), "core");
  }
  EXPECT_EQ(rows[0].at("oversubscribed"), false);
  EXPECT_EQ(rows[1].at("oversubscribed"), true);
  EXPECT_TRUE(ok_row(point("cpu_sequential", 5), 1).at("oversubscribed").is_null());
  const std::vector<SummaryLine> lines = summarize(spec, rows, {});
  EXPECT_EQ(lines[0].remark, "");
  EXPECT_EQ(lines[1].remark, "oversubscribed");
}

TEST(BenchmarkJson, HasAnEntryPerOkRow) {
  const Point p = point("cpu_openmp", 5);
  const nlohmann::ordered_json environment = {
      {"t_utc", "now"}, {"host", "h"}, {"cpu", {{"cores", 2}}}};
  const auto json = benchmark_json(
      {ok_row(p, 2),
       unmeasured_row(point("cpu_openmp", 7), {"uniform", 42}, std::nullopt, "failed", "x")},
      environment);
  ASSERT_EQ(json.at("benchmarks").size(), 1u);
  EXPECT_EQ(json.at("benchmarks")[0].at("name"), p.id);
  EXPECT_EQ(json.at("benchmarks")[0].at("real_time"), 40.0);
  EXPECT_EQ(json.at("benchmarks")[0].at("time_unit"), "ms");
}

}  // namespace
}  // namespace lloyd
