// What fast_assign and fast_split share: an assignment that adds to sums in global memory, and the
// kernel that divides them.
#pragma once

#include "kernels/fast/lib/device_loop.h"

namespace lloyd::fast {

// A thread moves a centroid to the mean of its points, from `copies` copies of all sums (k × dim)
// and counts, and leaves zeros for the next iteration.
static __global__ void move_centroids(float* sums, int* counts, int copies, float* centroids, int k,
                                      int dim, Flags* flags) {
  const int j = blockIdx.x * blockDim.x + threadIdx.x;
  if (j >= k) return;
  int count = 0;
#pragma unroll 16
  for (int copy = 0; copy < copies; ++copy) count += counts[copy * k + j];
  if (count == 0) return;
  for (int copy = 0; copy < copies; ++copy) counts[copy * k + j] = 0;
  float move = 0;
  for (int t = 0; t < dim; ++t) {
    float sum = 0;
#pragma unroll 16
    for (int copy = 0; copy < copies; ++copy) sum += sums[(copy * k + j) * dim + t];
    for (int copy = 0; copy < copies; ++copy) sums[(copy * k + j) * dim + t] = 0;
    const float mean = sum / static_cast<float>(count);
    const float step = mean - centroids[j * dim + t];
    move += step * step;
    centroids[j * dim + t] = mean;
  }
  if (flags != nullptr) atomicMax(&flags->largest_move, __float_as_uint(move));
}

class SmallSums : public DeviceLoop {
 public:
  void prepare(const Problem& problem, Context& context) override {
    allocate(problem);
    copies_ = copies_for(problem.k);
    const auto copies = static_cast<std::size_t>(copies_);
    sums_ = cuda::Buffer<float>(copies * problem.centroids.size());
    const auto batch = static_cast<std::size_t>(problem.batch);
    counts_ = cuda::Buffer<int>(copies * batch * static_cast<std::size_t>(problem.k));
    labels_ = cuda::Buffer<std::int32_t>(batch * static_cast<std::size_t>(problem.n));
    choose_grid(context);
    points_ = upload_placed(Distance::expanded, context);
  }

 protected:
  /// Copies of sums and counts. With more of them, fewer blocks wait for each other.
  virtual int copies_for(int) const { return 1; }
  virtual void choose_grid(Context& context) = 0;
  /// From points_ and centroids_ to labels_, and added to any of the copies in sums_ and counts_,
  /// which are zero before. Where `flags` is not null, it counts there the points that changed.
  virtual void assign(Context& context, Flags* flags) = 0;

  cuda::Buffer<float> points_, sums_;
  cuda::Buffer<int> counts_;
  cuda::Buffer<std::int32_t> labels_;
  int copies_ = 1;

 private:
  void begin(Context& context) override {
    sums_.zero(context.stream);
    counts_.zero(context.stream);
    forget(labels_, context);
  }

  void step(Context& context) override {
    {
      const auto phase = context.phase("assign");
      assign(context, has_min_changes() ? flags_.data() : nullptr);
    }
    const auto phase = context.phase("update");
    constexpr int kBlock = 128;
    const int clusters = problem_.batch * problem_.k;
    forget_centroids(context);
    move_centroids<<<cuda::blocks_for(clusters, kBlock), kBlock, 0, context.stream>>>(
        sums_.data(), counts_.data(), copies_, centroids_.data(), clusters, problem_.dim,
        largest_move_to_mean() != nullptr ? flags_.data() : nullptr);
    LLOYD_CUDA_CHECK_LAUNCH();
    scale_means(context);
  }

  std::vector<std::int32_t> fetch_labels(Context& context) override {
    return cuda::download_labels(labels_, context);
  }
};

}  // namespace lloyd::fast
