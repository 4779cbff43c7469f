// Arrays of floats for vectors and for threads.
#pragma once

#include <hwy/aligned_allocator.h>

#include <cstdint>
#include <new>

namespace lloyd::fast_cpu {

/// Float arrays that start on a cache line and are not written when they are allocated, so that
/// each page belongs to the memory of the thread that fills it.
using Floats = hwy::AlignedFreeUniquePtr<float[]>;

inline Floats floats(std::int64_t size) {
  Floats array = hwy::AllocateAligned<float>(static_cast<std::size_t>(size));
  if (!array) throw std::bad_alloc();
  return array;
}

}  // namespace lloyd::fast_cpu
