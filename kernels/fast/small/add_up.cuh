// Adds up the cells of sums and counts that fast_private keeps apart, in a fixed order.
#pragma once

namespace lloyd::fast {
namespace {

/// The total of cells that hold a sum or, in the same bits, a count. (A count kept as a float would
/// stop at 2^24.)
struct Total {
  float sum = 0;
  unsigned count = 0;
  __device__ void add(float cell) {
    sum += cell;
    count += __float_as_uint(cell);
  }
  __device__ float cell(bool is_count) const { return is_count ? __uint_as_float(count) : sum; }
};

/// totals[c] = the sum over i < terms of what read(total, c, i) adds, for each cell c. Rows of Row
/// cells have sums and, last, a count. Where the block has threads to spare, several share a cell:
/// `totals` has blockDim.x places, or as many as there are cells if those are more.
template <int Row, typename Read>
__device__ void add_up(float* totals, int cells, int terms, Read&& read) {
  const int shares = min(terms, max(1, blockDim.x / cells));
  for (int item = threadIdx.x; item < shares * cells; item += blockDim.x) {
    const int c = item % cells, share = item / cells;
    Total total;
#pragma unroll 8
    for (int i = share * terms / shares; i < (share + 1) * terms / shares; ++i) read(total, c, i);
    totals[item] = total.cell(c % Row == Row - 1);
  }
  __syncthreads();
  const int c = threadIdx.x;
  if (shares > 1 && c < cells) {
    Total total;
    for (int share = 0; share < shares; ++share) total.add(totals[share * cells + c]);
    totals[c] = total.cell(c % Row == Row - 1);
  }
  __syncthreads();
}

}  // namespace
}  // namespace lloyd::fast
