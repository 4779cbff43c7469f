#include <utility>

#include "kernels/core/cuda.h"
#include "kernels/core/reference.h"
#include "kernels/core/reference_search.h"
#include "kernels/core/reference_sums.h"
#include "kernels/core/transfer.h"

namespace lloyd {
namespace {

class DeviceAssignments : public Assignments {
 public:
  DeviceAssignments(cuda::NearestSearch& search, int k)
      : search_(search),
        k_(k),
        previous_(static_cast<std::size_t>(search.n())),
        clusters_(search.n(), k, search.dim()),
        inertia_(search.n()) {
    // No label is −1.
    LLOYD_CUDA_CHECK(cudaMemset(previous_.data(), 0xff, previous_.bytes()));
  }

  Outcome assign(std::span<const double> centroids, ClusterSums* clusters) override {
    search_.run(centroids, k_);
    cuda::Buffer<std::int32_t>& labels = search_.labels();
    if (clusters != nullptr) *clusters = clusters_.of(search_.columns(), labels.data());
    const Outcome outcome{inertia_.of(search_.distances().data()),
                          changes_.between(labels.data(), previous_.data(), search_.n())};
    std::swap(labels, previous_);
    return outcome;
  }

 private:
  cuda::NearestSearch& search_;
  int k_;
  cuda::Buffer<std::int32_t> previous_;
  cuda::DeviceClusterSums clusters_;
  cuda::DeviceSum inertia_;
  cuda::DeviceChanges changes_;
};

class CudaReference : public Reference {
 public:
  CudaReference(std::span<const float> points, std::int64_t n, int dim)
      : search_(points, n, dim), inertia_(n) {}

  void nearest(std::span<const double> centroids, int k, std::span<std::int32_t> labels,
               std::span<double> distances) override {
    search_.run(centroids, k);
    cuda::download(search_.labels(), labels, nullptr);
    cuda::download(search_.distances(), distances, nullptr);
  }

  double label(std::span<const double> centroids, int k, std::span<std::int32_t> labels) override {
    search_.run(centroids, k);
    cuda::download(search_.labels(), labels, nullptr);
    return inertia_.of(search_.distances().data());
  }

  std::unique_ptr<Assignments> assignments(const Problem& problem) override {
    try {
      return std::make_unique<DeviceAssignments>(search_, problem.k);
    } catch (const Unsupported&) {
    } catch (const cuda::OutOfMemory&) {
    }
    // The GPU is full. The host gives the same bits.
    return Reference::assignments(problem);
  }

 private:
  cuda::NearestSearch search_;
  cuda::DeviceSum inertia_;
};

}  // namespace

std::unique_ptr<Reference> make_cuda_reference(std::span<const float> points, std::int64_t n,
                                               int dim) {
  return std::make_unique<CudaReference>(points, n, dim);
}

}  // namespace lloyd
