#include "experiments/summary.h"

#include <gtest/gtest.h>

namespace lloyd {
namespace {

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
  const std::vector<SummaryLine> lines = summarize(spec, rows);
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[0].speedup, "1×");
  EXPECT_EQ(lines[1].speedup, "4×");
  EXPECT_EQ(lines[1].iteration, "2.00 ms");  // three samples: no interval
  EXPECT_EQ(lines[2].status, "timeout");
  EXPECT_EQ(lines[2].reason, "too slow");
  EXPECT_EQ(lines[3].status, "not run");
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
    rows.push_back(unmeasured_row(p, {"uniform", 42, 4, "core"}, std::nullopt, "timeout", ""));
    EXPECT_EQ(rows.back().at("binding"), "core");
  }
  EXPECT_EQ(rows[0].at("oversubscribed"), false);
  EXPECT_EQ(rows[1].at("oversubscribed"), true);
  EXPECT_TRUE(ok_row(point("cpu_sequential", 5), 1).at("oversubscribed").is_null());
  const std::vector<SummaryLine> lines = summarize(spec, rows);
  EXPECT_EQ(lines[0].parameters, "n:100 k:5 dim:2 precision:fp32 processes:2");
  EXPECT_EQ(lines[1].parameters, "n:100 k:5 dim:2 precision:fp32 processes:3 (oversubscribed)");
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
