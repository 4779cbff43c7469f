// What the parts of fast_screen share. The letters are those of the bound in NOTES.md: X and C are
// the scaled points and centroids, X_h and C_h their fp16 parts, S = ‖C‖²/2 − X·C the score, q a
// point's share of half the squared distance, r and N the factors of the error, A the error of
// accumulation.
#pragma once

#include <cuda_fp16.h>

#include <cstdint>

namespace lloyd::fast {
namespace {

constexpr int kBlock = 256;
constexpr int kLanes = 4;       // that share a row of scores
constexpr int kCandidates = 8;  // kept for an ambiguous point; with more, every centroid is tried
constexpr int kTile = 64;       // centroids of a tile of the mma engine …
constexpr int kWideTile = 128;  // … and of the wide engine
// Consecutive centroids that share the largest N of theirs, where points are not streamed: then one
// r·N serves all of them.
constexpr int kSameNorm = 16;
// Consecutive centroids among which a thread's group of columns lies.
constexpr int kGroupSpan = 32;

/// What the kernels of an iteration read and write, for a chunk of points, `first` to `last`.
struct Screen {
  const __half* points;     // X_h
  const float2* sides;      // r and q(1 − A) of each point
  const __half* centroids;  // −C_h, row by row
  const char* wgmma_tiles;  // the same in tiles of the wide or the streamed engine; or null
  const float2* bounds;     // b(1 − A) and N of each centroid
  const float2* errors;     // N and A·b of each; infinite where there is no upper bound
  int padded;
  int mma_tiles;  // of kTile centroids each
  int dim, k;
  int odd_swap;         // how chunks of odd rows of points are swapped
  double accumulation;  // A
  double whole;         // 1 / (1 − A)
  std::int64_t first, last;
  std::int32_t* labels;
  // Ambiguous points whose candidates are known: block b has the places from b · segment on, and
  // uses decided_counts[b] of them. A place is the point and kLanes candidates, −1 where there is
  // none.
  std::int64_t segment;
  unsigned* decided_counts;
  std::int32_t* decided;
  std::int32_t* decided_candidates;
  // Points that need a second look: how many, which, the upper bound of their S, how many
  // candidates they have, and which.
  unsigned* again_count;
  std::int32_t* again_points;
  float* again_bounds;
  int* candidate_counts;
  std::int32_t* candidates;
};

}  // namespace
}  // namespace lloyd::fast
