// What to call a kernel.
#pragma once

#include <string>

namespace lloyd::profiling {

/// The qualified name of a mangled kernel: without return type, parameters and "(anonymous namespace)". Template arguments
/// longer than 40 characters, as Thrust's are, become a number that stays the same from run to run:
/// "cub::detail::for_each::static_kernel<~5e0a91>". What is no mangled name stays as it is.
std::string kernel_name(const std::string& symbol);

}  // namespace lloyd::profiling
