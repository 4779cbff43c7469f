// What __launch_bounds__ may ask for on each architecture.
#pragma once

#include <algorithm>

namespace lloyd::fast {

// Threads that a multiprocessor holds at a time, for the architecture that is compiled (CUDA C++
// Programming Guide, technical specifications per compute capability).
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ == 800 || __CUDA_ARCH__ / 100 == 9 || \
    __CUDA_ARCH__ / 100 == 10
constexpr int kThreadsOfMultiprocessor = 2048;
#elif __CUDA_ARCH__ >= 860
constexpr int kThreadsOfMultiprocessor = 1536;
#else
constexpr int kThreadsOfMultiprocessor = 1024;
#endif

/// `blocks`, or as many as a multiprocessor has threads for: ptxas compiles no kernel that asks for
/// more.
constexpr int blocks_at_most(int blocks, int threads) {
  return std::min(blocks, kThreadsOfMultiprocessor / threads);
}

}  // namespace lloyd::fast
