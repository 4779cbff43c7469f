// fast_split: fp32 scores from bf16 products.
//
// Parent   fast_assign.
// What     at dim 2 a score ‖x‖² − 2x·c + ‖c‖² is one step of the tensor cores: 16 bf16 products hold both coordinates in three
//          parts each, ‖c‖² in three and ‖x‖² rounded up, which makes scores positive, so that their bits order as integers and
//          one instruction takes the minimum of three. The smallest of 16 centroids' scores at a time is kept, and the
//          distances to the winning 16 are computed again in fp32. A warpgroup multiplies 64 points by 64 centroids while it
//          looks through the 64 before (wgmma; mma.sync on other GPUs). Sums are atomics in global memory, in 16 copies.
// Why      fast_assign's FFMAs and minima get in each other's way: 3.9 cycles a score and warp. Here a score is half an
//          instruction for the minimum, and the products are the tensor cores'.
// Limits   dim ≤ 2, compute capability 8.0; 41 B of shared memory a centroid: k ≤ 4,736 on an H200. Atomics on one cluster wait for
//          each other: where few clusters have most points (19 ms at k = 1, n = 1e7; 1.1 at k = 32) another version is faster.
//          Labels keep the bound of the expanded distance: left out is 2^-26·|x||c|, and the tensor cores cut sums of 16
//          terms off at some 2^-25 of the largest. Points are centred or refused as in lib/placement.h.
// Floor    n = 1e7, k = 1000: 128 scores a clock and multiprocessor, both by the products and by the minima: 0.30 ms.
// Predicted 0.52 ms.
// Measured H200, 2026-11-21, n = 1e7, dim 2: k = 1000 0.80 ms (fast_assign 1.59), k = 4000 2.58; k = 256 0.61, k = 100 0.66: there fast_assign
//          is the faster (0.55, 0.24). At k = 1000 ALU 67% busy, tensor cores 44%, 51% of cycles issue. Before: a point's four lanes
//          each doing all of its work beside the scores 0.95; groups of 16 in the same banks and sums in shared memory 1.12.
#include "kernels/fast/small/limits.h"

#if LLOYD_CUDA
#include <cuda_bf16.h>

#include "kernels/fast/lib/layout.cuh"
#include "kernels/fast/lib/ptx/mma.cuh"
#include "kernels/fast/lib/ptx/wgmma.cuh"
#include "kernels/fast/lib/resident_blocks.h"
#include "kernels/fast/small/sums.cuh"
#endif

