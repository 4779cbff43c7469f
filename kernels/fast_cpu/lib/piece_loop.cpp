#include "kernels/fast_cpu/lib/piece_loop.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <exception>
#include <utility>

#include "kernels/core/lloyd_steps.h"
#include "kernels/fast_cpu/lib/centre.h"

namespace lloyd::fast_cpu {
namespace {

// More pieces than that would cost more to merge than they bring.
constexpr std::int64_t kFewestPieces = 16, kMostPieces = 64, kPointsPerSum = 16;

// The points of a part. Its multiply-adds take thousands of cycles, of which an atomic operation is
// less than 1%. With more parts than kMostParts the threads would end no closer together.
constexpr std::int64_t kPartWork = 1 << 16, kMostParts = 4096;

// Sums of a cluster that are added together.
constexpr std::size_t kSideBySide = 8;

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
  is_moved_ = std::any_of(centre_.begin(), centre_.end(), [](float c) { return c != 0; });
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
    piece.sums = floats(static_cast<std::int64_t>(problem.k) * problem.dim);
    piece.counts.resize(static_cast<std::size_t>(problem.k));
  });
}

// What the threads of a run tell each other. None of it is ever reset, so that a barrier between
// writing and reading is enough.
struct PieceLoop::Progress {
  alignas(64) std::atomic<std::int64_t> changes = 0;  // of cluster, since the run began
  alignas(64) std::atomic<int> moving = -1;  // the last iteration with a move of the tolerance
  std::exception_ptr failure;                // of an observer
};

// One parallel region for all iterations: its beginning and end would cost more than two barriers.
void PieceLoop::run(Context& context) {
  centroids_.assign(problem_.centroids.begin(), problem_.centroids.end());
  std::vector<double> scratch(centre_.size());
  for (int j = 0; j < problem_.k; ++j) show(j, scratch.data());
  pass_->begin();
  Progress progress;
#pragma omp parallel num_threads(threads_)
  iterate(context, progress);
  if (progress.failure) std::rethrow_exception(progress.failure);
}

// All threads of the team call this and take the same way through it.
void PieceLoop::iterate(Context& context, Progress& progress) {
  const bool is_master = omp_get_thread_num() == 0;
  const Stop& stop = problem_.stop;
  std::vector<double> scratch(centre_.size());
  std::optional<Context::Range> iteration, phase;  // of the master
  // Opens and closes ranges on the master. With observers the other threads wait meanwhile, so that
  // no work of a phase is done outside of it. Returns false if an observer has thrown.
  const auto report = [&](auto ranges) {
    if (context.observers.empty()) return true;
    if (is_master) {
      try {
        ranges();
      } catch (...) {
        progress.failure = std::current_exception();
      }
    }
#pragma omp barrier
    return progress.failure == nullptr;
  };
#pragma omp for schedule(static)
  for (const Piece& piece : pieces_)
    std::fill(labels_.begin() + piece.first, labels_.begin() + piece.last, -1);
  std::int64_t changes_before = 0;
  bool goes_on = true;
  int done = 0;
  for (; goes_on && done < stop.iterations; ++done) {
    if (!report([&] {
          phase.reset();
          iteration.reset();
          iteration.emplace(context.iteration(done));
          phase.emplace(context.phase("assign"));
        }))
      return;
    begin(done);
    progress.changes.fetch_add(assign(), std::memory_order_relaxed);
#pragma omp barrier
    if (!report([&] {
          phase.reset();
          phase.emplace(context.phase("update"));
        }))
      return;
    const std::int64_t changes = progress.changes.load(std::memory_order_relaxed);
    goes_on = changes - std::exchange(changes_before, changes) >= stop.min_changes;
    pass_->begin(omp_get_thread_num(), omp_get_num_threads());
    double largest_move = 0;
#pragma omp for schedule(static) nowait
    for (int j = 0; j < problem_.k; ++j)
      largest_move = std::max(largest_move, update(j, scratch.data()));
    if (stop.tolerance > 0 && std::sqrt(largest_move) >= stop.tolerance)
      progress.moving.store(done, std::memory_order_relaxed);
#pragma omp barrier
    if (stop.tolerance > 0 && progress.moving.load(std::memory_order_relaxed) < done)
      goes_on = false;
  }
  if (is_master) iterations_ = done;
}

Sums PieceLoop::sums_of(Piece& piece) { return {piece.sums.get(), piece.counts.data()}; }

void PieceLoop::clear(Piece& piece) const {
  std::fill_n(piece.sums.get(), problem_.centroids.size(), 0.0f);
  std::fill(piece.counts.begin(), piece.counts.end(), 0);
}

// This thread's part of labelling and summing all points. Returns how many of the points that it
// labelled changed cluster.
std::int64_t PieceLoop::assign() {
  std::int64_t changes = 0;
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
  add_points(point(first), piece.last - first, centre_or_null(), problem_.dim,
             labels_.data() + first, sums_of(piece));
}

void PieceLoop::take(Part& part, std::int64_t first, int count, const std::int32_t* fresh) {
  std::int32_t* labels = labels_.data() + first;
  part.changes += part.adds ? take_points(point(first), count, centre_or_null(), problem_.dim,
                                          fresh, labels, sums_of(part.piece))
                            : replace_labels(fresh, count, labels);
}

void PieceLoop::take_tile(Part& part, std::int64_t first, int count, const float* tile,
                          const std::int32_t* fresh) {
  std::int32_t* labels = labels_.data() + first;
  part.changes +=
      part.adds ? fast_cpu::take_tile(tile, count, problem_.dim, fresh, labels, sums_of(part.piece))
                : replace_labels(fresh, count, labels);
}

// Gives the version centroid j as it is placed. `scratch`: dim values.
void PieceLoop::show(int j, double* scratch) {
  for (std::size_t t = 0; t < centre_.size(); ++t) scratch[t] = centroid(j)[t] - centre_[t];
  set_centroid(j, scratch);
}

// Adds kSums sums of all pieces, from number `first` on, in registers: one sum alone would be a
// chain of additions.
template <std::size_t kSums>
void PieceLoop::add_pieces(std::size_t first, double* total) const {
  double sum[kSums] = {};
  for (const Piece& piece : pieces_)
    for (std::size_t s = 0; s < kSums; ++s) sum[s] += piece.sums[first + s];
  std::copy_n(sum, kSums, total);
}

// Moves centroid j to the mean of its points, if it has any, scaled to length 1 in a spherical
// problem. Returns the square of the move.
double PieceLoop::update(int j, double* scratch) {
  const auto dim = static_cast<std::size_t>(problem_.dim);
  std::int64_t count = 0;
  for (const Piece& piece : pieces_) count += piece.counts[j];
  if (count == 0) return 0;
  double* fresh = scratch;
  std::size_t done = 0;
  for (; done + kSideBySide <= dim; done += kSideBySide)
    add_pieces<kSideBySide>(j * dim + done, fresh + done);
  for (; done < dim; ++done) add_pieces<1>(j * dim + done, fresh + done);
  for (std::size_t t = 0; t < dim; ++t)
    fresh[t] = centre_[t] + fresh[t] / static_cast<double>(count);
  if (problem_.spherical && !cpu::scale_to_unit_length(fresh, dim)) return 0;
  double move = 0;
  for (std::size_t t = 0; t < dim; ++t) {
    double& centroid = centroids_[j * dim + t];
    move += (fresh[t] - centroid) * (fresh[t] - centroid);
    centroid = fresh[t];
  }
  show(j, scratch);
  return move;
}

}  // namespace lloyd::fast_cpu
