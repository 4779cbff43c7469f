// The smallest score of each point of a block.
#pragma once

#include <cstdint>

namespace lloyd::fast_cpu {

/// Points of a block: a multiple of four vectors of any width that we use.
constexpr int kBlock = 128;

/// The best centroid of each point so far.
struct Smallest {
  alignas(64) float score[kBlock];
  alignas(64) std::int32_t label[kBlock];
};

/// Compares centroids first, …, first + count − 1, in order: the lowest index wins a tie. Centroid
/// j has the scores starts[j − first] − products[j − first][p].
void keep_smallest(const float (*products)[kBlock], const float* starts, int first, int count,
                   Smallest& smallest);

}  // namespace lloyd::fast_cpu
