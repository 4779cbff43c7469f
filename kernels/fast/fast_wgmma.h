// What fast_wgmma.cu has for fast_wgmma_ordered.
#pragma once

#include <memory>

#include "kernels/core/version.h"

namespace lloyd::fast {

/// fast_wgmma with the sums always by update.cuh, never in the kernel of the products.
std::unique_ptr<Version> make_wgmma_ordered();

}  // namespace lloyd::fast
