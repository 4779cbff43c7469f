#include "experiments/record/run_directory.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "experiments/record/environment_file.h"
#include "experiments/record/started_run.h"
#include "experiments/record/timeline_file.h"
#include "tests/folder_test.h"

namespace lloyd {
namespace {

namespace fs = std::filesystem;

class RunDirectoryTest : public FolderTest {
 protected:
  static Row row(const std::string& point, int launch, int repetition,
                 const std::string& status = "ok") {
    Row row;
    row["point"] = point;
    row["launch"] = launch;
    row["repetition"] = repetition;
    row["status"] = status;
    row["reason"] = status == "ok" ? Row(nullptr) : Row("why");
    row["oversubscribed"] = false;
    row["backend"] = "cpu";
    row["host"] = "h";
    row["verified"] = true;
    row["solve_ms"] = 10 * launch + repetition;
    row["iteration_ms"] = 1;
    row["noisy"] = false;
    row["throttle"] = nullptr;
    return row;
  }

  static Row finished(const std::string& point, int launch) {
    Row row;
    row["point"] = point;
    row["pass"] = "timing";
    row["launch"] = launch;
    row["status"] = "ok";
    return row;
  }

  static std::string text(const fs::path& path) {
    std::stringstream content;
    content << std::ifstream(path).rdbuf();
    return content.str();
  }

  static std::string refusal(const std::function<void()>& action) {
    try {
      action();
    } catch (const RunDirectoryError& error) {
      return error.what();
    }
    return "accepted";
  }