namespace lloyd::fast {
namespace {

constexpr int kColumns = 128;  // centroids of a tile, whose halves are two products
constexpr int kHalf = kColumns / 2;
constexpr int kThreads = 512;  // four warpgroups, each with 64 points
constexpr int kRowBytes = 48;
constexpr int kGroup = 16;  // centroids; 18 places, so that groups start in different banks
constexpr int kPlaces = 18;
constexpr int kCopies = 16;                  // of the sums, so that few blocks wait for each other
constexpr int kPanelBytes = 128 * kColumns;  // four tiles of kColumns centroids × 16 bf16

int tiles_of(int k) { return (k + kColumns - 1) / kColumns; }

std::int64_t shared_bytes(const Problem& problem) {
  const int tiles = tiles_of(problem.k);
  return 1024 +  // panels start at multiples of that
         std::int64_t{(tiles + 3) / 4} * kPanelBytes + 8LL * tiles * kColumns / kGroup * kPlaces +
         kThreads * kRowBytes;
}

#if LLOYD_CUDA
constexpr std::uint32_t kOne = 0x3f80;  // a bf16

// Three bf16 of each of two numbers, in pairs, the first number low, that add up to it but for 2^-27 of it.
struct Split {
  std::uint32_t part[3];
  __device__ Split(float x, float y) {
#pragma unroll
    for (std::uint32_t& pair : part) {
      const __nv_bfloat162 rounded = __floats2bfloat162_rn(x, y);
      pair = *reinterpret_cast<const std::uint32_t*>(&rounded);
      x -= __low2float(rounded);
      y -= __high2float(rounded);
    }
  }
};

// ‖x‖² − 2x·c + ‖c‖² in one step of 16 bf16 products, eight pairs: for the point (parts x1 + x2 + x3, likewise y) and for the
// centroid (parts of −2c and of b = ‖c‖²)
//   (x1, y1) (x1, y1) (x2, y2) (x2, y2) (x1, y1) (x3, y3) (1, 1)   (1, o)
//   c1       c2       c1       c2       c3       c1       (b1, b2) (b3, 1)
// What is left out, x2·c3, x3·c2 and less, is 2^-26 of |x||c|. o is a little more than ‖x‖², the same for all of a point's
// scores: it changes no order and makes them positive, so that their bits order as integers do.
__device__ void fill_panels(unsigned char* panels, float2* exact, const float* centroids, int k,
                            int dim, int padded_k) {
  for (int j = threadIdx.x; j < padded_k; j += blockDim.x) {
    const float x = j < k ? centroids[j * dim] : 0;
    const float y = j < k && dim > 1 ? centroids[j * dim + 1] : 0;
    const Split c(-2 * x, -2 * y), b(fmaf(x, x, y * y), 0);
    // Columns are dealt so that a thread's 16 scores of half a tile are those of 16 centroids in a row.
    const int group = j / 16, within = j % 16;
    const int tile = group / 8, half = group / 4 % 2, lane = group % 4;
    const int column = 64 * half + within / 2 * 8 + 2 * lane + within % 2;
    unsigned char* row = panels + tile / 4 * kPanelBytes + column * 128;
    const int chunk = tile % 4 * 2;
    // Past k: infinitely far.
    const std::uint32_t b12 = j < k ? b.part[0] | b.part[1] << 16 : 0x7f80;
    *reinterpret_cast<uint4*>(row + swizzle(column, chunk) * 16) =
        make_uint4(c.part[0], c.part[1], c.part[0], c.part[1]);
    *reinterpret_cast<uint4*>(row + swizzle(column, chunk + 1) * 16) =
        make_uint4(c.part[2], c.part[0], b12, b.part[2] | kOne << 16);
    exact[j / kGroup * kPlaces + j % kGroup] =
        j < k ? make_float2(x, y) : make_float2(INFINITY, INFINITY);
  }
}

// A point's side of the products, 32 bytes. Rows of 48 keep eight of them in different banks, for ldmatrix.
__device__ void write_row(unsigned char* row, float x, float y) {
  const Split p(x, y), offset(0, 1.015625f * fmaf(x, x, y * y));
  auto* chunks = reinterpret_cast<uint4*>(row);
  chunks[0] = make_uint4(p.part[0], p.part[0], p.part[1], p.part[1]);
  chunks[1] = make_uint4(p.part[0], p.part[2], kOne | kOne << 16, kOne | offset.part[0]);
}

// Sixteen rows as the A of a product.
__device__ void read_rows(const unsigned char* rows, std::uint32_t (&a)[4]) {
  const int lane = threadIdx.x % 32;
  ptx::ldmatrix(a, rows + lane % 16 * kRowBytes + lane / 16 * 16);
}

// The smallest score so far of one row of the accumulators, and in which half tile.
struct Best {
  int bits = 0x7f800000, where = 0;

