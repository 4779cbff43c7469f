#include "kernels/fast_cpu/lib/piece_loop.h"

#include <algorithm>
#include <cmath>

#include "kernels/core/lloyd_steps.h"
#include "kernels/fast_cpu/lib/centre.h"

namespace lloyd::fast_cpu {
namespace {

// More pieces than that would cost more to merge than they bring.
constexpr std::int64_t kFewestPieces = 16, kMostPieces = 64, kPointsPerSum = 16;

// The points of a part. Its multiply-adds take thousands of cycles, of which an atomic operation is
// less than 1%. With more parts than kMostParts the threads would end no closer together.
constexpr std::int64_t kPartWork = 1 << 17, kMostParts = 4096;

std::int64_t points_of_part(const Problem& problem, int block, std::int64_t least) {
  const std::int64_t work = std::int64_t{problem.k} * problem.dim;
  const std::int64_t wanted = std::max({kPartWork / work, problem.n / kMostParts, least});
  return (std::min(wanted, problem.n) + block - 1) / block * block;
}

}  // namespace

void PieceLoop::divide(const Problem& problem, const Context& context, int block,
                       std::int64_t least) {
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
    pieces_.push_back({share.first * block, std::min(share.last * block, problem.n), {}, {}});
  }
  chunk_ = points_of_part(problem, block, least);
  std::vector<int> chunks;
  for (const Piece& piece : pieces_)
    chunks.push_back(static_cast<int>((piece.last - piece.first + chunk_ - 1) / chunk_));
  pass_.emplace(chunks, threads_);
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
      changes = assign();
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

Sums PieceLoop::sums_of(Piece& piece) { return {piece.sums.data(), piece.counts.data()}; }

// Labels and sums all points. Returns how many changed cluster.
std::int64_t PieceLoop::assign() {
  const auto clear = [](Piece& piece) {
    std::fill(piece.sums.begin(), piece.sums.end(), 0.0f);
    std::fill(piece.counts.begin(), piece.counts.end(), 0);
  };
  std::int64_t changes = 0;
  pass_->begin();
#pragma omp parallel num_threads(threads_) reduction(+ : changes)
  pass_->work(
      omp_get_thread_num(),
      [&](int p, int chunk, bool adds) {
        Piece& piece = pieces_[p];
        if (adds && chunk == 0) clear(piece);
        const std::int64_t first = piece.first + chunk * chunk_;
        Part part{first, std::min(first + chunk_, piece.last), piece, adds};
        label(part);
        changes += part.changes;
      },
      [&](int p, int chunk) {
        Piece& piece = pieces_[p];
        if (chunk == 0) clear(piece);
        add_labelled(piece, piece.first + chunk * chunk_);
      });
  return changes;
}

// Adds the points from `first` on, which have their labels.
void PieceLoop::add_labelled(Piece& piece, std::int64_t first) {
  add_points(point(first), piece.last - first, centre_.data(), problem_.dim, labels_.data() + first,
             sums_of(piece));
}

void PieceLoop::take(Part& part, std::int64_t first, int count, const std::int32_t* fresh) {
  std::int32_t* labels = labels_.data() + first;
  part.changes += part.adds ? take_points(point(first), count, centre_.data(), problem_.dim, fresh,
                                          labels, sums_of(part.piece))
                            : replace_labels(fresh, count, labels);
}

void PieceLoop::take_tile(Part& part, std::int64_t first, int count, const float* tile,
                          const std::int32_t* fresh) {
  std::int32_t* labels = labels_.data() + first;
  part.changes +=
      part.adds ? fast_cpu::take_tile(tile, count, problem_.dim, fresh, labels, sums_of(part.piece))
                : replace_labels(fresh, count, labels);
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
