// One line in kernels/core/axes.inc adds an axis. This program and the sources that know the axes
// are compiled with such a line (tests/CMakeLists.txt): `tile`, by default 8, from 1 to 64.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "experiments/measure/external_process.h"
#include "experiments/measure/external_protocol.h"
#include "experiments/record/rows.h"
#include "experiments/run/availability.h"
#include "experiments/run/job.h"
#include "experiments/run/lists.h"
#include "experiments/spec/schema.h"
#include "experiments/spec/spec.h"
#include "kernels/core/axes.h"

namespace lloyd {
namespace {

namespace fs = std::filesystem;

class Tiled : public Version {
 public:
  void prepare(const Problem&, Context&) override {}
  void run(Context& context) override { tiles_ = context.tunables.tile; }
  Solution fetch(Context&) override { return {{}, {}, tiles_}; }

 private:
  int tiles_ = 0;
};

LLOYD_VERSION(Tiled, {.name = "added_tiled",
                      .family = "added",
                      .axes = {"tile"},
                      .summary = "reads the added axis",
                      .unsupported = [](const Problem&, const Tunables& tunables,
                                        const DeviceLimits&) -> std::optional<std::string> {
                        if (tunables.tile <= 32) return std::nullopt;
                        return "needs a tile of at most 32, not " + std::to_string(tunables.tile);
                      }});

class Plain : public Tiled {};
LLOYD_VERSION(Plain, {.name = "added_plain", .family = "added", .summary = "reads no axis"});

class AddedAxis : public testing::Test {
 protected:
  void SetUp() override {
    // Tests run at the same time, each in a process of its own.
    folder_ = fs::path(testing::TempDir()) / ("added_axis_" + std::to_string(getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  fs::path written(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
    return folder_ / name;
  }
  Spec read(const std::string& axes, const std::vector<std::string>& set = {}) const {
    Overrides overrides;
    overrides.set = set;
    return load_spec(written("a.yaml", "name: a\nversions: [\"added_*\"]\naxes: {n: [9], k: [2], " +
                                           axes + "}\ndata: {generator: uniform}\n"),
                     overrides, "a.yaml");
  }
  std::string error_of(const std::string& axes) const {
    try {
      read(axes);
    } catch (const SpecError& error) {
      return error.what();
    }
    return "";
  }

  fs::path folder_;
};

TEST_F(AddedAxis, MakesPointsAndReachesTheVersion) {
  std::vector<Point> points = read("tile: [16, 64]").points;
  ASSERT_EQ(points.size(), 3u);
  EXPECT_EQ(points[0].id, "added_plain/n:9/k:2/dim:2/precision:fp32");
  EXPECT_EQ(points[0].tile, std::nullopt);
  EXPECT_EQ(points[1].id, "added_tiled/n:9/k:2/dim:2/precision:fp32/tile:16");
  EXPECT_EQ(points[2].tile, 64);

  decide_availability(points, {}, std::nullopt, "no GPU", {{.source = {.generator = "uniform"}}});
  EXPECT_TRUE(points[1].available);
  EXPECT_EQ(points[2].reason, "needs a tile of at most 32, not 64");

  Context context;
  context.tunables = points[1].tunables();
  const auto version = find_version("added_tiled")->make();
  version->run(context);
  EXPECT_EQ(version->fetch(context).iterations, 16);
}

TEST_F(AddedAxis, HasADefaultARangeAndASuggestion) {
  EXPECT_EQ(read("dim: [3]").points.back().tile, 8);
  EXPECT_EQ(read("dim: [3]", {"tile=4"}).points.back().tile, 4);
  EXPECT_EQ(error_of("tile: [65]"), "a.yaml:3:31: tile must be from 1 to 64, not 65");
  EXPECT_EQ(error_of("tlie: [4]"), "a.yaml:3:24: unknown axis 'tlie'; did you mean 'tile'?");
}

TEST_F(AddedAxis, IsInJobsAndRows) {
  const std::vector<Point> points = read("tile: [16]").points;
  EXPECT_EQ(to_json(points[1]).at("tile"), 16);
  EXPECT_EQ(to_json(points[0]).at("tile"), nullptr);
  Job job;
  job.points = points;
  const Job received = job_from_json(to_json(job));
  EXPECT_EQ(received.points[0].tile, std::nullopt);
  EXPECT_EQ(received.points[1].tile, 16);
  EXPECT_EQ(measurement_row(points[1], {}, std::nullopt).at("tile"), 16);
}

TEST_F(AddedAxis, IsListed) {
  testing::internal::CaptureStdout();
  list_axes(true);
  const auto listed = nlohmann::json::parse(testing::internal::GetCapturedStdout());
  EXPECT_EQ(listed.back(), nlohmann::json({{"axis", "tile"},
                                           {"default", 8},
                                           {"lowest", 1},
                                           {"highest", 64},
                                           {"values", nullptr},
                                           {"read_by", "versions that list it"},
                                           {"text", "points in a tile"}}));
}

TEST_F(AddedAxis, IsInTheSchema) {
  const auto tile = spec_schema().at("properties").at("axes").at("properties").at("tile");
  EXPECT_EQ(tile.at("default"), 8);
  EXPECT_EQ(tile.at("description"), "points in a tile");
  EXPECT_EQ(tile.at("anyOf")[0].at("maximum"), 64);
}

TEST_F(AddedAxis, IsInTheExternalProtocol) {
  std::string unavailable;
  const VersionInfo info = parse_description(
      "toy_tiled",
      R"({"name": "toy_tiled", "family": "toy", "backend": "cpu", "axes": ["tile"],
          "precisions": ["fp32"], "distance": "direct", "summary": "a toy", "available": true})",
      unavailable);
  EXPECT_EQ(info.axes, std::vector<std::string>{"tile"});

  const fs::path request = folder_ / "request.json";
  const fs::path toy =
      written("toy_tiled", "#!/bin/sh\nread -r line\necho \"$line\" >" + request.string() +
                               "\necho '{\"ok\": false, \"reason\": \"seen\"}'\n");
  fs::permissions(toy, fs::perms::owner_all);
  Context context;
  context.tunables.tile = 21;
  EXPECT_THROW(external_version(toy)()->prepare({}, context), std::runtime_error);
  std::ifstream file(request);
  EXPECT_EQ(nlohmann::json::parse(file).at("tile"), 21);
}

}  // namespace
}  // namespace lloyd
