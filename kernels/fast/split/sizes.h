// Sizes that the kernel of fast_split and its limits share.
#pragma once

namespace lloyd::fast {
namespace {

constexpr int kColumns = 128;  // centroids of a tile, whose halves are two products
constexpr int kHalf = kColumns / 2;
constexpr int kThreads = 512;  // four warpgroups, each with 64 points
constexpr int kRowBytes = 48;
// A group has 16 centroids and 18 places, so that groups start in different banks.
constexpr int kGroup = 16;
constexpr int kPlaces = 18;
constexpr int kPanelBytes = 128 * kColumns;  // four tiles of kColumns centroids × 16 bf16

}  // namespace
}  // namespace lloyd::fast
