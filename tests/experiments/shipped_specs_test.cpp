// Tests the specs in experiments/sweeps.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "experiments/measure/external.h"
#include "experiments/process/program_files.h"
#include "experiments/spec/shard.h"
#include "kernels/core/version.h"
#include "tests/experiments/spec_text.h"

namespace lloyd::testing {
namespace {

/// However many parts there are, each has points, and each problem is in one of them.
void expect_whole_parts(const Spec& spec) {
  const int most = static_cast<int>(std::min<std::size_t>(problems_of(spec), 12));
  for (int count = 1; count <= most; ++count) {
    const std::vector<int> parts = divide(spec, count);
    ASSERT_EQ(parts.size(), spec.points.size());
    std::map<std::string, int> part_of;
    for (std::size_t i = 0; i < parts.size(); ++i)
      EXPECT_EQ(part_of.emplace(spec.points[i].inputs(), parts[i]).first->second, parts[i]);
    EXPECT_EQ(std::set<int>(parts.begin(), parts.end()).size(), static_cast<std::size_t>(count));
    EXPECT_GE(*std::ranges::min_element(parts), 1);
    EXPECT_LE(*std::ranges::max_element(parts), count);
  }
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
      EXPECT_EQ(spec.unread_axes, std::vector<std::string>{});
      // These specs have a baseline other than cpu_sequential. The flores_alves study compares with
      // its OpenMP program. In `dims` a single core would take hours. Weak scaling compares with
      // one worker of the same version, and several GPUs each with its own version for one.
      // counters and convergence compare no versions.
      const std::map<std::string, std::string> others{{"counters", ""},
                                                      {"convergence", ""},
                                                      {"cpu_regimes", "best:cpu"},
                                                      {"cpu_sweep", "best:cpu"},
                                                      {"luigi_nvprof", ""},
                                                      {"multi_gpu", ""},
                                                      {"multi_gpu_weak", ""},
                                                      {"multi_process", ""},
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
                                                      {"fast_wide", "peer_flash_kmeans"},
                                                      {"fast_fp64", "fast_screen"},
                                                      {"batch", "peer_flash_kmeans"},
                                                      {"ivf", "peer_flash_kmeans"},
                                                      {"stream", "fast_wgmma"},
                                                      {"multi_stream", "stream_wgmma"},
                                                      {"real", "peer_flash_kmeans"},
                                                      {"real_cosine", "cpu_openmp"}};
      const auto other = others.find(spec.name);
      EXPECT_EQ(spec.baseline, other == others.end() ? "cpu_sequential" : other->second);
      EXPECT_FALSE(spec.title.empty());
      EXPECT_FALSE(spec.figures.empty());
      expect_whole_parts(spec);
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
  EXPECT_EQ(first("stamp.yaml"), "cpu_sequential/n:2048/k:16/dim:16/precision:fp64");
  EXPECT_EQ(first("stamp16384.yaml"), "cpu_sequential/n:16384/k:16/dim:24/precision:fp64");
}

}  // namespace
}  // namespace lloyd::testing
