// Builds a tree over points on the host, of which a chunk at a time is on the device.
#pragma once

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "kernels/core/transfer.h"
#include "kernels/fast/lib/placement.h"
#include "kernels/fast/stream/distant_tree.cuh"
#include "kernels/fast/stream/merge.cuh"

namespace lloyd::fast {
namespace {

/// All points pass by twice, in place() and in build(). Both return when the device is done.
template <int D>
class ChunkBuild {
 public:
  /// `chunk`: points, whole regions. All arguments must outlive this object.
  ChunkBuild(const Problem& problem, std::int64_t chunk, Context& context)
      : problem_(problem),
        context_(context),
        stream_(context.stream),
        chunk_(chunk),
        given_(static_cast<std::size_t>(chunk * D)),
        sorted_(given_.size()),
        order_(static_cast<std::size_t>(chunk)),
        ids_(order_.size()),
        leaves_(runs_of(chunk, kLeaf), D),
        sort_(chunk),
        box_(2 * D) {}

  /// Decides how points are placed.
  Placement place() {
    Ranges ranges(D, stream_);
    for_each_chunk([&](std::int64_t first, std::int64_t count) {
      upload(first, count);
      ranges.add(given_.data(), count, stream_);
    });
    placement_ = Placement::of<float>(problem_, ranges, stream_);
    std::vector<int> corners(2 * D);
    const std::vector<std::pair<float, float>> given = ranges.all(stream_);
    for (std::size_t t = 0; t < D; ++t) {
      // Centring is monotonic, so these are the ranges of the placed points.
      const float low = given[t].first - placement_.centre()[t];
      const float high = given[t].second - placement_.centre()[t];
      corners[t] = ordered(low);
      corners[D + t] = ordered(high);
      largest_.push_back(std::max(std::abs(low), std::abs(high)));
    }
    box_.upload(corners, stream_);
    LLOYD_CUDA_CHECK(cudaStreamSynchronize(stream_));  // before the vector ends
    return placement_;
  }

  /// The largest magnitude of each coordinate. Call after place().
  const std::vector<float>& largest() const { return largest_; }

  /// Fills `levels`, and in mapped memory the points along the curve, [regions][D][kRegion], and
  /// their indices. Call after place().
  void build(const LevelsMemory& levels, float* points, unsigned* order) {
    const RunsMemory runs(problem_.n, D, chunk_);
    sort_runs(runs.view());
    merge_runs(runs.view(), levels, points, order);
    gather_above_leaves<D>(levels, stream_);
    LLOYD_CUDA_CHECK(cudaStreamSynchronize(stream_));  // before the runs are released
  }

 private:
  // Calls body(first, count) for the points of each chunk, in order.
  template <typename Body>
  void for_each_chunk(Body&& body) const {
    for (std::int64_t first = 0; first < problem_.n; first += chunk_)
      body(first, std::min(chunk_, problem_.n - first));
  }

  void upload(std::int64_t first, std::int64_t count) {
    LLOYD_CUDA_CHECK(cudaStreamSynchronize(stream_));  // so that the phase has the copy alone
    const auto phase = context_.phase("transfer");
    const auto begin = static_cast<std::size_t>(first * D);
    const auto values = static_cast<std::size_t>(count * D);
    Problem part = problem_;
    part.points = problem_.points.subspan(begin, values);
    if (!problem_.halves.empty()) part.halves = problem_.halves.subspan(begin, values);
    cuda::upload_points(part, given_.data(), stream_);
  }

  void sort_runs(const Runs& runs) {
    int run = 0;
    for_each_chunk([&](std::int64_t first, std::int64_t count) {
      upload(first, count);
      placement_.centre(given_.data(), count * D, stream_);
      sort_(given_.data(), count, box_.data(), order_.data(), stream_);
      write_run<D><<<cuda::blocks_for(count, kBlock), kBlock, 0, stream_>>>(
          given_.data(), order_.data(), runs, run++);
      LLOYD_CUDA_CHECK_LAUNCH();
    });
  }

  // Each range of the whole order becomes points on the host, their indices, and leaves.
  void merge_runs(const Runs& runs, const LevelsMemory& levels, float* points, unsigned* order) {
    const auto count_of_runs = static_cast<std::size_t>(runs.count);
    const cuda::Buffer<unsigned> splits((count_of_runs + 1) * count_of_runs);
    split_runs<D><<<static_cast<unsigned>(runs.count) + 1, kMostRuns, 0, stream_>>>(
        runs, chunk_, box_.data(), splits.data());
    LLOYD_CUDA_CHECK_LAUNCH();
    const unsigned* from = splits.data();
    const dim3 pieces(static_cast<unsigned>(runs_of(kGatherBlocks, runs.count)),
                      static_cast<unsigned>(runs.count));
    for_each_chunk([&](std::int64_t first, std::int64_t count) {
      const unsigned blocks = cuda::blocks_for(count, kBlock);
      gather_pieces<D><<<pieces, kBlock, 0, stream_>>>(runs, from, from + count_of_runs,
                                                       given_.data(), ids_.data());
      LLOYD_CUDA_CHECK_LAUNCH();
      from += count_of_runs;
      sort_(given_.data(), count, box_.data(), order_.data(), stream_);
      reorder<D>
          <<<blocks, kBlock, 0, stream_>>>(given_.data(), count, order_.data(), sorted_.data());
      LLOYD_CUDA_CHECK_LAUNCH();
      write_regions<D><<<blocks, kBlock, 0, stream_>>>(sorted_.data(), count, first, points);
      LLOYD_CUDA_CHECK_LAUNCH();
      permute<<<blocks, kBlock, 0, stream_>>>(ids_.data(), order_.data(), count, order + first);
      LLOYD_CUDA_CHECK_LAUNCH();
      gather_leaves(first, count, levels.leaves.view());
    });
    LLOYD_CUDA_CHECK(cudaStreamSynchronize(stream_));  // before the splits are released
  }

  void gather_leaves(std::int64_t first, std::int64_t count, const Level<float>& all) {
    Level<float> part = leaves_.view();
    part.count = static_cast<int>(runs_of(count, kLeaf));
    const float* const points = sorted_.data();
    gather<D>(part, points, points, points, count, kLeaf, stream_);
    const auto copy = [&](float* to, const float* from) {
      const std::size_t width = static_cast<std::size_t>(part.count) * sizeof(float);
      LLOYD_CUDA_CHECK(cudaMemcpy2DAsync(to + first / kLeaf,
                                         static_cast<std::size_t>(all.count) * sizeof(float), from,
                                         width, width, D, cudaMemcpyDeviceToDevice, stream_));
    };
    copy(all.low, part.low);
    copy(all.high, part.high);
    copy(all.sum, part.sum);
  }

  // Enough blocks to keep the link busy.
  static constexpr int kGatherBlocks = 1024;

  const Problem& problem_;
  Context& context_;
  cudaStream_t stream_;
  std::int64_t chunk_;
  cuda::Buffer<float> given_, sorted_;  // [chunk][D], and [D][chunk] along the curve
  cuda::Buffer<unsigned> order_, ids_;  // along the curve → in given_ → the caller's index
  LevelMemory<float> leaves_;
  CurveSort<D> sort_;
  cuda::Buffer<int> box_;  // around all placed points, as ordered()
  Placement placement_;
  std::vector<float> largest_;
};

}  // namespace
}  // namespace lloyd::fast
