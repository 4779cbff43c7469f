// wang_thrust: the update by sorting, with Thrust.
//
// Parent   wang_global.
// Idea     Every coordinate gets the key label × dim + dimension. stable_sort_by_key brings equal
//          keys together, and reduce_by_key sums their coordinates. A reduce_by_key over the labels
//          gives the counts, and one over the centroids the moves.
// Why      It needs no atomics and no hand-written kernel, but sorts n·dim pairs in each iteration.
//          The study found it the slowest of its three and expected larger inputs to change that.
// Limits   k·dim ≤ 2,147,483,647, so that a key fits an int; about 4·n·dim·(size + 4) B of memory,
//          including the sort's. Thrust chooses the threads per block.
// Fixed    The original takes the reduced values in their order, so an empty cluster, which has no
//          key, shifts all that follow; here each is scattered to the place that its key names. It
//          also reduces the labels by key without sorting them; here a sorted copy is reduced.
// Study    GTX 1080 Ti, in double: slower than the other two on all inputs, nearly wang_global's
//          speed at n = 65,536, dim = 32, k = 16.
#include <limits>

#include "kernels/core/limits.h"

#if LLOYD_CUDA
#include <thrust/execution_policy.h>
#include <thrust/functional.h>
#include <thrust/iterator/constant_iterator.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/discard_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#include <thrust/reduce.h>
#include <thrust/scatter.h>
#include <thrust/sort.h>
#include <thrust/transform.h>

#include <map>

#include "kernels/core/either_precision.h"
#include "kernels/wang/wang.cuh"
#endif

namespace lloyd::wang {
namespace {

#if LLOYD_CUDA
/// Temporary storage for Thrust, kept for the next call, because Thrust asks for the same sizes in
/// every iteration. Reuse is safe because all uses are on one stream.
class TemporaryStorage {
 public:
  using value_type = char;

  char* allocate(std::ptrdiff_t bytes) {
    const auto size = static_cast<std::size_t>(bytes);
    auto found = free_.extract(size);
    cuda::Buffer<char> buffer =
        found.empty() ? cuda::Buffer<char>(size) : std::move(found.mapped());
    char* const data = buffer.data();
    lent_.emplace(data, std::move(buffer));
    return data;
  }

  void deallocate(char* data, std::size_t) {
    auto lent = lent_.extract(data);
    const std::size_t size = lent.mapped().size();
    free_.emplace(size, std::move(lent.mapped()));
  }

 private:
  std::multimap<std::size_t, cuda::Buffer<char>> free_;
  std::map<char*, cuda::Buffer<char>> lent_;
};

template <typename T>
struct Nearest {
  const T* points;
  const T* centroids;
  int k, dim;
  __device__ std::int32_t operator()(std::int64_t i) const {
    return nearest(points + i * dim, centroids, k, dim);
  }
};

/// The key of coordinate c of the points.
struct CoordinateKey {
  const std::int32_t* labels;
  int dim;
  __device__ int operator()(std::int64_t c) const {
    return labels[c / dim] * dim + static_cast<int>(c % dim);
  }
};

/// Coordinate c of the centroids after the division.
template <typename T>
struct Mean {
  const T* sums;
  const int* counts;
  const T* centroids;
  int dim;
  __device__ T operator()(std::int64_t c) const {
    const int count = counts[c / dim];
    return count == 0 ? centroids[c] : sums[c] / count;
  }
};

struct SquaredDifference {
  template <typename T>
  __device__ T operator()(T a, T b) const {
    return (a - b) * (a - b);
  }
};

struct CentroidOf {
  int dim;
  __host__ __device__ int operator()(std::int64_t c) const { return static_cast<int>(c / dim); }
};

template <typename T>
class ThrustLoop : public Wang<T> {
 public:
  void prepare(const Problem& problem, Context& context) override {
    Wang<T>::prepare(problem, context);
    const std::size_t cells = problem.centroids.size();
    keys_ = cuda::Buffer<int>(problem.points.size());
    values_ = cuda::Buffer<T>(problem.points.size());
    found_keys_ = cuda::Buffer<int>(cells);
    found_values_ = cuda::Buffer<T>(cells);
    found_counts_ = cuda::Buffer<int>(static_cast<std::size_t>(problem.k));
    const bool has_tolerance = problem.stop.tolerance > 0;
    if (has_tolerance) {
      previous_ = cuda::Buffer<T>(cells);
      squared_moves_ = cuda::Buffer<T>(static_cast<std::size_t>(problem.k));
    }
    // One iteration allocates the temporary storage that Thrust asks for. end_to_end_ms counts it.
    const auto phase = context.phase("init");
    this->sums_.zero(context.stream);  // an empty cluster's sum may be loaded, but is never written
    copy(this->centroids_, this->initial_, context.stream);
    assign(context);
    update(context);
    if (has_tolerance) largest_move(context);
    LLOYD_CUDA_CHECK(cudaStreamSynchronize(context.stream));
  }

