#include "profiling/cache_simulation.h"

#include <gtest/gtest.h>

namespace lloyd::profiling {
namespace {

TEST(CallgrindTotals, AreReadByName) {
  const auto totals = callgrind_totals(
      "# callgrind format\nevents: Ir Dr D1mr\nfn=(1) x\n1 5 2\ntotals: 100 20 3\n");
  ASSERT_EQ(totals.size(), 3u);
  EXPECT_EQ(totals[0], std::pair(std::string("Ir"), 100.0));
  EXPECT_EQ(totals[2], std::pair(std::string("D1mr"), 3.0));
}

TEST(CallgrindTotals, LeaveOutTrailingZeros) {
  const auto totals = callgrind_totals("events: Ir Dr D1mr\ntotals: 100\n");
  EXPECT_EQ(totals[0].second, 100);
  EXPECT_EQ(totals[1].second, 0);
  EXPECT_EQ(totals[2].second, 0);
}

TEST(CallgrindTotals, AreMissed) {
  EXPECT_THROW(callgrind_totals("events: Ir\n"), std::runtime_error);
}

TEST(CacheSimulation, NeedsAProcessThatValgrindStarted) {
  struct Idle : Subject {
    void prepare() override {}
    void run() override {}
    void fetch() override {}
    void observe(RangeObserver*) override {}
    int iterations() const override { return 1; }
  } idle;
  EXPECT_THROW(simulate_caches(idle), Unavailable);
}

}  // namespace
}  // namespace lloyd::profiling
