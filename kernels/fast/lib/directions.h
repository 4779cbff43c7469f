// The last part of an update of a spherical problem: means become centroids of length 1.
#pragma once

#include <cstdint>

#include "kernels/core/cuda.h"
#include "kernels/fast/lib/move_bits.h"

namespace lloyd::fast {

/// Scales each of `count` means (row-major, `dim` coordinates) to `length`, by its norm in float64.
/// `before`: the centroids that they replace. A centroid goes back to where it was if its mean is 0
/// or NaN, which stands for a cluster without points. `largest_move_bits`, where not null, becomes
/// the larger of itself and the largest squared move. Real: float or double.
template <typename Real>
void scale_means(Real* means, const Real* before, std::int64_t count, int dim, float length,
                 MoveBits<Real>* largest_move_bits, cudaStream_t stream);

}  // namespace lloyd::fast