 private:
  void assign(Context& context) override {
    const thrust::counting_iterator<std::int64_t> point(0);
    thrust::transform(policy(context), point, point + this->problem_.n, this->labels_.data(),
                      Nearest<T>{this->points_.data(), this->centroids_.data(), this->problem_.k,
                                 this->problem_.dim});
  }

  void update(Context& context) override {
    const int dim = this->problem_.dim;
    if (this->problem_.stop.tolerance > 0) copy(previous_, this->centroids_, context.stream);

    const thrust::counting_iterator<std::int64_t> first(0);
    thrust::transform(policy(context), first, first + size(keys_), keys_.data(),
                      CoordinateKey{this->labels_.data(), dim});
    copy(values_, this->points_, context.stream);
    thrust::stable_sort_by_key(policy(context), keys_.data(), keys_.data() + size(keys_),
                               values_.data());
    const auto sums_end =
        thrust::reduce_by_key(policy(context), keys_.data(), keys_.data() + size(keys_),
                              values_.data(), found_keys_.data(), found_values_.data());
    thrust::scatter(policy(context), found_values_.data(), sums_end.second, found_keys_.data(),
                    this->sums_.data());

    // The keys are no longer needed: keys_ now holds the sorted labels.
    LLOYD_CUDA_CHECK(cudaMemcpyAsync(keys_.data(), this->labels_.data(), this->labels_.bytes(),
                                     cudaMemcpyDeviceToDevice, context.stream));
    thrust::sort(policy(context), keys_.data(), keys_.data() + this->problem_.n);
    const auto counts_end = thrust::reduce_by_key(
        policy(context), keys_.data(), keys_.data() + this->problem_.n,
        thrust::constant_iterator<int>(1), found_keys_.data(), found_counts_.data());
    this->counts_.zero(context.stream);
    thrust::scatter(policy(context), found_counts_.data(), counts_end.second, found_keys_.data(),
                    this->counts_.data());

    thrust::transform(
        policy(context), first, first + size(this->centroids_), this->centroids_.data(),
        Mean<T>{this->sums_.data(), this->counts_.data(), this->centroids_.data(), dim});
  }

  double largest_move(Context& context) override {
    const int k = this->problem_.k;
    const std::ptrdiff_t cells = size(this->centroids_);
    thrust::transform(policy(context), this->centroids_.data(), this->centroids_.data() + cells,
                      previous_.data(), previous_.data(), SquaredDifference{});
    const auto centroid = thrust::make_transform_iterator(
        thrust::counting_iterator<std::int64_t>(0), CentroidOf{this->problem_.dim});
    thrust::reduce_by_key(policy(context), centroid, centroid + cells, previous_.data(),
                          thrust::make_discard_iterator(), squared_moves_.data());
    return std::sqrt(thrust::reduce(policy(context), squared_moves_.data(),
                                    squared_moves_.data() + k, T{0}, thrust::maximum<T>()));
  }

  auto policy(Context& context) { return thrust::cuda::par_nosync(storage_).on(context.stream); }

  template <typename U>
  static std::ptrdiff_t size(const cuda::Buffer<U>& buffer) {
    return static_cast<std::ptrdiff_t>(buffer.size());
  }

  static void copy(cuda::Buffer<T>& to, const cuda::Buffer<T>& from, cudaStream_t stream) {
    LLOYD_CUDA_CHECK(
        cudaMemcpyAsync(to.data(), from.data(), from.bytes(), cudaMemcpyDeviceToDevice, stream));
  }

  TemporaryStorage storage_;
  cuda::Buffer<int> keys_, found_keys_, found_counts_;
  cuda::Buffer<T> values_, found_values_, previous_, squared_moves_;
};

using Thrust = EitherPrecision<ThrustLoop<float>, ThrustLoop<double>>;
#endif

LLOYD_CUDA_VERSION(
    Thrust,
    {.name = "wang_thrust",
     .family = "wang",
     .backend = Backend::cuda,
     .parent = "wang_global",
     .axes = {},
     .precisions = {Precision::fp64, Precision::fp32},
     .distance = Distance::direct,
     .study = "wang",
     .summary = "the update by Thrust: coordinates sorted by cluster and dimension, reduced by key",
     .unsupported = [](const Problem& problem, const Tunables&,
                       const DeviceLimits&) -> std::optional<std::string> {
       const std::int64_t cells = std::int64_t{problem.k} * problem.dim;
       if (cells > std::numeric_limits<int>::max())
         return "needs " + with_commas(cells) + " sort keys (k × dim), an int holds " +
                with_commas(std::numeric_limits<int>::max());
       return no_change_count(problem.stop);
     }});

}  // namespace
}  // namespace lloyd::wang
