// What fast_screen.cu offers to multi_screen.
#pragma once

#include <memory>

#include "kernels/core/version.h"

namespace lloyd::fast {

class Exchange;  // lib/exchange.h

/// fast_screen on one of several GPUs. `exchange`: with the others, or null.
std::unique_ptr<Version> make_screen_shard(Exchange* exchange);

}  // namespace lloyd::fast
