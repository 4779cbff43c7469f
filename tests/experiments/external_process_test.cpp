// Tests what an external version is told about a problem.
#include "experiments/measure/external_process.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

#include "tests/experiments/spec_text.h"

namespace lloyd {
namespace {

// A version that keeps its first request in the current directory.
constexpr const char* kRecorder = R"(#!/bin/sh
while read -r request; do
  [ -e request.json ] || printf '%s' "$request" >request.json
  echo '{"ok": true}'
done
)";

nlohmann::json request_with(int gpus, const std::vector<int>& team) {
  const testing::Folder folder;
  folder.write("toy_recorder", kRecorder);
  const std::filesystem::path file = folder.path() / "toy_recorder";
  std::filesystem::permissions(file, std::filesystem::perms::owner_all);
  const std::vector<float> points = {0, 1, 5}, centroids = {0, 1};
  Problem problem;
  problem.n = 3;
  problem.k = 2;
  problem.dim = 1;
  problem.points = points;
  problem.centroids = centroids;
  Context context;
  context.tunables.gpus = gpus;
  context.device.index = team.empty() ? 0 : team.front();
  context.device.team = team;
  external_version(file)()->prepare(problem, context);
  std::ifstream request("request.json");
  return nlohmann::json::parse(request);
}

TEST(ExternalVersion, IsToldTheGpusOfASolve) {
  EXPECT_EQ(request_with(2, {1, 3, 4})["devices"], nlohmann::json({1, 3}));
  EXPECT_EQ(request_with(1, {1, 3})["devices"], nlohmann::json({1}));
  EXPECT_EQ(request_with(1, {1, 3})["device"], 1);
  EXPECT_EQ(request_with(1, {})["devices"], nlohmann::json::array());
}

}  // namespace
}  // namespace lloyd
