// The kernels of goldsborough_atomic and the class that launches them. goldsborough_thrust and
// goldsborough_shared are variants of it.
#pragma once

#include "kernels/goldsborough/goldsborough.cuh"

namespace lloyd::goldsborough {

template <int Dim>
__global__ void __launch_bounds__(kMostThreads)
    assign_clusters(const float* __restrict__ points, const float* __restrict__ means, float* sums,
                    int* counts, std::int32_t* labels, std::int64_t n, int k, int dim) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const int label = nearest<Dim>(points + i, n, means, k, dim);
  labels[i] = label;
  for (int t = 0; t < (Dim > 0 ? Dim : dim); ++t)
    atomicAdd(&sums[static_cast<std::int64_t>(t) * k + label], points[t * n + i]);
  atomicAdd(&counts[label], 1);
}

/// One thread per cluster.
template <int Dim>
__global__ void __launch_bounds__(kMostThreads)
    compute_new_means(const float* sums, const int* counts, float* means, int k, int dim,
                      float* largest_squared_move) {
  const std::int64_t j = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (j < k) move_mean<Dim>(sums + j, k, counts[j], means + j, k, dim, largest_squared_move);
}

template <template <typename> class Array>
class GlobalAtomics : public Goldsborough<Array> {
 public:
  void prepare(const Problem& problem, Context& context) override {
    Goldsborough<Array>::prepare(problem, context);
    sums_ = Array<float>(problem.centroids.size());
    counts_ = Array<int>(static_cast<std::size_t>(problem.k));
  }

 protected:
  /// Computes labels_, sums_ and counts_ from points_ and means_. sums_ and counts_ are zero before
  /// the call.
  virtual void add_up(Context& context) {
    with_dim(this->problem_.dim, [&](auto dim) {
      assign_clusters<dim.value>
          <<<this->blocks(context), context.tunables.threads_per_block, 0, context.stream>>>(
              this->points_.data(), this->means_.data(), sums_.data(), counts_.data(),
              this->labels_.data(), this->problem_.n, this->problem_.k, this->problem_.dim);
    });
    LLOYD_CUDA_CHECK_LAUNCH();
  }

  Array<float> sums_;
  Array<int> counts_;

 private:
  void assign(Context& context) override {
    counts_.zero(context.stream);
    sums_.zero(context.stream);
    add_up(context);
  }

  void update(Context& context) override {
    const int block = context.tunables.threads_per_block;
    with_dim(this->problem_.dim, [&](auto dim) {
      compute_new_means<dim.value>
          <<<cuda::blocks_for(this->problem_.k, block), block, 0, context.stream>>>(
              sums_.data(), counts_.data(), this->means_.data(), this->problem_.k,
              this->problem_.dim, this->largest_squared_move_.data());
    });
    LLOYD_CUDA_CHECK_LAUNCH();
  }
};

}  // namespace lloyd::goldsborough