  __device__ __forceinline__ void look(const float (&d)[kHalf / 2], int first, int half_tile) {
    int smallest = bits;
#pragma unroll
    for (int b = 0; b < kHalf / 8; ++b)
      smallest = __vimin3_s32(smallest, __float_as_int(d[4 * b + first]),
                              __float_as_int(d[4 * b + first + 1]));
    if (smallest != bits) where = half_tile;
    bits = smallest;
  }
};

// The nearest of a group's 16 centroids in fp32.
__device__ int nearest_of_group(const float2* exact, int group, float x, float y) {
  const auto* pairs = reinterpret_cast<const float4*>(exact + kPlaces * group);
  float best = INFINITY;
  int within = 0;
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const float4 c = pairs[i];
    const float ax = x - c.x, ay = y - c.y, bx = x - c.z, by = y - c.w;
    const float first = fmaf(ax, ax, ay * ay), second = fmaf(bx, bx, by * by);
    if (first < best) within = 2 * i;
    best = fminf(best, first);
    if (second < best) within = 2 * i + 1;
    best = fminf(best, second);
  }
  return kGroup * group + within;
}

// Starts the products of 64 points, by a warpgroup, with half a tile's 128 centroids: d[4b + i] row g of the warp's 16 and
// column 8b + 2q + i of the half, d[4b + 2 + i] row g + 8.
__device__ __forceinline__ void multiply(float (&d)[kHalf / 2], const std::uint32_t (&a)[4],
                                         const unsigned char* half_tile, int slot) {
#if LLOYD_HOPPER_CODE
  ptx::Wgmma<__nv_bfloat16, kHalf>::run(d, a, ptx::wgmma_descriptor(half_tile) + 2 * slot, 0);
  ptx::wgmma_commit();
#elif __CUDA_ARCH__ >= 800
  const int g = threadIdx.x % 32 / 4, q = threadIdx.x % 4;
#pragma unroll
  for (int b = 0; b < kHalf / 8; ++b) {
    const auto* row = half_tile + (8 * b + g) * 128;
    const auto low = reinterpret_cast<const std::uint32_t*>(row + swizzle(g, 2 * slot) * 16)[q];
    const auto high =
        reinterpret_cast<const std::uint32_t*>(row + swizzle(g, 2 * slot + 1) * 16)[q];
    ptx::mma_from_zero(d + 4 * b, a, low, high);
  }
#endif
}

// Until all but the latest kPending products are there.
template <int kPending>
__device__ __forceinline__ void await(float (&d)[kHalf / 2]) {
#if LLOYD_HOPPER_CODE
  ptx::wgmma_wait<kPending>();
  ptx::hold(d);
#endif
}

__global__ void __launch_bounds__(kThreads, 1)
    assign_and_sum(const float* points, const float* centroids, float* sums, int* counts,
                   std::int32_t* labels, Flags* flags, std::int64_t n, int k, int dim, int tiles) {
  extern __shared__ unsigned char shared[];
  // In 64 bits: panel_padding() has 32, and ptxas then orders the loop otherwise.
  unsigned char* panels = shared + (1024 - __cvta_generic_to_shared(shared) % 1024) % 1024;
  unsigned char* all_rows = panels + (tiles + 3) / 4 * kPanelBytes;
  auto* exact = reinterpret_cast<float2*>(all_rows + kThreads * kRowBytes);
  fill_panels(panels, exact, centroids, k, dim, tiles * kColumns);
#if LLOYD_HOPPER_CODE
  ptx::fence_proxy_async();  // the products read what was stored
#endif
  __syncthreads();

  const int lane = threadIdx.x % 32, g = lane / 4, q = lane % 4;
  sums += blockIdx.x % kCopies * k * dim;
  counts += blockIdx.x % kCopies * k;
  unsigned char* rows = all_rows + threadIdx.x / 32 * 32 * kRowBytes;  // the warp's
  const std::int64_t step = std::int64_t{gridDim.x} * kThreads;
  unsigned changes = 0;
  // A lane's point; a warpgroup's steps are together, so that the last is judged by its first thread's.
  std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  const auto load = [&](std::int64_t at) {
    return at >= n   ? float2{}
           : dim > 1 ? reinterpret_cast<const float2*>(points)[at]
                     : float2{points[at], 0};
  };
  float2 next = load(i);
  for (; i - threadIdx.x % 128 < n; i += step) {
    const float2 x = next;
    next = load(i + step);
    write_row(rows + lane * kRowBytes, x.x, x.y);
    __syncwarp();
    // Sixteen of the warp's points at a time: with those of the other three warps the 64 of a product.
#pragma unroll 1
    for (int part = 0; part < 2; ++part) {
      unsigned char* sixteen = rows + part * 16 * kRowBytes;
      std::uint32_t a[4];
      read_rows(sixteen, a);
      Best best[2];
      for (int tile = 0; tile < tiles; ++tile) {
        const unsigned char* panel = panels + tile / 4 * kPanelBytes;
        float d[2][kHalf / 2];
#if LLOYD_HOPPER_CODE
        ptx::wgmma_fence();
#endif
        multiply(d[0], a, panel, tile % 4);
        multiply(d[1], a, panel + kHalf * 128, tile % 4);
        await<1>(d[0]);
        best[0].look(d[0], 0, 2 * tile);
        best[1].look(d[0], 2, 2 * tile);
        await<0>(d[1]);
        best[0].look(d[1], 0, 2 * tile + 1);
        best[1].look(d[1], 2, 2 * tile + 1);
      }
      // Where the row was, what the four lanes found for it.
      __syncwarp();
#pragma unroll
      for (int r = 0; r < 2; ++r)
        reinterpret_cast<int2*>(sixteen + (g + 8 * r) * kRowBytes)[q] =
            make_int2(best[r].bits, 4 * best[r].where + q);
    }
    __syncwarp();
    const auto* found = reinterpret_cast<const int4*>(rows + lane * kRowBytes);
    const int4 low = found[0], high = found[1];
    __syncwarp();
    int smallest = low.x, group = low.y;
    const auto take = [&](int bits, int other) {
      // Equal scores: the lowest group.
      if (bits < smallest || (bits == smallest && other < group)) group = other;
      smallest = min(smallest, bits);
    };
    take(low.z, low.w);
    take(high.x, high.y);
    take(high.z, high.w);
    if (i < n) {
      const int label = nearest_of_group(exact, group, x.x, x.y);
      if (flags != nullptr) changes += labels[i] != label;
      labels[i] = label;
      // Nobody waits for these; in shared memory they would be loops.
      atomicAdd(&sums[label * dim], x.x);
      if (dim > 1) atomicAdd(&sums[label * dim + 1], x.y);
      atomicAdd(&counts[label], 1);
    }
    __syncwarp();  // the next product is all lanes' together
  }
  if (changes > 0) atomicAdd(&flags->changes, changes);
}

class SplitScores : public SmallSums {
 public:
  SplitScores() : SmallSums(kCopies) {}

