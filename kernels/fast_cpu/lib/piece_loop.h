// Lloyd's loop of the CPU ladder, for versions that label all points: the pieces that are summed,
// the means, the stopping rules and the answer. A version fills in set_centroid() and label(), and
// begin() if it keeps anything from one iteration to the next.
#pragma once

#include <omp.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "kernels/core/share.h"
#include "kernels/core/version.h"
#include "kernels/fast_cpu/lib/floats.h"
#include "kernels/fast_cpu/lib/stealing.h"
#include "kernels/fast_cpu/lib/sums.h"

namespace lloyd::fast_cpu {

class PieceLoop : public Version {
 public:
  void run(Context& context) final;
  Solution fetch(Context&) final { return {labels_, centroids_, iterations_}; }

 protected:
  /// The points [first, last), which have sums of their own. How many pieces there are depends only
  /// on the problem, and the points of a piece are added in order, so the sums have the same bits
  /// for every number of threads.
  struct Piece {
    std::int64_t first, last;
    Floats sums;  // k × dim, of centred points
    std::vector<std::int64_t> counts;
  };
  /// The points [first, last) of a piece that one thread labels: a chunk of it (stealing.h).
  struct Part {
    std::int64_t first, last;
    Piece& piece;
    bool adds;                 // to the sums as well; otherwise that is done later
    std::int64_t changes = 0;  // points that changed cluster
  };

  /// For divide(): a thread that has nothing left takes over whole pieces.
  static constexpr std::int64_t kWholePieces = INT64_MAX;
  /// Call this first in prepare(): keeps the problem, finds the centre, and divides the points into
  /// pieces. Each piece but the last is a multiple of `block` points. So is each part of a piece
  /// but the last, which has at least `least` points.
  void divide(const Problem& problem, const Context& context, int block, std::int64_t least);
  /// Calls work(piece) for each piece, on the thread that begins with this piece in each iteration:
  /// memory that it writes first is near.
  template <typename Work>
  void for_each_piece(Work work) {
#pragma omp parallel num_threads(threads_)
    {
      const Share own(static_cast<std::int64_t>(pieces_.size()), omp_get_thread_num(),
                      omp_get_num_threads());
      for (std::int64_t p = own.first; p < own.last; ++p) work(pieces_[p]);
    }
  }

  // ---- What a version fills in. ----

  /// Centroid j is at centre + placed: the version copies it into its own layout. Several threads
  /// call this, each for other centroids.
  virtual void set_centroid(int j, const double* placed) = 0;
  /// Before the points of an iteration are labelled. Iteration 0 begins a run. All threads of the
  /// loop's team call this and share the work (omp single, omp for); what label() reads must be
  /// complete when it returns.
  virtual void begin(int /*iteration*/) {}
  /// Labels the points of a part and gives each of them to take() or take_tile() once. A version
  /// that does not give them in order asks for kWholePieces.
  virtual void label(Part& part) = 0;

  // ---- What a version calls in them. ----

  /// Stores the labels of the points first, …, first + count − 1 and counts those that changed.
  /// Adds the points to the sums of their clusters, unless that is done later (Part::adds). Leaves
  /// out points whose label is −1: the version gives them in another call.
  void take(Part& part, std::int64_t first, int count, const std::int32_t* fresh);
  /// The same, with the centred points in `tile` (dim × kTile). At most kFewDimensions.
  void take_tile(Part& part, std::int64_t first, int count, const float* tile,
                 const std::int32_t* fresh);
  /// The centre, which is subtracted from the points; null if it is 0.
  const float* centre_or_null() const { return is_moved_ ? centre_.data() : nullptr; }
  const float* point(std::int64_t i) const { return problem_.points.data() + i * problem_.dim; }
  const double* centroid(int j) const {
    return centroids_.data() + static_cast<std::int64_t>(j) * problem_.dim;
  }

  Problem problem_;
  int threads_ = 1;
  std::vector<float> centre_;

 private:
  struct Progress;
  static Sums sums_of(Piece& piece);
  void iterate(Context& context, Progress& progress);
  std::int64_t assign();
  void add_labelled(Piece& piece, std::int64_t first);
  void clear(Piece& piece) const;
  template <std::size_t kSums>
  void add_pieces(std::size_t first, double* total) const;
  double update(int j, double* scratch);
  void show(int j, double* scratch);

  bool is_moved_ = false;
  int iterations_ = 0;
  std::vector<Piece> pieces_;
  std::int64_t chunk_ = 0;  // points of a part
  std::optional<StealingPass> pass_;
  std::vector<double> centroids_;  // k × dim
  std::vector<std::int32_t> labels_;
};

}  // namespace lloyd::fast_cpu
