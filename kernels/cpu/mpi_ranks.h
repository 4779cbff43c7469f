// What the MPI versions share: which rank owns what, and every message. Each version has its own
// loops over a rank's points.
#pragma once

#include <mpi.h>

#include <optional>

#include "kernels/core/either_precision.h"
#include "kernels/core/lloyd_steps.h"
#include "kernels/core/with_dim.h"

namespace lloyd::cpu {

template <typename T>
MPI_Datatype mpi_type() {
  return std::is_same_v<T, double> ? MPI_DOUBLE : MPI_FLOAT;
}

/// Sends a row of `width` values as one item, because MPI counts in int and n × dim may be larger.
class RowType {
 public:
  RowType(MPI_Datatype value, int width) {
    MPI_Type_contiguous(width, value, &type_);
    MPI_Type_commit(&type_);
  }
  ~RowType() { MPI_Type_free(&type_); }
  RowType(const RowType&) = delete;
  operator MPI_Datatype() const { return type_; }

 private:
  MPI_Datatype type_{};
};

/// The number of items that each rank owns, and its first one, in the form that MPI's …v functions
/// take.
struct Deal {
  std::vector<int> counts, firsts;
  Deal(std::int64_t items, int ranks) {
    for (int rank = 0; rank < ranks; ++rank) {
      const Share share(items, rank, ranks);
      counts.push_back(static_cast<int>(share.size()));
      firsts.push_back(static_cast<int>(share.first));
    }
  }
};

/// Lloyd's loop over ranks that own n/P points and k/P centroids each.
template <typename T>
class Ranks : public Version {
 public:
  void prepare(const Problem& problem, Context& context) override {
    comm_ = context.communicator;
    MPI_Comm_rank(comm_, &rank_);
    MPI_Comm_size(comm_, &ranks_);
    threads_ = context.tunables.threads;
    n_ = problem.n;
    mine_ = problem;
    const Share points(n_, rank_, ranks_);
    const auto dim = static_cast<std::size_t>(problem.dim);
    std::vector<float> centroids(problem.centroids.begin(), problem.centroids.end());
    centroids.resize(static_cast<std::size_t>(problem.k) * dim);
    {
      const auto phase = context.phase("transfer");
      const RowType row(MPI_FLOAT, problem.dim);
      const Deal deal(n_, ranks_);
      const auto size = static_cast<std::size_t>(points.size());
      if (rank_ == 0) {  // it has all points, and its share are the first of them
        MPI_Scatterv(problem.points.data(), deal.counts.data(), deal.firsts.data(), row,
                     MPI_IN_PLACE, 0, row, 0, comm_);
        mine_.points = problem.points.first(size * dim);
      } else {
        received_.resize(size * dim);
        MPI_Scatterv(nullptr, nullptr, nullptr, row, received_.data(), static_cast<int>(size), row,
                     0, comm_);
        mine_.points = received_;
      }
      MPI_Bcast(centroids.data(), static_cast<int>(centroids.size()), MPI_FLOAT, 0, comm_);
    }
    mine_.n = points.size();
    mine_.centroids = centroids;
    state_ = std::make_unique<State<T>>(mine_);
  }

  void run(Context& context) override {
    State<T>& s = *state_;
    const Stop& stop = mine_.stop;
    const Share own(mine_.k, rank_, ranks_);
    const Deal deal(mine_.k, ranks_);
    const RowType row(mpi_type<T>(), mine_.dim);
    s.centroids = s.initial;
    std::fill(s.labels.begin(), s.labels.end(), -1);
    s.iterations = 0;
    for (bool done = false; !done;) {
      const auto iteration = context.iteration(s.iterations);
      std::int64_t local_changes = 0, changes = 0;
      {
        const auto phase = context.phase("assign");
        local_changes = assign(s);
      }
      MPI_Request counted{};
      MPI_Iallreduce(&local_changes, &changes, 1, MPI_INT64_T, MPI_SUM, comm_, &counted);
      {
        const auto phase = context.phase("update");
        add(s);
      }
      {
        const auto phase = context.phase("reduce");
        MPI_Allreduce(MPI_IN_PLACE, s.sums.data(), static_cast<int>(s.sums.size()), mpi_type<T>(),
                      MPI_SUM, comm_);
        MPI_Allreduce(MPI_IN_PLACE, s.counts.data(), static_cast<int>(s.counts.size()), MPI_INT64_T,
                      MPI_SUM, comm_);
      }
      double largest = 0;  // squared
      {
        const auto phase = context.phase("update");
        largest = divide(s, own);
      }
      {
        const auto phase = context.phase("converge");
        MPI_Allreduce(MPI_IN_PLACE, &largest, 1, MPI_DOUBLE, MPI_MAX, comm_);
        MPI_Wait(&counted, MPI_STATUS_IGNORE);
      }
      {
        const auto phase = context.phase("gather");
        MPI_Allgatherv(MPI_IN_PLACE, 0, row, s.centroids.data(), deal.counts.data(),
                       deal.firsts.data(), row, comm_);
      }
      done = ++s.iterations == stop.iterations ||
             (stop.tolerance > 0 && std::sqrt(largest) < stop.tolerance) ||
             changes < stop.min_changes;
    }
  }

  Solution fetch(Context& context) override {
    const auto phase = context.phase("transfer");
    const Deal deal(n_, ranks_);
    Solution solution{{}, {state_->centroids.begin(), state_->centroids.end()}, state_->iterations};
    if (rank_ == 0) solution.labels.resize(static_cast<std::size_t>(n_));
    MPI_Gatherv(state_->labels.data(), static_cast<int>(state_->labels.size()), MPI_INT32_T,
                solution.labels.data(), deal.counts.data(), deal.firsts.data(), MPI_INT32_T, 0,
                comm_);
    return solution;
  }

 protected:
  /// Labels the rank's points and returns how many changed.
  virtual std::int64_t assign(State<T>& state) = 0;
  /// Sets the sums and counts to those of the rank's points.
  virtual void add(State<T>& state) = 0;
  /// Moves the rank's own centroids to their means and returns the square of the largest move.
  virtual double divide(State<T>& state, const Share& own) = 0;

  int threads() const { return threads_; }
  const Problem& mine() const { return mine_; }  // n and points are the rank's

 private:
  MPI_Comm comm_ = MPI_COMM_NULL;
  int rank_ = 0, ranks_ = 1, threads_ = 1;
  std::int64_t n_ = 0;  // of all ranks
  Problem mine_;
  std::vector<float> received_;
  std::unique_ptr<State<T>> state_;
};

}  // namespace lloyd::cpu
