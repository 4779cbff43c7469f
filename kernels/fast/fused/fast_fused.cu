// fast_fused: few clusters: one pass over the points, products on the tensor cores, sums from
// shared memory.
//
// Parent   fast_private.
// What     A warp copies tiles of points to shared memory (cp.async), multiplies them with all
//          centroids (mma.sync, tf32), and adds the rows, which are still there, to sums in shared
//          memory. Each warp has its own copy of the sums; if that is too much memory, two or four
//          warps share a copy, and each adds other dimensions. A second kernel adds the sums of all
//          blocks in a fixed order, moves the centroids and prepares the next products. The two
//          kernels overlap.
// Why      With few clusters other versions wait for kernels and passes, not for products. Here a
//          point is read from memory once.
// Limits   k ≤ 128, dim ≤ 128, and shared memory. It pays where k · dim is at most about 4096.
//          Above that, the table of centroids leaves no room for warps.
// Floor    The points once, at 4.3 TB/s: n = 1e6, dim 32, fp32 0.030 ms; half of that in 16 bits.
// More     assign.cuh has the main kernel, an iteration in order; finish.cuh the second one.
//          NOTES.md: the bound of the products, what was measured and tried.
#include "kernels/core/limits.h"
#include "kernels/fast/fused/plan.h"

#if LLOYD_CUDA
#include <memory>

#include "kernels/fast/fused/assign.cuh"
#include "kernels/fast/fused/finish.cuh"
#include "kernels/fast/lib/device_loop.h"
#include "kernels/fast/lib/require_code.h"
#endif

namespace lloyd::fast {
namespace {

#if LLOYD_CUDA
template <typename T>
__global__ void place_points(const float* given, const float* centre, std::int64_t n, int dim,
                             int stride, T* points) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n * stride) return;
  const std::int64_t point = i / stride;
  const int t = static_cast<int>(i % stride);
  points[i] = static_cast<T>(t < dim ? given[point * dim + t] - centre[t] : 0.0f);
}