 private:
  void choose_grid(Context& context) override {
    blocks_ = resident_blocks(assign_and_sum, kThreads, shared_bytes(problem_),
                              (problem_.n + kThreads - 1) / kThreads, context.device);
  }

  void assign(Context& context, Flags* flags) override {
    assign_and_sum<<<blocks_, kThreads, shared_bytes(problem_), context.stream>>>(
        points_.data(), centroids_.data(), sums_.data(), counts_.data(), labels_.data(), flags,
        problem_.n, problem_.k, problem_.dim, tiles_of(problem_.k));
    LLOYD_CUDA_CHECK_LAUNCH();
  }

  int blocks_ = 0;
};
#endif

LLOYD_CUDA_VERSION(
    SplitScores,
    {.name = "fast_split",
     .family = "fast",
     .backend = Backend::cuda,
     .parent = "fast_assign",
     .precisions = {Precision::fp32},
     .distance = Distance::expanded,
     .summary = "two dimensions: fp32 scores as bf16 products in three parts, minima of integers",
     .unsupported = [](const Problem& problem, const Tunables&,
                       const DeviceLimits& device) -> std::optional<std::string> {
       if (problem.dim > 2)
         return "has 16 products a score, which take 2 dimensions, not " + with_commas(problem.dim);
       if (device.compute_capability < 80)
         return "needs bf16 products (compute capability 8.0), device has " +
                std::to_string(device.compute_capability / 10) + "." +
                std::to_string(device.compute_capability % 10);
       return optin_shared_shortfall(shared_bytes(problem), device);
     }});

}  // namespace
}  // namespace lloyd::fast
