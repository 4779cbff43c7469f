#include "kernels/fast_cpu/lib/piece_loop.h"

#include <algorithm>
#include <cmath>

#include "kernels/core/lloyd_steps.h"
#include "kernels/core/share.h"
#include "kernels/fast_cpu/lib/centre.h"
#include "kernels/fast_cpu/lib/sums.h"

namespace lloyd::fast_cpu {
namespace {

// More pieces than that would cost more to merge than they bring.
constexpr std::int64_t kFewestPieces = 16, kMostPieces = 64, kPointsPerSum = 16;

}  // namespace

void PieceLoop::divide(const Problem& problem, const Context& context, int block) {
  problem_ = problem;
  threads_ = context.tunables.threads;
  centre_ = exact_centre(problem, threads_);
  labels_.resize(static_cast<std::size_t>(problem.n));
  const std::int64_t blocks = (problem.n + block - 1) / block;
  const std::int64_t wanted =
      std::clamp(problem.n / (kPointsPerSum * problem.k), kFewestPieces, kMostPieces);
  const auto count = static_cast<int>(std::min(wanted, blocks));
  pieces_.clear();
  for (int p = 0; p < count; ++p) {
    const Share share(blocks, p, count);
    pieces_.push_back({share.first * block, std::min(share.last * block, problem.n), {}, {}, 0});
  }
  for_each_piece([&](Piece& piece) {
    piece.sums.resize(static_cast<std::size_t>(problem.k) * problem.dim);
    piece.counts.resize(static_cast<std::size_t>(problem.k));
  });
}

void PieceLoop::run(Context& context) {
  centroids_.assign(problem_.centroids.begin(), problem_.centroids.end());
  for (int j = 0; j < problem_.k; ++j) show(j);
  std::fill(labels_.begin(), labels_.end(), -1);
  for (iterations_ = 0; iterations_ < problem_.stop.iterations;) {
    const auto iteration = context.iteration(iterations_);
    std::int64_t changes = 0;
    {
      const auto phase = context.phase("assign");
      begin(iterations_);
      for_each_piece([&](Piece& piece) {
        std::fill(piece.sums.begin(), piece.sums.end(), 0.0f);
        std::fill(piece.counts.begin(), piece.counts.end(), 0);
        piece.changes = 0;
        label(piece);
      });
      for (const Piece& piece : pieces_) changes += piece.changes;
    }
    double largest_move = 0;
    {
      const auto phase = context.phase("update");
#pragma omp parallel for num_threads(threads_) schedule(static) reduction(max : largest_move)
      for (int j = 0; j < problem_.k; ++j) largest_move = std::max(largest_move, update(j));
    }
    ++iterations_;
    if (problem_.stop.tolerance > 0 && std::sqrt(largest_move) < problem_.stop.tolerance) break;
    if (changes < problem_.stop.min_changes) break;
  }
}

void PieceLoop::take(Piece& piece, std::int64_t first, int count, const std::int32_t* fresh) {
  piece.changes += take_points(point(first), count, centre_.data(), problem_.dim, fresh,
                               labels_.data() + first, {piece.sums.data(), piece.counts.data()});
}

void PieceLoop::take_tile(Piece& piece, std::int64_t first, int count, const float* tile,
                          const std::int32_t* fresh) {
  piece.changes += fast_cpu::take_tile(tile, count, problem_.dim, fresh, labels_.data() + first,
                                       {piece.sums.data(), piece.counts.data()});
}

void PieceLoop::show(int j) {
  std::vector<double> placed(centre_.size());
  for (std::size_t t = 0; t < placed.size(); ++t) placed[t] = centroid(j)[t] - centre_[t];
  show_centroid(j, placed.data());
}

// Moves centroid j to the mean of its points, if it has any, scaled to length 1 in a spherical
// problem. Returns the square of the move.
double PieceLoop::update(int j) {
  const auto dim = static_cast<std::size_t>(problem_.dim);
  std::int64_t count = 0;
  for (const Piece& piece : pieces_) count += piece.counts[j];
  if (count == 0) return 0;
  std::vector<double> fresh(dim);
  for (std::size_t t = 0; t < dim; ++t) {
    double sum = 0;
    for (const Piece& piece : pieces_) sum += piece.sums[j * dim + t];
    fresh[t] = centre_[t] + sum / static_cast<double>(count);
  }
  if (problem_.spherical && !cpu::scale_to_unit_length(fresh.data(), dim)) return 0;
  double move = 0;
  for (std::size_t t = 0; t < dim; ++t) {
    double& centroid = centroids_[j * dim + t];
    move += (fresh[t] - centroid) * (fresh[t] - centroid);
    centroid = fresh[t];
  }
  show(j);
  return move;
}

}  // namespace lloyd::fast_cpu
