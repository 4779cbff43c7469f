// fast_private: assignment and sums in one pass over the points, with no atomics for the sums.
//
// Parent   fast_assign.
// What     Each lane of a warp adds its points to sums of its own, in a bank of its own, by plain
//          loads and stores. Blocks leave their sums in global memory; the last block to end adds
//          them up and moves the centroids, so that an iteration is one launch.
// Why      fast_assign waits for its atomics where clusters are few, and writes 4 bytes of label
//          per point and iteration. Here labels are bytes, written only when they may be the last.
//          All sums are in one order, given the device and the launch: the same bits in every run.
// Limits   k ≤ 255, and 128 B of shared memory per warp, cluster and coordinate: at dim 2 k ≤ 74
//          with 256 threads a block on an H200, 147 with 128, 48 with 384. Points of 16 bits are
//          widened to fp32 once (lib/NOTES.md).
// Floor    8 B per point, 0.018 ms at n = 1e7, dim 2. At k = 32 the scores take longer: 0.048 ms.
// More     small/NOTES.md.
#include "kernels/fast/small/limits.h"

#if LLOYD_CUDA
#include "kernels/fast/lib/device_loop.h"
#include "kernels/fast/lib/resident_blocks.h"
#include "kernels/fast/small/add_up.cuh"
#include "kernels/fast/small/nearest.cuh"
#include "kernels/fast/small/tile.cuh"
#endif

