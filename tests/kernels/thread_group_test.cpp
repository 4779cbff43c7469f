// How points are dealt to GPUs, and the threads that work for them: without a GPU.
#include "kernels/fast/multi/thread_group.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <string>

#include "kernels/fast/multi/deal.h"

namespace lloyd::fast {
namespace {

TEST(Deal, GivesEveryGpuWholeTiles) {
  for (const std::int64_t n : {1, 255, 256, 257, 511, 513, 1000, 8'000'000, 2'147'483'647})
    for (const int gpus : {1, 2, 3, 8})
      for (const std::int64_t tile : {1, 256}) {
        SCOPED_TRACE(testing::Message() << n << " points, " << gpus << " GPUs, tile " << tile);
        const std::vector<PointRange> ranges = deal(n, gpus, tile);
        ASSERT_EQ(std::ssize(ranges), std::min<std::int64_t>(gpus, (n + tile - 1) / tile));
        std::int64_t next = 0, least = n, most = 0;
        for (const PointRange& range : ranges) {
          EXPECT_EQ(range.first, next);
          EXPECT_EQ(range.first % tile, 0);
          EXPECT_GE(range.count, 1);
          least = std::min(least, range.count);
          most = std::max(most, range.count);
          next += range.count;
        }
        EXPECT_EQ(next, n);
        EXPECT_LE(most - least, 2 * tile - 1);  // the last tile may be a single point
      }
}

TEST(ThreadGroup, RunsAllMembersEachTime) {
  for (const int members : {1, 2, 5}) {
    ThreadGroup group(members);
    std::vector<int> calls(static_cast<std::size_t>(members));
    for (int run = 1; run <= 100; ++run) {
      group.run([&](int member) { ++calls[static_cast<std::size_t>(member)]; });
      for (const int count : calls) ASSERT_EQ(count, run);
    }
  }
}

TEST(ThreadGroup, CallsTheFirstMemberInItsOwnThread) {
  ThreadGroup group(3);
  const auto caller = std::this_thread::get_id();
  group.run([&](int member) { EXPECT_EQ(std::this_thread::get_id() == caller, member == 0); });
}

TEST(ThreadGroup, CombinesInTheOrderOfMembers) {
  constexpr int kMembers = 4;
  ThreadGroup group(kMembers);
  group.run([&](int member) {
    for (int turn = 0; turn < 200; ++turn) {
      std::vector<double> sums{1.0 * member, 1.0 * turn};
      group.combine(member, std::span(sums), std::plus<>());
      ASSERT_EQ(sums, (std::vector<double>{6, 4.0 * turn}));
      std::vector<int> places{member};
      group.combine(member, std::span(places), [](int a, int b) { return 10 * a + b; });
      ASSERT_EQ(places.front(), 123);
    }
  });
}

// Every member but the one that fails is in a meeting, or comes to one later.
TEST(ThreadGroup, LeavesTogetherWhenOneFails) {
  constexpr int kMembers = 4;
  for (int failing = 0; failing < kMembers; ++failing)
    for (const int turns : {0, 1, 7}) {
      std::atomic<int> notices = 0, abandoned = 0;
      ThreadGroup group(kMembers, [&] { ++notices; });
      const auto body = [&](int member) {
        try {
          for (int turn = 0;; ++turn) {
            if (member == failing && turn == turns) throw std::runtime_error("this one");
            double value = 1;
            group.combine(member, std::span(&value, 1), std::plus<>());
          }
        } catch (const Abandoned&) {
          ++abandoned;
          throw;
        }
      };
      try {
        group.run(body);
        FAIL() << "should throw";
      } catch (const std::exception& error) {
        EXPECT_EQ(std::string(error.what()), "this one");
      }
      EXPECT_EQ(notices, 1);
      EXPECT_EQ(abandoned, kMembers - 1);
      // The group can go on.
      group.run([&](int member) {
        double value = 1;
        group.combine(member, std::span(&value, 1), std::plus<>());
        EXPECT_EQ(value, kMembers);
      });
    }
}

TEST(ThreadGroup, ReportsOneErrorWhereAllFail) {
  ThreadGroup group(3);
  EXPECT_THROW(group.run([](int) { throw std::invalid_argument("each"); }), std::invalid_argument);
}

TEST(ThreadGroup, RefusesValuesOfDifferentNumber) {
  ThreadGroup group(2);
  EXPECT_THROW(group.run([&](int member) {
    std::vector<double> values(static_cast<std::size_t>(member) + 1);
    group.combine(member, std::span(values), std::plus<>());
  }),
               std::logic_error);
}

}  // namespace
}  // namespace lloyd::fast
