#include "profiling/cpu_counters.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <thread>

#include "profiling/perf_events.h"

namespace lloyd::profiling {
namespace {

// Writes to `pages` new pages.
void touch(int pages) {
  const auto size = static_cast<std::size_t>(pages) * static_cast<std::size_t>(getpagesize());
  void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  madvise(memory, size, MADV_NOHUGEPAGE);
  for (std::size_t at = 0; at < size; at += static_cast<std::size_t>(getpagesize()))
    static_cast<volatile char*>(memory)[at] = 1;
  munmap(memory, size);
}

// A solve of two iterations. It touches 300 pages in "assign", 100 of them in another thread, and
// 50 in "update".
class Touching : public Subject {
 public:
  void prepare() override {}
  void run() override {
    for (int i = 0; i < iterations(); ++i) {
      if (observer_ != nullptr) observer_->begin_phase("assign");
      touch(200);
      std::thread([] { touch(100); }).join();
      if (observer_ != nullptr) observer_->end_phase();
      if (observer_ != nullptr) observer_->begin_phase("update");
      touch(50);
      if (observer_ != nullptr) observer_->end_phase();
    }
  }
  void fetch() override {}
  void observe(RangeObserver* observer) override { observer_ = observer; }
  int iterations() const override { return 2; }

 private:
  RangeObserver* observer_ = nullptr;
};

TEST(CpuCounters, CountEachPhaseOverAllThreads) {
  std::string why_not;
  if (!PerfEvent::open("page_faults", why_not)) GTEST_SKIP() << why_not;
  Touching solve;
  const Profile profile = count_cpu(solve, {"page_faults"});
  ASSERT_EQ(profile.counters.size(), 2u);
  const auto& assign = profile.counters[0];
  EXPECT_EQ(assign.at("phase"), "assign");
  EXPECT_EQ(assign.at("status"), "ok");
  EXPECT_EQ(assign.at("calls"), 2);
  EXPECT_EQ(assign.at("iterations"), 2);
  // The stack of a new thread takes a few more pages.
  EXPECT_GE(assign.at("value"), 300);
  EXPECT_LE(assign.at("value"), 340);
  EXPECT_GE(profile.counters[1].at("value"), 50);
  EXPECT_LE(profile.counters[1].at("value"), 60);
}

TEST(CpuCounters, AreUnavailableWithTheReasonWithoutAPmu) {
  std::string why_not;
  if (PerfEvent::open("cycles", why_not)) GTEST_SKIP() << "this machine has a PMU";
  Touching solve;
  const Profile profile = count_cpu(solve, {"l1d_misses", "page_faults"});
  ASSERT_FALSE(profile.counters.empty());
  const auto& missing = profile.counters[0];
  EXPECT_EQ(missing.at("metric"), "l1d_misses");
  EXPECT_EQ(missing.at("status"), "unavailable");
  EXPECT_TRUE(missing.at("value").is_null());
  EXPECT_FALSE(missing.at("reason").get<std::string>().empty());
}

TEST(CpuCounters, AreNoProfileWhenNoneCanBeHad) {
  std::string why_not;
  if (PerfEvent::open("cycles", why_not)) GTEST_SKIP() << "this machine has a PMU";
  Touching solve;
  EXPECT_THROW(count_cpu(solve, {"cycles", "instructions"}), Unavailable);
}

TEST(PerfEvent, CountsInstructionsWhereThereIsAPmu) {
  std::string why_not;
  const auto instructions = PerfEvent::open("instructions", why_not);
  if (!instructions) GTEST_SKIP() << why_not;
  const double before = instructions->read().events;
  volatile unsigned sum = 0;
  for (unsigned i = 0; i < 1'000'000; ++i) sum = sum + i;
  // A load, an addition, a store and the instructions of the loop.
  EXPECT_GT(instructions->read().events - before, 3e6);
  EXPECT_LT(instructions->read().events - before, 3e7);
}

TEST(PerfEvent, KnowsItsNames) {
  std::string why_not;
  for (const std::string& name : hardware_events())
    EXPECT_TRUE(PerfEvent::open(name, why_not) || !why_not.empty()) << name;
  EXPECT_THROW(PerfEvent::open("l4_misses", why_not), std::invalid_argument);
}

}  // namespace
}  // namespace lloyd::profiling