namespace lloyd::fast {
namespace {

constexpr int kWarp = 32;
constexpr int kMostClusters = 255;  // a label is a byte, and 255 is none yet

// A minimum is compared once for each group, and the winner of one group is searched for each
// point: with more centroids, larger groups pay.
int quads_per_group(int k) { return k <= 64 ? 1 : 2; }
int warps_of(const Tunables& tunables) { return (tunables.threads_per_block + kWarp - 1) / kWarp; }

// In this order: the table, the columns, the totals (see assign_and_sum). The columns have one more
// cluster, k, for what is past the last point.
std::int64_t shared_bytes(const Problem& problem, const Tunables& tunables) {
  return table_bytes(problem.dim, quads_of(problem.k, quads_per_group(problem.k))) +
         4LL * kWarp * warps_of(tunables) * (problem.k + 1) * (padded_dim(problem.dim) + 1) +
         4LL * std::max(tunables.threads_per_block, problem.k * (padded_dim(problem.dim) + 1));
}

#if LLOYD_CUDA
constexpr int kPoints = 8;  // in a thread, where they have few dimensions

// The bits of a count in a cell, and one more point (see Total).
__device__ __forceinline__ float one_more(float count) {
  return __uint_as_float(__float_as_uint(count) + 1);
}

// Writes the labels of a thread's points, and counts those that have changed.
template <int D, int P>
__device__ __forceinline__ void put_labels(const Tile<D, P>& tile, const int (&label)[P], int k,
                                           bool count_changes, std::uint8_t* labels,
                                           unsigned& changes) {
#pragma unroll
  for (int p = 0; p < P; ++p) {
    if (label[p] == k) continue;
    std::uint8_t* kept = labels + tile.first + tile.at(p);
    if (count_changes) changes += *kept != label[p];
    *kept = static_cast<std::uint8_t>(label[p]);
  }
}

// Adds each of a thread's points to the columns of its lane, which begin at `columns`.
template <int P, int D>
__device__ __forceinline__ void add_points(const float (&x)[P][D], const int (&label)[P],
                                           float* columns) {
#pragma unroll
  for (int p = 0; p < P; ++p) {
    float* cell = columns + label[p] * (D + 1) * kWarp;
#pragma unroll
    for (int t = 0; t < D; ++t) cell[t * kWarp] += x[p][t];
    cell[D * kWarp] = one_more(cell[D * kWarp]);
  }
}

// Adds up the columns of all lanes and warps in a fixed order: the same grid gives the same bits.
template <int kRow>
__device__ __forceinline__ void add_columns(float* totals, int cells, int warps,
                                            const float* columns) {
  add_up<kRow>(totals, cells, warps, [&](Total& total, int c, int w) {
    const auto* lanes = reinterpret_cast<const float4*>(columns + (w * (cells + kRow) + c) * kWarp);
#pragma unroll
    for (int four = 0; four < kWarp / 4; ++four) {
      // Each cell starts at another lane, so eight threads read eight different fours of banks.
      const float4 v = lanes[(four + c) % (kWarp / 4)];
      total.add(v.x);
      total.add(v.y);
      total.add(v.z);
      total.add(v.w);
    }
  });
}

// Writes the block's totals to its part. Returns whether this block is the last one to do so.
__device__ __forceinline__ bool leave_part(const float* totals, int cells, float* parts,
                                           Flags* flags) {
  for (int c = threadIdx.x; c < cells; c += blockDim.x)
    parts[static_cast<std::int64_t>(blockIdx.x) * cells + c] = totals[c];
  __threadfence();
  __syncthreads();
  return __syncthreads_or(threadIdx.x == 0 &&
                          atomicInc(&flags->blocks_done, gridDim.x - 1) == gridDim.x - 1);
}

// A whole iteration. A thread holds P points; a block takes tiles of blockDim.x · P points, with
// the next tile on its way, and all centroids in a table in shared memory. For each tile:
//   label  the thread's points: nearest()
//   add    each of them to the columns of its lane, which no other thread touches: add_points()
// Then the block adds up its columns and leaves the totals in `parts`: add_columns(), leave_part().
// The last block to do so adds up the parts of all blocks and moves the centroids.
// Blocks along y have the problems of a batch.
template <int D, int Quads, bool kBatched>
__global__ void __launch_bounds__(kMostThreads)
    assign_and_sum(const float* points, float* centroids, float* parts, std::uint8_t* labels,
                   Flags* flags, std::int64_t n, int k, int dim, bool backwards, bool write_labels,
                   bool count_changes) {
  constexpr int P = points_per_thread(D, kPoints);
  extern __shared__ float4 table[];
  if constexpr (kBatched) {
    const std::int64_t problem = blockIdx.y;
    points += problem * n * dim;
    labels += problem * n;
    centroids += problem * k * dim;
    parts += problem * gridDim.x * k * (D + 1);
    flags += problem;
  }
  const int quads = quads_of(k, Quads);
  // columns[warp][cluster][D sums and a count][lane]: a lane adds in a bank of its own, to cells
  // that no other thread touches. What is past the last point goes to a cluster of its own, k.
  float* columns = reinterpret_cast<float*>(table + (D + 1) * quads);
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  const int warps = (blockDim.x + kWarp - 1) / kWarp;
  constexpr int kRow = D + 1;
  const int cells = k * kRow;
  const std::int64_t tiles = (n + blockDim.x * P - 1) / (blockDim.x * P);
  const auto tile_at = [&](std::int64_t turn) {
    return Tile<D, P>(backwards ? tiles - 1 - turn : turn, n);
  };
  float next[P][D];
  // The first tile is loaded while the shared memory is set up.
  if (blockIdx.x < tiles) tile_at(blockIdx.x).load(next, points, dim);
  fill_table<D, Quads>(table, quads, centroids, k, dim);
  for (int c = threadIdx.x; c < warps * (cells + kRow) * kWarp / 4; c += blockDim.x)
    reinterpret_cast<float4*>(columns)[c] = float4{};
  __syncthreads();

  float* mine = columns + warp * (cells + kRow) * kWarp + lane;
  unsigned changes = 0;
  for (std::int64_t turn = blockIdx.x; turn < tiles; turn += gridDim.x) {
    const Tile<D, P> tile = tile_at(turn);
    float x[P][D];
    int label[P];
#pragma unroll
    for (int p = 0; p < P; ++p)
#pragma unroll
      for (int t = 0; t < D; ++t) x[p][t] = next[p][t];
    // The next tile is loaded while the block works on this one.
    if (turn + gridDim.x < tiles) tile_at(turn + gridDim.x).load(next, points, dim);
    nearest<D, P, Quads>(table, quads, x, label);
    if (!tile.is_full()) {
#pragma unroll
      for (int p = 0; p < P; ++p)
        if (tile.at(p) >= tile.points) label[p] = k;
    }
    if (write_labels) put_labels(tile, label, k, count_changes, labels, changes);
    add_points(x, label, mine);
  }
  if (changes > 0) atomicAdd(&flags->changes, changes);
  __syncthreads();

  float* totals = columns + warps * (cells + kRow) * kWarp;
  add_columns<kRow>(totals, cells, warps, columns);
  if (!leave_part(totals, cells, parts, flags)) return;
  __threadfence();

  // The last block moves the centroids. (As a function of its own, this loop would change the
  // kernel's machine code.)
  add_up<kRow>(totals, cells, gridDim.x, [&](Total& total, int c, int block) {
    total.add(__ldcg(&parts[static_cast<std::int64_t>(block) * cells + c]));
  });
  for (int j = threadIdx.x; j < k; j += blockDim.x) {
    const float* total = totals + j * kRow;
    const unsigned count = __float_as_uint(total[D]);
    if (count == 0) continue;
    float move = 0;
    for (int t = 0; t < dim; ++t) {
      const float mean = total[t] / static_cast<float>(count);
      const float step = mean - centroids[j * dim + t];
      move += step * step;
      centroids[j * dim + t] = mean;
    }
    atomicMax(&flags->largest_move, __float_as_uint(move));
  }
}

class Private : public DeviceLoop {
 public:
  void prepare(const Problem& problem, Context& context) override {
    allocate(problem);
    const auto batch = static_cast<std::size_t>(problem.batch);
    labels_ = cuda::Buffer<std::uint8_t>(batch * static_cast<std::size_t>(problem.n));
    flags_ = cuda::Buffer<Flags>(batch);
    const int threads = context.tunables.threads_per_block;
    const std::int64_t tile =
        std::int64_t{threads} * points_per_thread(padded_dim(problem.dim), kPoints);
    with_kernel([&](auto kernel) {
      const std::int64_t tiles = (problem.n + tile - 1) / tile;
      blocks_ =
          blocks_each(resident_blocks(kernel, threads, shared_bytes(problem, context.tunables),
                                      tiles * problem.batch, context.device),
                      problem.batch, tiles);
    });
    parts_ = cuda::Buffer<float>(batch * static_cast<std::size_t>(blocks_) *
                                 static_cast<std::size_t>(problem.k) *
                                 static_cast<std::size_t>(padded_dim(problem.dim) + 1));
    points_ = upload_placed(Distance::expanded, context);
  }