  int folders_ = 0;
};

TEST_F(RunDirectoryTest, MakesParents) {
  const RunDirectory directory = RunDirectory::create(folder_ / "a" / "b");
  EXPECT_TRUE(fs::is_directory(folder_ / "a" / "b"));
}

TEST_F(RunDirectoryTest, IsNeverWrittenOver) {
  RunDirectory::create(folder_ / "run").write("plan.json", "{}");
  EXPECT_NE(refusal([&] { RunDirectory::create(folder_ / "run"); }).find("holds plan.json already"),
            std::string::npos);
}

TEST_F(RunDirectoryTest, RefusesASecondWriter) {
  RunDirectory first = RunDirectory::create(folder_ / "run");
  first.write("plan.json", "{}");
  EXPECT_NE(
      refusal([&] { RunDirectory::create(folder_ / "run"); }).find("another run is writing there"),
      std::string::npos);
  EXPECT_NE(
      refusal([&] { RunDirectory::open(folder_ / "run"); }).find("another run is writing there"),
      std::string::npos);
}

TEST_F(RunDirectoryTest, RefusesWhatIsNoRun) {
  EXPECT_NE(refusal([&] { RunDirectory::open(folder_); }).find("is not a run directory"),
            std::string::npos);
  std::ofstream(folder_ / "file");
  EXPECT_NE(refusal([&] { RunDirectory::create(folder_ / "file"); }).find("cannot make the folder"),
            std::string::npos);
}

TEST_F(RunDirectoryTest, RefusesAFolderThatCannotBeWritten) {
  if (geteuid() == 0) GTEST_SKIP() << "root may write anywhere";
  fs::permissions(folder_, fs::perms::owner_read | fs::perms::owner_exec);
  EXPECT_NE(refusal([&] { RunDirectory::create(folder_ / "run"); }).find("Permission denied"),
            std::string::npos);
  fs::permissions(folder_, fs::perms::owner_all);
}

TEST_F(RunDirectoryTest, DropsATornLastLine) {
  {
    RunDirectory directory = RunDirectory::create(folder_ / "run");
    directory.write("plan.json", "{}");
    directory.append("measurements.jsonl", {row("a", 0, 0), row("b", 0, 0)});
  }
  std::ofstream(folder_ / "run" / "measurements.jsonl", std::ios::app) << R"({"point":"b","repet)";
  const RunDirectory directory = RunDirectory::open(folder_ / "run");
  EXPECT_EQ(directory.read_rows("measurements.jsonl").size(), 2u);
}

TEST_F(RunDirectoryTest, OpeningRemovesFilesThatWereNotFinished) {
  RunDirectory::create(folder_ / "run").write("plan.json", "{}");
  std::ofstream(folder_ / "run" / PlainFolder::unfinished("summary.md")) << "half of i";
  std::ofstream(folder_ / "run" / "new.txt") << "a user's own";
  RunDirectory::open(folder_ / "run");
  EXPECT_FALSE(fs::exists(folder_ / "run" / "summary.md.new"));
  EXPECT_TRUE(fs::exists(folder_ / "run" / "new.txt"));
  EXPECT_TRUE(fs::exists(folder_ / "run" / "plan.json"));
}

// A run that goes on may be writing them.
TEST_F(RunDirectoryTest, OnlyTheHolderOfTheLockRemovesFilesThatWereNotFinished) {
  RunDirectory running = RunDirectory::create(folder_ / "run");
  running.write("plan.json", "{}");
  const fs::path unfinished = folder_ / "run" / PlainFolder::unfinished("summary.md");
  std::ofstream(unfinished) << "half of i";
  RunDirectory::view(folder_ / "run");
  RunDirectory::plan_of(folder_ / "run");
  EXPECT_NE(
      refusal([&] { RunDirectory::open(folder_ / "run"); }).find("another run is writing there"),
      std::string::npos);
  EXPECT_TRUE(fs::exists(unfinished));
}

TEST_F(RunDirectoryTest, ALaunchIsFinishedByItsPassAndNotByItsSamples) {
  RunDirectory directory = RunDirectory::create(folder_ / "run");
  directory.append("measurements.jsonl", {row("a", 0, 0), row("a", 0, 1), row("a", 1, 0)});
  directory.append("measurements.jsonl", {row("b", 0, 0, "timeout")});
  directory.append("passes.jsonl", {finished("a", 0)});
  const auto states = directory.states();
  const PointState& a = states.at("a");
  EXPECT_EQ(a.status, "ok");
  EXPECT_EQ(a.finished, std::set<Turn>{Turn{}});
  ASSERT_EQ(a.samples.at({0, 0}).size(), 2u);
  EXPECT_EQ(a.samples.at({0, 0})[1].solve_ms, 1);
  ASSERT_EQ(a.samples.at({1, 0}).size(), 1u);
  EXPECT_EQ(a.samples.at({1, 0})[0].solve_ms, 10);
  EXPECT_EQ(states.at("b").status, "timeout");
  EXPECT_TRUE(states.at("b").samples.empty());
  EXPECT_TRUE(directory.passes().empty());  // there are no profiles
}

TEST_F(RunDirectoryTest, ForgetsPoints) {
  RunDirectory directory = RunDirectory::create(folder_ / "run");
  directory.append("measurements.jsonl",
                   {row("a", 0, 0), row("b", 0, 0, "failed"), row("c", 0, 0)});
  directory.append("phases.jsonl", {row("b", 0, 0)});
  directory.append("passes.jsonl", {finished("b", 0)});
  directory.forget({"b"});
  const auto states = directory.states();
  EXPECT_EQ(states.size(), 2u);
  EXPECT_FALSE(states.contains("b"));
  EXPECT_EQ(text(folder_ / "run" / "phases.jsonl"), "");
}

TEST_F(RunDirectoryTest, NamesALineThatIsNoJson) {
  RunDirectory directory = RunDirectory::create(folder_ / "run");
  directory.append("measurements.jsonl", {row("a", 0, 0)});
  std::ofstream(folder_ / "run" / "measurements.jsonl", std::ios::app) << "rubbish\n";
  EXPECT_NE(refusal([&] {
              directory.read_rows("measurements.jsonl");
            }).find("measurements.jsonl:2: is not JSON"),
            std::string::npos);
}

// A resumed run must report the wrong line at once, not fail half-way in the code that uses the
// row.
TEST_F(RunDirectoryTest, RefusesRowsThatNoRunHasWritten) {
  const auto refusal_of = [&](const char* key, const std::string& value) {
    Row wrong = row("b", 1, 0);
    wrong[key] = Row::parse(value);
    const fs::path folder = folder_ / std::to_string(folders_++);
    RunDirectory directory = RunDirectory::create(folder);
    directory.append("measurements.jsonl", {row("a", 0, 0), wrong});
    const std::string why = refusal([&] { directory.states(); });
    EXPECT_NE(why.find("measurements.jsonl:2: "), std::string::npos) << key << ' ' << value << why;
    return why;
  };
  for (const char* launch :
       {"-1", "true", "1.5", "1e300", "4294967296", "18446744073709551615", "\"0\"", "null"})
    EXPECT_NE(refusal_of("launch", launch)
                  .find(std::string("launch must be a whole number from 0 on, not ") + launch[0]),
              std::string::npos)
        << launch;
  for (const char* restart : {"-1", "true", "1.5", "\"0\""})
    EXPECT_NE(refusal_of("restart", restart).find("restart must be"), std::string::npos) << restart;
  for (const char* time : {"-1", "true", "null", "\"1\""})
    EXPECT_NE(refusal_of("solve_ms", time)
                  .find(std::string("solve_ms must be a number from 0 on, not ") + time),
              std::string::npos)
        << time;
  refusal_of("status", "\"failed\"");  // the reason is missing
  refusal_of("point", "[]");
  refusal_of("host", "null");
  const std::string deep = std::string(100, '[') + std::string(100, ']');
  EXPECT_NE(refusal_of("noise", deep).find("nested too deeply"), std::string::npos);
}

TEST_F(RunDirectoryTest, TellsTheRestartsOfALaunchApart) {
  RunDirectory directory = RunDirectory::create(folder_ / "run");
  Row first = row("a", 0, 0), second = row("a", 0, 1), done = finished("a", 0);
  first["restart"] = 0;
  first["inertia"] = 5;
  second["restart"] = done["restart"] = 3;
  second["inertia"] = nullptr;
  directory.append("measurements.jsonl", {first, second});
  directory.append("passes.jsonl", {done});
  const PointState state = directory.states().at("a");
  EXPECT_EQ(state.samples.at({0, 0}).at(0).inertia, 5);
  EXPECT_EQ(state.samples.at({0, 3}).at(0).solve_ms, 1);
  EXPECT_FALSE(state.samples.at({0, 3}).at(0).inertia);
  EXPECT_EQ(state.finished, (std::set<Turn>{{0, 3}}));
}

TEST_F(RunDirectoryTest, PutsTheEnergyOfTheFirstRestartIntoItsRowsOnly) {
  RunDirectory directory = RunDirectory::create(folder_ / "run");
  std::vector<Row> rows = {row("a", 0, 0), row("a", 0, 1)};
  for (std::size_t restart = 0; restart < 2; ++restart) {
    rows[restart]["restart"] = restart;
    rows[restart]["energy_j"] = nullptr;
    rows[restart]["null_reasons"] = {{"energy_j", "not measured yet"}};
  }
  directory.append("measurements.jsonl", rows);
  Row energy = finished("a", 0);
  energy["pass"] = "energy";
  energy["energy_j"] = 7;
  directory.append("passes.jsonl", {energy});
  directory.fill_energy();
  const std::vector<Row> filled = directory.read_rows("measurements.jsonl");
  EXPECT_EQ(filled.at(0).at("energy_j"), 7);
  EXPECT_TRUE(filled.at(1).at("energy_j").is_null());
  EXPECT_EQ(filled.at(1).at("null_reasons").at("energy_j"),
            "only the energy of restart 0 is measured");
}

TEST_F(RunDirectoryTest, RefusesEnergyThatItCannotPutIntoARow) {
  RunDirectory directory = RunDirectory::create(folder_ / "run");
  Row measured = row("a", 0, 0), energy = finished("a", 0);
  measured["energy_j"] = nullptr;
  measured["null_reasons"] = "none";
  energy["pass"] = "energy";
  energy["status"] = "failed";
  energy["reason"] = "no counter";
  directory.append("measurements.jsonl", {measured});
  directory.append("passes.jsonl", {energy});
  EXPECT_NE(refusal([&] { directory.fill_energy(); }).find("measurements.jsonl:1: "),
            std::string::npos);
}

// A sparse file with a terabyte of zeros takes no disk space. Only its beginning may be kept in
// memory.
TEST_F(RunDirectoryTest, KeepsNoRowThatIsLongerThanAny) {
  {
    RunDirectory directory = RunDirectory::create(folder_ / "run");
    directory.write("plan.json", "{}");
    directory.append("measurements.jsonl", {row("a", 0, 0)});
  }
  const fs::path file = folder_ / "run" / "measurements.jsonl";
  const auto size = fs::file_size(file);
  const std::string line = '"' + std::string(1'000'000, 'x') + "\"\n";
  std::ofstream(file, std::ios::app) << line;
  EXPECT_EQ(RunDirectory::open(folder_ / "run").read_rows("measurements.jsonl").size(), 1u);
  EXPECT_EQ(fs::file_size(file), size);  // a long last line is treated as torn

  std::ofstream(file, std::ios::app) << line << row("b", 0, 0).dump() << '\n';
  EXPECT_NE(refusal([&] { RunDirectory::open(folder_ / "run"); }).find("measurements.jsonl:2: "),
            std::string::npos);
}

TEST_F(RunDirectoryTest, ReadsRowsAcrossItsBuffer) {
  RunDirectory directory = RunDirectory::create(folder_ / "run");
  std::vector<Row> rows;
  for (int i = 0; i < 300; ++i) {
    rows.push_back(row("a", 0, i));
    rows.back()["reason"] = std::string(static_cast<std::size_t>(i * i), 'x');
  }
  directory.append("measurements.jsonl", rows);
  EXPECT_EQ(directory.read_rows("measurements.jsonl"), rows);
}

TEST_F(RunDirectoryTest, SaysWhatIsWrongWithAPlan) {
  RunDirectory directory = RunDirectory::create(folder_ / "run");
  const nlohmann::json good = {
      {"spec", "/s.yaml"},
      {"overrides", to_json(Overrides{.set = {"n=1"}, .repetitions = 5, .seed = 7})},
      {"fingerprints", {{"data", "d"}, {"binary", "b"}, {"external", nullptr}}}};
  const auto refusal_of = [&](const nlohmann::json& plan) {
    directory.write("plan.json", plan.dump());
    return refusal([&] { started_run(folder_ / "run"); });
  };
  EXPECT_EQ(refusal_of(good), "accepted");
  EXPECT_EQ(started_run(folder_ / "run").overrides.repetitions, 5);

  const auto with = [&](const char* pointer, const nlohmann::json& value) {
    nlohmann::json plan = good;
    plan[nlohmann::json::json_pointer(pointer)] = value;
    return plan;
  };
  nlohmann::json deep;
  for (int level = 0; level < 40; ++level) deep = nlohmann::json::array({deep});
  for (const nlohmann::json& wrong :
       {nlohmann::json::array(), nlohmann::json(), with("/spec", 5), with("/files", {{"a", 1}}),
        with("/overrides/repetitions", 1e300), with("/overrides/repetitions", 4294967301),
        with("/overrides/repetitions", 18446744073709551615u), with("/overrides/seed", -1),
        with("/overrides/set", "n=1"), with("/fingerprints", {{"data", "d"}}),
        with("/fingerprints/external", deep)}) {
    const std::string why = refusal_of(wrong);
    EXPECT_NE(why.find("plan.json: is damaged"), std::string::npos) << wrong << ": " << why;
  }
}

TEST(ResumedOverrides, KeepWhatIsNotGivenAnew) {
  const Overrides started{.set = {"n=1e3", "k=4"},
                          .only = {"cpu_*"},
                          .filter = "n:1000",
                          .warmup = 2,
                          .timeout = 600,
                          .shuffle = true};
  const auto resumed = [&](const Overrides& given) {
    return to_json(resumed_overrides(started, given));
  };
  EXPECT_EQ(resumed({}), to_json(started));
  EXPECT_EQ(resumed(started), to_json(started));
  Overrides expected = started;
  expected.set = {"n=1e3", "k=8", "dim=2"};
  expected.timeout = 5;
  expected.seed = 7;
  const Overrides given{.set = {"k=8", "dim=2"}, .timeout = 5, .seed = 7};
  EXPECT_EQ(resumed(given), to_json(expected));
  expected = started;
  expected.only = {"cpu_openmp"};
  expected.shuffle = false;
  EXPECT_EQ(resumed({.only = {"cpu_openmp"}, .shuffle = false}), to_json(expected));
  EXPECT_EQ(changed_options(started, expected),
            (std::vector<std::string>{"--only", "--no-shuffle"}));
  EXPECT_EQ(changed_options(started, started), std::vector<std::string>{});
}

TEST_F(RunDirectoryTest, NamesWhatAnEnvironmentLacks) {
  RunDirectory directory = RunDirectory::create(folder_ / "run");
  const std::string path = (folder_ / "run" / "environment.json").string();
  const nlohmann::json machine = {{"host", "h"}, {"cpu", {{"model", nullptr}, {"cores", 2}}}};
  nlohmann::json good = {{"t_utc", "2026"},
                         {"build", {{"commit", "1"}, {"dirty", false}}},
                         {"gpus", {{{"name", "G"}}}},
                         {"parts", {{{"shard", "1/1"}, {"environment", machine}}}}};
  good.update(machine);
  const auto refusal_of = [&](const nlohmann::json& environment) {
    directory.write("environment.json", environment.dump());
    return refusal([&] { read_environment(directory); });
  };
  const auto damaged = [&](const std::string& missing) {
    return path + ": is damaged (no valid " + missing + "); restore the file, or start a new run";
  };
  EXPECT_EQ(refusal_of(good), "accepted");
  for (const nlohmann::json& nothing :
       {nlohmann::json::object(), nlohmann::json::array({1}), nlohmann::json()})
    EXPECT_EQ(refusal_of(nothing),
              damaged("t_utc, host, cpu/model, cpu/cores, build/commit, build/dirty, gpus"));
  const auto with = [&](const char* pointer, const nlohmann::json& value) {
    nlohmann::json changed = good;
    changed[nlohmann::json::json_pointer(pointer)] = value;
    return changed;
  };
  EXPECT_EQ(refusal_of(with("/cpu/cores", -2)), damaged("cpu/cores"));
  EXPECT_EQ(refusal_of(with("/build/dirty", "no")), damaged("build/dirty"));
  EXPECT_EQ(refusal_of(with("/gpus/0", "G")), damaged("gpus/0/name"));
  EXPECT_EQ(refusal_of(with("/parts", 1)), damaged("parts"));
  EXPECT_EQ(refusal_of(with("/parts/0/environment/host", nullptr)),
            damaged("parts/0/environment/host"));
  directory.write("environment.json", "{");
  EXPECT_NE(refusal([&] { read_environment(directory); }).find(path + ": is damaged ("),
            std::string::npos);
}

TEST_F(RunDirectoryTest, ATimelineNamesTheGpusOfAPointThatUsesSeveral) {
  RunDirectory run = RunDirectory::create(folder_ / "run");
  const auto kernel = [](const char* point, int device) {
    return Row{{"point", point},     {"kind", "kernel"}, {"name", "assign"}, {"start_us", 1.5},
               {"duration_us", 2.5}, {"stream", 7},      {"device", device}};
  };
  run.append("timeline.jsonl", {kernel("one", 1), kernel("two", 0), kernel("two", 1)});
  const Row timeline = Row::parse(timeline_file(run));
  std::vector<std::string> tracks;
  std::set<int> numbers;
  for (const Row& event : timeline.at("traceEvents")) {
    if (event.at("name") == "thread_name") tracks.push_back(event.at("args").at("name"));
    if (event.at("ph") == "X") numbers.insert(event.at("tid").get<int>());
  }
  std::ranges::sort(tracks);
  EXPECT_EQ(tracks, (std::vector<std::string>{"GPU 0, stream 7", "GPU 1, stream 7", "stream 7"}));
  EXPECT_EQ(numbers.size(), 3u);
}

}  // namespace
}  // namespace lloyd
