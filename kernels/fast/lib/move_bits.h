// How far a centroid moved, for the rule that stops the loop where all of them rest.
#pragma once

#include <type_traits>

namespace lloyd::fast {

/// The bits of a squared move of centroids of type Real (float or double). Values that are not
/// negative order like their bits, so that atomicMax finds the largest.
template <typename Real>
using MoveBits = std::conditional_t<std::is_same_v<Real, double>, unsigned long long, unsigned>;

}  // namespace lloyd::fast
