#include <vector>

#include "kernels/biason/biason.cuh"

namespace lloyd::biason {

void Biason::prepare(const Problem& problem, Context& context) {
  problem_ = problem;
  const std::size_t cells = problem.centroids.size();
  points_ = cuda::Buffer<float>(problem.points.size());
  initial_ = cuda::Buffer<float>(cells);
  centroids_ = cuda::Buffer<float>(cells);
  sums_ = cuda::Buffer<float>(cells);
  counts_ = cuda::Buffer<int>(static_cast<std::size_t>(problem.k));
  labels_ = cuda::Buffer<std::int32_t>(static_cast<std::size_t>(problem.n));
  progress_ = cuda::Buffer<Progress>(1);
  const auto phase = context.phase("transfer");
  upload_points(context.stream);
  initial_.upload(problem.centroids, context.stream);
  LLOYD_CUDA_CHECK(cudaStreamSynchronize(context.stream));
}

void Biason::run(Context& context) {
  const cudaStream_t stream = context.stream;
  const Stop& stop = problem_.stop;
  LLOYD_CUDA_CHECK(cudaMemcpyAsync(centroids_.data(), initial_.data(), initial_.bytes(),
                                   cudaMemcpyDeviceToDevice, stream));
  LLOYD_CUDA_CHECK(cudaMemsetAsync(labels_.data(), 0xff, labels_.bytes(), stream));  // all −1
  for (iterations_ = 0; iterations_ < stop.iterations;) {
    const auto iteration = context.iteration(iterations_);
    {
      const auto phase = context.phase("assign");
      progress_.zero(stream);
      assignment_step(stream);
    }
    {
      const auto phase = context.phase("update");
      sums_.zero(stream);
      counts_.zero(stream);
      update_step_points(stream);
      update_step_centroids(stream);
    }
    ++iterations_;
    if (stop.tolerance <= 0 && stop.min_changes <= 0) continue;
    const auto phase = context.phase("converge");
    Progress progress;
    progress_.download({&progress, 1}, stream);
    if (stop.tolerance > 0 && progress.largest_move < stop.tolerance) break;
    if (progress.changes < stop.min_changes) break;
  }
}

Solution Biason::fetch(Context& context) {
  Solution solution;
  solution.iterations = iterations_;
  solution.labels.resize(labels_.size());
  std::vector<float> centroids(centroids_.size());
  const auto phase = context.phase("transfer");
  labels_.download(solution.labels, context.stream);
  centroids_.download(centroids, context.stream);
  solution.centroids.assign(centroids.begin(), centroids.end());
  return solution;
}

}  // namespace lloyd::biason
