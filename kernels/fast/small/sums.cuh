// What fast_assign and fast_split share beyond small.cuh: an assignment that adds to sums in global memory, and the kernel
// that divides them.
#pragma once

#include "kernels/fast/small.cuh"

namespace lloyd::fast {

// Of `copies` of sums (k × dim) and counts. Leaves zeros for the next iteration.
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

class SmallSums : public Small {
 protected:
  explicit SmallSums(int copies = 1) : copies_(copies) {}

  /// From points_ and centroids_ to labels_, and added to any of the copies in sums_ and counts_ (zeros before); counts in `flags` the points that
  /// changed, unless it is null.
  virtual void assign(Context& context, Flags* flags) = 0;
  virtual void choose_grid(Context& context) = 0;

  cuda::Buffer<float> sums_;
  cuda::Buffer<int> counts_;
  cuda::Buffer<std::int32_t> labels_;

 private:
  int copies_;

  void allocate(Context& context) override {
    const auto copies = static_cast<std::size_t>(copies_);
    sums_ = cuda::Buffer<float>(copies * problem_.centroids.size());
    counts_ = cuda::Buffer<int>(copies * static_cast<std::size_t>(problem_.k));
    labels_ = cuda::Buffer<std::int32_t>(static_cast<std::size_t>(problem_.n));
    choose_grid(context);
  }

  void forget_labels(Context& context) override {
    sums_.zero(context.stream);
    counts_.zero(context.stream);
    if (problem_.stop.min_changes > 0)
      LLOYD_CUDA_CHECK(cudaMemsetAsync(labels_.data(), 0xff, labels_.bytes(), context.stream));
  }

  void step(Context& context, bool) override {
    {
      const auto phase = context.phase("assign");
      assign(context, problem_.stop.min_changes > 0 ? flags_.data() : nullptr);
    }
    const auto phase = context.phase("update");
    constexpr int kBlock = 128;
    move_centroids<<<cuda::blocks_for(problem_.k, kBlock), kBlock, 0, context.stream>>>(
        sums_.data(), counts_.data(), copies_, centroids_.data(), problem_.k, problem_.dim,
        problem_.stop.tolerance > 0 ? flags_.data() : nullptr);
    LLOYD_CUDA_CHECK_LAUNCH();
  }

  std::vector<std::int32_t> fetch_labels(Context& context) override {
    std::vector<std::int32_t> labels(labels_.size());
    labels_.download(labels, context.stream);
    return labels;
  }
};

}  // namespace lloyd::fast
