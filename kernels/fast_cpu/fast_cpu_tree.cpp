// fast_cpu_tree: most points are never looked at.
//
// Parent   fast_cpu_simd.
// Idea     The points are put into a k-d tree once, and boxes are drawn around leaves, around 16
//          leaves, and so on. Each box keeps the sum of its points. In an iteration a box drops the
//          centroids that cannot be nearest to any of its points (tree/filter-inl.h). Where one is
//          left it gets the kept sum, and nothing below is read. Only leaves on a border between
//          clusters have their points compared, with the few candidates of the leaf. Lanes are the
//          16 children of a node, or the points of a leaf.
// Why      At n = 1e7, k = 1000, dim 2 about 13% of the points are read, with 2 to 3 candidates
//          each instead of 1000.
// Limits   dim ≤ 8: in more dimensions boxes overlap too many clusters. n < 2^31. Sorting takes as
//          long as some iterations of fast_cpu_simd.
// Floor    The boxes and sums of most nodes and a seventh of the points, from memory.
// More     tree/assign.cpp: Descent::visit() goes down from a block of boxes to the points.
//          tree/NOTES.md: what is read, what was tried.
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "kernels/core/limits.h"
#include "kernels/core/lloyd_steps.h"
#include "kernels/core/share.h"
#include "kernels/core/version.h"
#include "kernels/fast_cpu/lib/centre.h"
#include "kernels/fast_cpu/tree/assign.h"

namespace lloyd::fast_cpu {
namespace {

class TreeVersion : public Version {
 public:
  void prepare(const Problem& problem, Context& context) override {
    problem_ = problem;
    threads_ = context.tunables.threads;
    centre_ = exact_centre(problem, threads_);
    tree_ = std::make_unique<Tree>(problem, centre_, threads_);
    labels_ = std::make_unique<LeafLabels>(*tree_);
    pieces_ = pieces_of(*tree_);
    placed_ = std::make_unique<PlacedCentroids>(problem.k, problem.dim);
    scratch_.resize(static_cast<std::size_t>(threads_));
    for (auto& scratch : scratch_)
      scratch = std::make_unique<Scratch>(problem.k, problem.dim, tree_->level_count());
  }

  void run(Context& context) override {
    const Stop& stop = problem_.stop;
    centroids_.assign(problem_.centroids.begin(), problem_.centroids.end());
    for (int j = 0; j < problem_.k; ++j)
      for (int t = 0; t < problem_.dim; ++t)
        placed_->column(t)[j] = static_cast<float>(centroids_[at(j, t)] - centre_[t]);
    labels_->forget(stop.min_changes > 0);
    for (iterations_ = 0; iterations_ < stop.iterations;) {
      const auto iteration = context.iteration(iterations_);
      // Only the answer and the counting of changes need labels.
      const bool wants_labels =
          stop.tolerance > 0 || stop.min_changes > 0 || iterations_ + 1 == stop.iterations;
      {
        const auto phase = context.phase("assign");
        assign(wants_labels ? labels_.get() : nullptr);
      }
      double largest_move = 0;
      {
        const auto phase = context.phase("update");
        largest_move = update();
      }
      ++iterations_;
      if (stop.tolerance > 0 && std::sqrt(largest_move) < stop.tolerance) break;
      std::int64_t changes = 0;
      for (const Piece& piece : pieces_) changes += piece.changes;
      if (changes < stop.min_changes) break;
    }
  }

  Solution fetch(Context&) override {
    std::vector<std::int32_t> labels(static_cast<std::size_t>(problem_.n));
#pragma omp parallel for num_threads(threads_) schedule(static)
    for (std::int64_t i = 0; i < problem_.n; ++i) labels[tree_->original(i)] = labels_->of(i);
    return {std::move(labels), centroids_, iterations_};
  }

 private:
  std::size_t at(int j, int t) const {
    return static_cast<std::size_t>(j) * static_cast<std::size_t>(problem_.dim) +
           static_cast<std::size_t>(t);
  }

  /// The pieces are dealt as threads come, because some have more borders than others. Each sums on
  /// its own, so it does not matter which thread takes it.
  void assign(LeafLabels* labels) {
#pragma omp parallel num_threads(threads_)
    {
      Scratch& scratch = *scratch_[static_cast<std::size_t>(omp_get_thread_num())];
#pragma omp for schedule(dynamic)
      for (Piece& piece : pieces_) assign_piece(*tree_, *placed_, piece, labels, scratch);
    }
  }

