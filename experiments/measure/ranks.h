// Rank 0 leads: whatever the harness calls on a version there, the other ranks call on theirs.
#pragma once

#include <mpi.h>

#include <memory>

#include "experiments/measure/session.h"

namespace lloyd {

struct Lead;

/// Used on rank 0.
class Leader {
 public:
  explicit Leader(MPI_Comm communicator);
  Leader(const Leader&) = delete;
  /// Releases the other ranks. If a version failed half-way, the others wait for messages that
  /// never come, so it aborts them.
  ~Leader();

  /// A session whose factory() creates each instance on every rank; calls on the rank 0 instance
  /// are repeated on the others. run() begins with a barrier, and stop() gives the time from there
  /// until the slowest rank ends. The session must end before the leader.
  std::unique_ptr<Session> session();

 private:
  std::shared_ptr<Lead> lead_;
};

/// Used on the other ranks. Returns when rank 0 releases them. If a version throws, all ranks
/// abort.
void follow_rank_0(MPI_Comm communicator);

}  // namespace lloyd
