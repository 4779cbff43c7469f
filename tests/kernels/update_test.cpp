// How the update of few points is dealt to blocks: what a kernel must be able to rely on.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>

#include "kernels/fast/update/team_sizes.h"
#include "tests/kernels/h200.h"

namespace lloyd::fast {
namespace {

constexpr int kCountBytes = 8'192;  // at least what the kernel has in static shared memory

TEST(TeamSizes, CoverAllLabelsAndClusters) {
  for (const std::int64_t n : {1, 31, 127, 4'096, 4'097, 10'000, 65'536, 131'071, 131'072})
    for (const int k : {1, 15, 16, 17, 1'000, 1'024, 1'025, 2'048}) {
      SCOPED_TRACE(std::to_string(n) + " points, " + std::to_string(k) + " clusters");
      const TeamSizes sizes = TeamSizes::of(n, k, 4);
      ASSERT_GE(sizes.span, 1);
      EXPECT_LE(sizes.span, kMostSpan);
      EXPECT_EQ(sizes.blocks(k) % kTeam, 0);
      EXPECT_GE(sizes.blocks(k) / kTeam * sizes.span, k);
      EXPECT_EQ(sizes.warp_labels % 32, 0);
      EXPECT_GE(std::int64_t{kTeam} * kTeamWarps * sizes.warp_labels, n);
      // A part of the order, where a cluster has all points; a slot for each sum that a warp begins
      // and each that a cluster ends.
      EXPECT_GE(sizes.order_bytes, 4 * ((n + kTeam - 1) / kTeam));
      EXPECT_GE(sizes.rest_bytes, 4 * kTeamWarps * sizes.warp_labels);
      EXPECT_GE(sizes.rest_bytes, (kTeamWarps + sizes.span) * 8 * 4);
      EXPECT_EQ((sizes.order_bytes | sizes.sum_bytes | sizes.rest_bytes) % 16, 0);
    }
}

TEST(TeamSizes, FitAnH200WherePointsAreFew) {
  for (const auto& [n, dim] : {std::pair{100'000, 32}, std::pair{65'536, 128}}) {
    const TeamSizes sizes = TeamSizes::of(n, 1'024, dim);
    EXPECT_GT(sizes.span, 0);
    EXPECT_LE(sizes.shared_bytes() + kCountBytes, h200().shared_bytes_optin);
  }
  // A team for each of the device's places.
  EXPECT_LE(TeamSizes::of(10'000, 1'024, 128).blocks(1'024), h200().multiprocessors);
}

// Some GPUs have room for no more than 15 teams with one block per multiprocessor.
TEST(TeamSizes, LeaveRoomForASecondBlockOnAMultiprocessor) {
  constexpr int kOfMultiprocessor = 228 * 1024, kReserved = 1024;  // the latter for each block
  for (const auto& [n, dim] : {std::pair{10'000, 32}, std::pair{10'000, 128}, std::pair{30'000, 32},
                               std::pair{65'536, 16}, std::pair{100'000, 32}})
    EXPECT_LE(2 * (TeamSizes::of(n, 1'024, dim).shared_bytes() + kCountBytes + kReserved),
              kOfMultiprocessor)
        << n << " x " << dim;
}

TEST(Divisor, DividesPlacesLikeIntegers) {
  constexpr unsigned kPlaces = 1 << 17;
  for (unsigned size = 1; size <= kPlaces / kTeam; ++size) {
    const Divisor divisor(size);
    for (unsigned first = 0; first <= kPlaces; first += size)  // the others are between these
      ASSERT_TRUE(divisor.of(first) == first / size && divisor.of(first + size - 1) == first / size)
          << first << " / " << size;
  }
}

TEST(TeamSizes, LeaveLargeProblemsToTheSort) {
  EXPECT_EQ(TeamSizes::of(131'073, 16, 2).span, 0);
  EXPECT_EQ(TeamSizes::of(1'000, 2'049, 2).span, 0);
  EXPECT_EQ(TeamSizes::of(100'000, 1'024, 84).span, 0);
  EXPECT_GT(TeamSizes::of(100'000, 1'024, 83).span, 0);
  EXPECT_EQ(TeamSizes::of(50'000, 1, 16).span, 0);  // one team
  EXPECT_GT(TeamSizes::of(50'000, 2, 16).span, 0);
}

TEST(TeamSizes, AreOfWholeUnits) {
  constexpr int kUnit = 16;
  for (const int k : {256, 257, 640, 1'000, 1'024, 2'048}) {
    const TeamSizes sizes = TeamSizes::of(10'000, k, 32, kUnit);
    EXPECT_GE(sizes.span, 1) << k;
    EXPECT_EQ(sizes.span % kUnit, 0) << k;
    EXPECT_GE(sizes.blocks(k) / kTeam * sizes.span, k);
  }
  EXPECT_EQ(TeamSizes::of(10'000, 255, 32, kUnit).span, 0);  // teams would be fewer than usual
}

}  // namespace
}  // namespace lloyd::fast
