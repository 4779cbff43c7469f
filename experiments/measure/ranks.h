// Rank 0 leads: what the harness asks of a version there, the other ranks do with theirs.
#pragma once

#include <mpi.h>

#include <memory>

#include "experiments/measure/session.h"

namespace lloyd {

struct Lead;

/// On rank 0.
class Leader {
 public:
  explicit Leader(MPI_Comm communicator);
  Leader(const Leader&) = delete;
  /// Lets the others go; when a version failed half-way, they wait for messages that never come, and it aborts them.
  ~Leader();

  /// Instances that its factory() makes have a sister on each other rank, whose calls follow theirs; run() begins with
  /// a barrier, and stop() gives the time of the slowest rank from there on. Ends before the leader.
  std::unique_ptr<Session> session();

 private:
  std::shared_ptr<Lead> lead_;
};

/// On the other ranks. Returns when rank 0 lets them go; a version that throws aborts all.
void follow_rank_0(MPI_Comm communicator);

}  // namespace lloyd
