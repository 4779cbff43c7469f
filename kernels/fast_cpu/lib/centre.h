// Where the CPU ladder puts points before the loop: dimensions far from the origin are centred. The
// rule, and the proof that the subtraction is exact, are those of kernels/fast/lib/NOTES.md.
#pragma once

#include <vector>

#include "kernels/core/version.h"

namespace lloyd::fast_cpu {

/// The centre of each dimension (dim values): 0, unless all values have one sign and are within a
/// factor of 5/3 of each other. Then x − centre is exact for every point x.
std::vector<float> exact_centre(const Problem& problem, int threads);

/// Whether ‖c‖² − 2x·c in fp32, with points and centroids centred, finds the nearest initial
/// centroid of a sample of the points: a label may be 1% farther away on average. It does not where
/// points far from the origin have no exact centre.
bool expanded_distance_holds(const Problem& problem, const std::vector<float>& centre);

}  // namespace lloyd::fast_cpu
