// Lloyd's loop of the CPU ladder, for versions that label all points: the pieces that are summed,
// the means, the stopping rules and the answer. A version fills in show_centroid() and label(), and
// begin() if it keeps anything from one iteration to the next.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/core/version.h"

namespace lloyd::fast_cpu {

class PieceLoop : public Version {
 public:
  void run(Context& context) final;
  Solution fetch(Context&) final { return {labels_, centroids_, iterations_}; }

 protected:
  /// The points [first, last) that one thread labels and sums. How many pieces there are depends
  /// only on the problem, so the sums have the same bits for every number of threads.
  struct Piece {
    std::int64_t first, last;
    std::vector<float> sums;  // k × dim, of centred points
    std::vector<std::int64_t> counts;
    std::int64_t changes;  // points that changed cluster
  };

  /// Call this first in prepare(): keeps the problem, finds the centre, and divides the points into
  /// pieces. Each piece but the last is a multiple of `block` points.
  void divide(const Problem& problem, const Context& context, int block);
  /// Calls work(piece) for each piece, on the thread that always has this piece: memory that it
  /// writes first is near.
  template <typename Work>
  void for_each_piece(Work work) {
#pragma omp parallel for num_threads(threads_) schedule(static)
    for (std::size_t p = 0; p < pieces_.size(); ++p) work(pieces_[p]);
  }

  // ---- What a version fills in. ----

  /// Centroid j is at centre + placed. Several threads call this, each for other centroids.
  virtual void show_centroid(int j, const double* placed) = 0;
  /// Before the points of an iteration are labelled. Iteration 0 begins a run.
  virtual void begin(int /*iteration*/) {}
  /// Labels the points of a piece and gives each of them to take() or take_tile() once.
  virtual void label(Piece& piece) = 0;

  // ---- What a version calls in them. ----

  /// The labels of the points first, …, first + count − 1. Points whose label is −1 are left out.
  void take(Piece& piece, std::int64_t first, int count, const std::int32_t* fresh);
  /// The same, with the centred points in `tile` (dim × kTile). At most kFewDimensions.
  void take_tile(Piece& piece, std::int64_t first, int count, const float* tile,
                 const std::int32_t* fresh);
  const float* point(std::int64_t i) const { return problem_.points.data() + i * problem_.dim; }
  const double* centroid(int j) const {
    return centroids_.data() + static_cast<std::int64_t>(j) * problem_.dim;
  }

  Problem problem_;
  int threads_ = 1;
  std::vector<float> centre_;

 private:
  double update(int j);
  void show(int j);

  int iterations_ = 0;
  std::vector<Piece> pieces_;
  std::vector<double> centroids_;  // k × dim
  std::vector<std::int32_t> labels_;
};

}  // namespace lloyd::fast_cpu
