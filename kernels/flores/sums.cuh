// The kernel and the loop of flores_sums, which flores_generation uses too.
#pragma once

#include <optional>
#include <string>

#include "kernels/flores/flores.h"
#include "kernels/flores/sums_limits.h"

namespace lloyd::flores {

/// The points, sums and counts of the block are in shared memory: sums_shared_bytes().
template <int Dim>
__global__ void distribute_and_sum(const float* points, const float* centroids,
                                   std::int32_t* labels, int* changed, float* sums, int* counts,
                                   std::int64_t n, int k, int dim, int samples_per_thread) {
  const int d = Dim > 0 ? Dim : dim;
  const int threads = static_cast<int>(blockDim.x);
  const int most = threads * samples_per_thread;
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * most;
  const int own = static_cast<int>(min(static_cast<std::int64_t>(most), n - first));
  extern __shared__ float block_points[];  // most × d, then k × d sums, then k counts
  float* block_sums = block_points + most * d;
  int* block_counts = reinterpret_cast<int*>(block_sums + k * d);
  for (int c = threadIdx.x; c < own * d; c += threads) block_points[c] = points[first * d + c];
  for (int c = threadIdx.x; c < k * d; c += threads) block_sums[c] = 0;
  for (int j = threadIdx.x; j < k; j += threads) block_counts[j] = 0;
  __syncthreads();

  for (int p = threadIdx.x; p < own; p += threads) {
    const float* x = block_points + p * d;
    const int label = nearest<Dim>(x, centroids, k, d);
    set_label(&labels[first + p], label, changed);
    for (int t = 0; t < d; ++t) atomicAdd_block(&block_sums[label * d + t], x[t]);
    atomicAdd_block(&block_counts[label], 1);
  }
  __syncthreads();

  for (int j = threadIdx.x; j < k; j += threads) {
    for (int t = 0; t < d; ++t) atomicAdd(&sums[j * d + t], block_sums[j * d + t]);
    atomicAdd(&counts[j], block_counts[j]);
  }
}

class Sums : public Flores {
 public:
  void prepare(const Problem& problem, Context& context) override {
    Flores::prepare(problem, context);
    sums_ = cuda::Buffer<float>(problem.centroids.size());
    counts_ = cuda::Buffer<int>(static_cast<std::size_t>(problem.k));
    copied_counts_.resize(counts_.size());
  }

 protected:
  void assign(Context& context) override {
    sums_.zero(context.stream);
    counts_.zero(context.stream);
    with_dim(problem_.dim, [&](auto dim) {
      distribute_and_sum<dim.value>
          <<<blocks(context), context.tunables.threads_per_block,
             sums_shared_bytes(problem_, context.tunables), context.stream>>>(
              points_.data(), centroids_.data(), labels_.data(), changed_.data(), sums_.data(),
              counts_.data(), problem_.n, problem_.k, problem_.dim,
              context.tunables.samples_per_thread);
    });
    LLOYD_CUDA_CHECK_LAUNCH();
  }

  void sum(Context& context) override {
    const auto phase = context.phase("transfer");
    sums_.download(host_sums_, context.stream);
    counts_.download(copied_counts_, context.stream);
    host_counts_.assign(copied_counts_.begin(), copied_counts_.end());
  }

 private:
  cuda::Buffer<float> sums_;
  cuda::Buffer<int> counts_;
  std::vector<int> copied_counts_;
};

}  // namespace lloyd::flores