 private:
  void begin(Context& context) override {
    flags_.zero(context.stream);
    forget(labels_, context);
  }

  void step(Context& context) override {
    const auto phase = context.phase("assign");
    // Every other iteration goes backwards: it begins with the points that the L2 still holds.
    const bool backwards = iterations_ % 2 == 1;
    with_kernel([&](auto kernel) {
      const dim3 grid(static_cast<unsigned>(blocks_), static_cast<unsigned>(problem_.batch));
      kernel<<<grid, context.tunables.threads_per_block, shared_bytes(problem_, context.tunables),
               context.stream>>>(points_.data(), centroids_.data(), parts_.data(), labels_.data(),
                                 flags_.data(), problem_.n, problem_.k, problem_.dim, backwards,
                                 wants_labels(), has_min_changes());
    });
    LLOYD_CUDA_CHECK_LAUNCH();
  }

  std::vector<std::int32_t> fetch_labels(Context& context) override {
    return cuda::download_labels(labels_, context);
  }

  template <typename Body>
  void with_kernel(Body&& body) {
    with_padded_dim(problem_.dim, [&](auto d) {
      const bool few = quads_per_group(problem_.k) == 1;
      if (problem_.batch > 1)
        few ? body(assign_and_sum<d.value, 1, true>) : body(assign_and_sum<d.value, 2, true>);
      else
        few ? body(assign_and_sum<d.value, 1, false>) : body(assign_and_sum<d.value, 2, false>);
    });
  }

  int blocks_ = 0;
  cuda::Buffer<float> points_, parts_;
  cuda::Buffer<std::uint8_t> labels_;
};
#endif

LLOYD_CUDA_VERSION(
    Private,
    {.name = "fast_private",
     .family = "fast",
     .backend = Backend::cuda,
     .parent = "fast_assign",
     .axes = {"threads_per_block"},
     .precisions = {Precision::fp32, Precision::fp16, Precision::bf16},
     .widens_halves = true,
     .distance = Distance::expanded,
     .batches = Batches::together,
     .summary =
         "few dimensions and clusters: one pass, each lane adds to sums of its own, no atomics",
     .unsupported = [](const Problem& problem, const Tunables& tunables,
                       const DeviceLimits& device) -> std::optional<std::string> {
       if (problem.k > kMostClusters)
         return "writes labels as bytes: at most 255 clusters, not " + with_commas(problem.k);
       if (auto reason = no_registers(problem, tunables)) return reason;
       if (auto reason = not_aligned(problem)) return reason;
       return optin_shared_shortfall(shared_bytes(problem, tunables), device);
     }});

}  // namespace
}  // namespace lloyd::fast
