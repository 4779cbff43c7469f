// What fast_wgmma.cu offers to fast_wgmma_ordered.
#pragma once

#include <memory>

#include "kernels/core/version.h"

namespace lloyd::fast {

/// Dimensions of the problems of a batch. Every further size would be four more kernels.
inline constexpr int kMostBatchDim = 128;

/// fast_wgmma with the sums always by the sorted update, never in the kernel of the products.
std::unique_ptr<Version> make_wgmma_ordered();

}  // namespace lloyd::fast
