// Sums of points by label, with the widest vectors that this CPU has.
#pragma once

#include <cstdint>

namespace lloyd::fast_cpu {

/// For each of `count` points (row-major): sums[label] += point − centre, unless its label is −1.
/// `sums`: k × dim.
void add_points(const float* points, int count, const float* centre, int dim,
                const std::int32_t* labels, float* sums);

}  // namespace lloyd::fast_cpu
