// Where values stand: in swizzled shared memory, and in the fragments of the tensor cores. The copy
// engine, wgmma and our own loads and stores agree on these functions.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace lloyd::fast {

/// 16-bit values in a swizzled row of 128 bytes. A matrix in shared memory is a sequence of panels,
/// each with all its rows and this many columns.
constexpr int kPanel = 64;

/// The bytes from `shared` to the next multiple of 1024, where panels must start. (The caller adds
/// them: a function that returned the sum would hide from ptxas that it is in shared memory.)
__device__ __forceinline__ std::uint32_t panel_padding(const void* shared) {
  return (1024 - static_cast<std::uint32_t>(__cvta_generic_to_shared(shared)) % 1024) % 1024;
}

/// Where the 16-byte chunk `chunk` of row `row` stands in its row of kRowBytes (128, 64 or 32), as
/// the copy engine and wgmma swizzle it: eight rows then meet all banks of shared memory.
template <int kRowBytes = 128>
__host__ __device__ constexpr int swizzle(int row, int chunk) {
  return chunk ^ row * kRowBytes / 128 % (kRowBytes / 16);
}

/// The byte offset of 16-bit value k of row `row`, in panels of `rows` rows.
__host__ __device__ constexpr std::int64_t panel_offset(int rows, int row, int k) {
  return std::int64_t{k / kPanel} * rows * 128 + row * 128 + swizzle(row, k % kPanel / 8) * 16 +
         k % 8 * 2;
}

/// The k under which the product counts coordinate t of a row: both operands may be permuted, as
/// long as they agree. Of 32 coordinates 8q + 2p + i, quad lane q needs those with k = 16(p / 2) +
/// 8(p % 2) + 2q + i for its A fragments of two steps. So they are the 16 contiguous bytes of chunk
/// q, which it loads at once (see take_fragments).
__host__ __device__ constexpr int fragment_k(int t) {
  const int e = t % 32, q = e / 8, p = e % 8 / 2;
  return t / 32 * 32 + p / 2 * 16 + p % 2 * 8 + 2 * q + e % 2;
}

/// Distributes `eight`, a lane's 16 bytes of 32 coordinates, to the A fragments of two steps: of
/// the upper row (i = 0) or the one 8 below (i = 1).
__device__ __forceinline__ void take_fragments(std::uint32_t (&first)[4],
                                               std::uint32_t (&second)[4], int i, uint4 eight) {
  first[i] = eight.x;
  first[i + 2] = eight.y;
  second[i] = eight.z;
  second[i + 2] = eight.w;
}

/// A thread's accumulators of a row, counted from 0, belong to these columns: quad lane q has
/// columns 8b + 2q and 8b + 2q + 1 of each block b of 8.
__host__ __device__ constexpr int accumulator_column(int ordinal, int quad) {
  return ordinal / 2 * 8 + 2 * quad + ordinal % 2;
}

}  // namespace lloyd::fast
