// Readable names of kernels.
#pragma once

#include <string>

namespace lloyd::profiling {

/// Demangles a symbol to the qualified name of the kernel, without return type, parameters and
/// "(anonymous namespace)". Template arguments longer than 40 characters, such as Thrust's, are
/// replaced by a hash that is the same in every run:
/// "cub::detail::for_each::static_kernel<~5e0a91>". Returns `symbol` itself if it is not a mangled
/// name.
std::string kernel_name(const std::string& symbol);

}  // namespace lloyd::profiling