template <typename T>
class FusedLoop : public DeviceLoop {
 public:
  void prepare(const Problem& problem, Context& context) override {
    allocate(problem);
    overlaps_ = can_overlap(context.device);
    plan_ = plan_for(problem, context.device.shared_bytes_optin);
    padded_dim_ = padded_dim(problem.dim);
    padded_k_ = padded_k(problem.k);
    // Points are 4, 8 or a multiple of 16 bytes apart.
    stride_ = problem.dim;
    const auto bytes = [&] { return stride_ * static_cast<int>(sizeof(T)); };
    while (bytes() % 16 != 0 && bytes() != 4 && bytes() != 8) ++stride_;
    const int rows = tile_points(padded_dim_, sizeof(T) == 4);
    const std::int64_t tiles = (problem.n + rows - 1) / rows;
    blocks_ = static_cast<int>(std::min<std::int64_t>(context.device.multiprocessors,
                                                      (tiles + plan_.warps - 1) / plan_.warps));
    const auto n = static_cast<std::size_t>(problem.n), k = static_cast<std::size_t>(problem.k);
    const auto padded = static_cast<std::size_t>(padded_dim_);
    labels_ = cuda::Buffer<std::uint8_t>(n);
    table_ = cuda::Buffer<float4>(static_cast<std::size_t>(padded_k_) * padded / 2);
    bias_ = cuda::Buffer<float>(static_cast<std::size_t>(padded_k_));
    sums_ = cuda::Buffer<float>(static_cast<std::size_t>(blocks_) * k * padded);
    counts_ = cuda::Buffer<unsigned>(static_cast<std::size_t>(blocks_) * k);
    shared_bytes_ = static_cast<int>(shared_bytes(problem, plan_));
    with_kernel([&](auto kernel) {
      require_ampere_code(kernel);
      LLOYD_CUDA_CHECK(
          cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes_));
    });
    if constexpr (sizeof(T) == 4) {
      if (stride_ == problem.dim) {
        points_ = upload_placed(Distance::expanded, context);
        return;
      }
    }
    points_ = cuda::Buffer<T>(n * static_cast<std::size_t>(stride_));
    convert_points(upload_points(context), context);
  }

 private:
  // Where the points as they were given are not laid out as the kernel reads them.
  void convert_points(const cuda::Buffer<float>& given, Context& context) {
    const cudaStream_t stream = context.stream;
    place<T>(given, Distance::expanded, context);
    cuda::Buffer<float> centre(placement_.centre().size());
    centre.upload(placement_.centre(), stream);
    constexpr int kBlock = 256;
    place_points<<<cuda::blocks_for(problem_.n * stride_, kBlock), kBlock, 0, stream>>>(
        given.data(), centre.data(), problem_.n, problem_.dim, stride_, points_.data());
    LLOYD_CUDA_CHECK_LAUNCH();
    LLOYD_CUDA_CHECK(cudaStreamSynchronize(stream));
  }

  void begin(Context& context) override {
    forget(labels_, context);
    move(nullptr, nullptr, context);
  }

  void step(Context& context) override {
    assign(context);
    const auto phase = context.phase("update");
    move(sums_.data(), largest_move(), context);
  }

  void assign(Context& context) {
    const auto phase = context.phase("assign");
    const Assignment in{.points = points_.data(),
                        .n = problem_.n,
                        .stride_bytes = stride_ * static_cast<int>(sizeof(T)),
                        .k = problem_.k,
                        .padded_k = padded_k_,
                        .plan = plan_,
                        .table = table_.data(),
                        .bias = bias_.data(),
                        .sums = sums_.data(),
                        .counts = counts_.data(),
                        .labels = labels_.data(),
                        .write_labels = wants_labels(),
                        // It begins with the points that the L2 still holds.
                        .backwards = iterations_ % 2 == 1,
                        .changes = changes()};
    with_kernel([&](auto kernel) {
      launch(overlaps_, kernel, static_cast<unsigned>(blocks_),
             static_cast<unsigned>(plan_.warps * kWarp), shared_bytes_, context.stream, in);
    });
  }

  // Moves the centroids where there are sums, and lays out what assign() multiplies with.
  void move(const float* sums, unsigned* largest_move, Context& context) {
    const int lane_values = std::min(16 / static_cast<int>(sizeof(T)), padded_dim_ / 4);
    launch(overlaps_, finish, static_cast<unsigned>(padded_k_), kFinishBlock, 0, context.stream,
           centroids_.data(), reinterpret_cast<const float4*>(sums), counts_.data(), blocks_,
           problem_.k, padded_k_, problem_.dim, padded_dim_, lane_values,
           reinterpret_cast<float*>(table_.data()), bias_.data(), largest_move);
  }

  std::vector<std::int32_t> fetch_labels(Context& context) override {
    return cuda::download_labels(labels_, context);
  }

  template <int D, typename Body>
  void with_sixteens(Body&& body) {
    constexpr int kRows = tile_points(D, sizeof(T) == 4);
    switch (sixteens_of(problem_.k)) {
      case 1:
        return body(assign_and_sum<T, D, kRows, 1>);
      case 2:
        return body(assign_and_sum<T, D, kRows, 2>);
      default:
        return body(assign_and_sum<T, D, kRows, 4>);
    }
  }
  template <typename Body>
  void with_kernel(Body&& body) {
    switch (padded_dim_) {
      case 8:
        return with_sixteens<8>(body);
      case 16:
        return with_sixteens<16>(body);
      case 32:
        return with_sixteens<32>(body);
      case 64:
        return with_sixteens<64>(body);
      default:
        return with_sixteens<128>(body);
    }
  }

  Plan plan_;
  int padded_dim_ = 0, padded_k_ = 0, stride_ = 0, shared_bytes_ = 0, blocks_ = 0;
  bool overlaps_ = false;
  cuda::Buffer<T> points_;
  cuda::Buffer<float> bias_, sums_;
  cuda::Buffer<float4> table_;
  cuda::Buffer<unsigned> counts_;
  cuda::Buffer<std::uint8_t> labels_;
};

class Fused : public Version {
 public:
  void prepare(const Problem& problem, Context& context) override {
    switch (problem.precision) {
      case Precision::fp16:
        loop_ = std::make_unique<FusedLoop<__half>>();
        break;
      case Precision::bf16:
        loop_ = std::make_unique<FusedLoop<__nv_bfloat16>>();
        break;
      default:
        loop_ = std::make_unique<FusedLoop<float>>();
    }
    loop_->prepare(problem, context);
  }
  void run(Context& context) override { loop_->run(context); }
  Solution fetch(Context& context) override { return loop_->fetch(context); }

 private:
  std::unique_ptr<Version> loop_;
};
#endif

LLOYD_CUDA_VERSION(
    Fused,
    {.name = "fast_fused",
     .family = "fast",
     .backend = Backend::cuda,
     .parent = "fast_private",
     .precisions = {Precision::fp16, Precision::bf16, Precision::fp32},
     .distance = Distance::expanded,
     .summary = "few clusters: one pass over the points, products on the tensor cores in tf32 "
                "parts, sums in shared memory without atomics",
     .unsupported = [](const Problem& problem, const Tunables&,
                       const DeviceLimits& device) -> std::optional<std::string> {
       if (problem.k > kMostClusters)
         return "keeps all clusters in shared memory: at most " + with_commas(kMostClusters) +
                ", not " + with_commas(problem.k);
       if (problem.dim > kMostDim)
         return "keeps whole points in shared memory: at most " + with_commas(kMostDim) +
                " dimensions, not " + with_commas(problem.dim);
       if (device.compute_capability < 80)
         return "tf32 products need compute capability 8.0, this device has " +
                std::to_string(device.compute_capability / 10) + "." +
                std::to_string(device.compute_capability % 10);
       return optin_shared_shortfall(shared_bytes(problem, kSmallest), device);
     }});

}  // namespace
}  // namespace lloyd::fast
