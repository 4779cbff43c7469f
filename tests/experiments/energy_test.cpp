#include "experiments/measure/energy.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/folder_test.h"

namespace lloyd {
namespace {

namespace fs = std::filesystem;

class Powercap : public FolderTest {
 protected:
  void set(const std::string& zone, const std::string& energy) const {
    fs::create_directories(folder_ / zone);
    std::ofstream(folder_ / zone / "energy_uj") << energy << '\n';
    std::ofstream(folder_ / zone / "max_energy_range_uj") << "262143328850\n";
  }
};

TEST_F(Powercap, AddsThePackagesAndNotTheirParts) {
  set("intel-rapl:0", "1000000");
  set("intel-rapl:1", "2500000");
  set("intel-rapl:0:0", "900000");
  std::string why_not;
  const auto counter = cpu_energy(folder_, why_not);
  ASSERT_TRUE(counter) << why_not;
  EXPECT_EQ(counter->joules(), 3.5);
  set("intel-rapl:1", "3500000");
  EXPECT_EQ(counter->joules(), 4.5);
}

TEST_F(Powercap, GoesOnWhenACounterOverflows) {
  set("intel-rapl:0", "262143000000");
  std::string why_not;
  const auto counter = cpu_energy(folder_, why_not);
  ASSERT_TRUE(counter) << why_not;
  const double before = *counter->joules();
  set("intel-rapl:0", "1000000");
  EXPECT_NEAR(*counter->joules() - before, 1.32885, 1e-5);
}

TEST_F(Powercap, SaysWhyThereIsNone) {
  std::string why_not;
  EXPECT_EQ(cpu_energy(folder_, why_not), nullptr);
  EXPECT_EQ(why_not.rfind("no energy counter of the CPU here", 0), 0u) << why_not;
  set("intel-rapl:0", "");  // reads as empty if only root has access
  EXPECT_EQ(cpu_energy(folder_, why_not), nullptr);
  EXPECT_NE(why_not.find("intel-rapl:0/energy_uj cannot be read"), std::string::npos) << why_not;
}

// Counts one joule per solve.
struct Counted : EnergyCounter {
  std::optional<double> joules() override { return 10 + per_solve * solves; }
  double overflow_s() const override { return overflow; }
  int solves = 0;
  double per_solve = 1, overflow = 0;
};

TEST(SolveEnergy, IsThatOfOneSolveOfTwoSecondsOfThem) {
  Counted counter;
  const SolveEnergy energy = solve_energy(counter, [&] {
    ++counter.solves;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  });
  ASSERT_TRUE(energy.joules) << energy.why_not;
  EXPECT_DOUBLE_EQ(*energy.joules, 1);
  EXPECT_GT(counter.solves, 1);
}

TEST(SolveEnergy, IsNotWhatACounterThatStandsStillSays) {
  Counted counter;
  counter.per_solve = 0;
  const SolveEnergy energy =
      solve_energy(counter, [] { std::this_thread::sleep_for(std::chrono::seconds(2)); });
  EXPECT_FALSE(energy.joules);
  EXPECT_EQ(energy.why_not, "the counter did not move");
}

TEST(SolveEnergy, IsUnknownWhenTheCounterMayHaveOverflownTwice) {
  Counted counter;
  counter.overflow = 0.01;
  const SolveEnergy energy =
      solve_energy(counter, [] { std::this_thread::sleep_for(std::chrono::milliseconds(50)); });
  EXPECT_FALSE(energy.joules);
  EXPECT_EQ(energy.why_not, "one solve takes longer than the counter needs to overflow");
}

}  // namespace
}  // namespace lloyd