  /// Moves each centroid to the mean of its points, if it has any. Returns the square of the
  /// largest move.
  double update() {
    constexpr std::int64_t kClustersPerPart = 64;
    const auto parts = static_cast<int>((problem_.k + kClustersPerPart - 1) / kClustersPerPart);
    double largest_move = 0;
#pragma omp parallel for num_threads(threads_) schedule(static) reduction(max : largest_move)
    for (int part = 0; part < parts; ++part)
      largest_move = std::max(largest_move, move(Share(problem_.k, part, parts)));
    return largest_move;
  }

  /// The same for some clusters. Adds up what the pieces hold of them, in the order of the pieces.
  double move(const Share& clusters) {
    const auto width = static_cast<std::size_t>(problem_.dim) + 1;
    std::vector<double> sums(static_cast<std::size_t>(clusters.size()) * width);
    for (const Piece& piece : pieces_) {
      const auto first = std::lower_bound(piece.ids.begin(), piece.ids.end(), clusters.first);
      for (auto id = first; id != piece.ids.end() && *id < clusters.last; ++id) {
        const double* from = piece.sums.data() + (id - piece.ids.begin()) * width;
        double* to = sums.data() + (*id - clusters.first) * width;
        for (std::size_t t = 0; t < width; ++t) to[t] += from[t];
      }
    }
    double largest = 0;
    for (std::int64_t j = clusters.first; j < clusters.last; ++j) {
      double* sum = sums.data() + (j - clusters.first) * width;
      const double count = sum[width - 1];
      if (count > 0) largest = std::max(largest, move(static_cast<int>(j), sum, count));
    }
    return largest;
  }

  /// Moves centroid j to the mean, scaled to length 1 in a spherical problem. `sum` is overwritten.
  /// The centroid is rounded to fp32 as it is placed, so that distances are those from the
  /// centroids that fetch() returns.
  double move(int j, double* sum, double count) {
    const auto dim = static_cast<std::size_t>(problem_.dim);
    for (std::size_t t = 0; t < dim; ++t) sum[t] /= count;
    if (problem_.spherical) {
      for (std::size_t t = 0; t < dim; ++t) sum[t] += centre_[t];
      if (!cpu::scale_to_unit_length(sum, dim)) return 0;
      for (std::size_t t = 0; t < dim; ++t) sum[t] -= centre_[t];
    }
    double squared = 0;
    for (int t = 0; t < problem_.dim; ++t) {
      const auto mean = static_cast<float>(sum[t]);
      placed_->column(t)[j] = mean;
      const double centroid = centre_[t] + static_cast<double>(mean);
      squared += (centroid - centroids_[at(j, t)]) * (centroid - centroids_[at(j, t)]);
      centroids_[at(j, t)] = centroid;
    }
    return squared;
  }

  Problem problem_;
  int threads_ = 1, iterations_ = 0;
  std::vector<float> centre_;
  std::unique_ptr<Tree> tree_;
  std::unique_ptr<LeafLabels> labels_;
  std::vector<Piece> pieces_;
  std::vector<std::unique_ptr<Scratch>> scratch_;  // one for each thread
  std::unique_ptr<PlacedCentroids> placed_;        // centred, in fp32
  std::vector<double> centroids_;                  // k × dim
};

LLOYD_VERSION(TreeVersion,
              {.name = "fast_cpu_tree",
               .family = "fast_cpu",
               .parent = "fast_cpu_simd",
               .axes = {"threads"},
               .distance = Distance::direct,
               .spherical = true,
               .batches = Batches::one_by_one,
               .reproducible = true,
               .summary = "a k-d tree of boxes: where one centroid can be nearest, kept sums are "
                          "added and no point is read",
               .unsupported = [](const Problem& problem, const Tunables&,
                                 const DeviceLimits&) -> std::optional<std::string> {
                 constexpr std::int64_t kMost = (std::int64_t{1} << 31) - 1;
                 if (problem.n > kMost)
                   return "sorts at most " + with_commas(kMost) + " points, not " +
                          with_commas(problem.n);
                 if (problem.dim > kMostTreeDims)
                   return "boxes prune in few dimensions: at most " +
                          std::to_string(kMostTreeDims) + ", not " + std::to_string(problem.dim);
                 return std::nullopt;
               }});

}  // namespace
}  // namespace lloyd::fast_cpu
