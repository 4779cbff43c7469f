// What fast_wgmma.cu offers to fast_wgmma_ordered and multi_wgmma.
#pragma once

#include <cstdint>
#include <memory>

#include "kernels/core/version.h"

namespace lloyd::fast {

class Exchange;  // lib/exchange.h

/// Dimensions of the problems of a batch. Every further size would be four more kernels.
inline constexpr int kMostBatchDim = 128;

/// fast_wgmma with the sums always by the sorted update, never in the kernel of the products.
std::unique_ptr<Version> make_wgmma_ordered();

/// fast_wgmma on one of several GPUs, without batches. `exchange`: with the others, or null.
std::unique_ptr<Version> make_wgmma_shard(Exchange* exchange);

/// Points are dealt to GPUs in tiles of so many: what a block multiplies at a time.
inline constexpr std::int64_t kWgmmaTile = 256;

}  // namespace lloyd::fast
