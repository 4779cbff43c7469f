// Rank 0 leads: whatever the harness calls on a version there, the other ranks call on theirs.
#pragma once

#include <memory>

#include "experiments/measure/session.h"
#include "kernels/core/ranks.h"

namespace lloyd {

struct Lead;

/// Used on rank 0.
class Leader {
 public:
  /// `communicator`: that of the ranks, for versions that call MPI themselves.
  Leader(Ranks& ranks, ompi_communicator_t* communicator);
  Leader(const Leader&) = delete;
  /// Releases the other ranks. If a version failed half-way, the others wait for messages that
  /// never come, so it aborts them.
  ~Leader();

  /// A session whose factory() creates each instance on every rank; calls on the rank 0 instance
  /// are repeated on the others. run() begins with a barrier, and stop() gives the time from there
  /// until the slowest rank ends. The session must end before the leader, and before the next one.
  std::unique_ptr<Session> session();
  /// The same on `gpus` GPUs of each rank (gpus_of_rank()). `device`: the first GPU of rank 0.
  /// Throws an error that names the GPUs where ranks share one, unless `shared` allows it.
  std::unique_ptr<Session> session_on_gpus(int device, int gpus, bool shared);

 private:
  std::shared_ptr<Lead> lead_;
};

/// Used on the other ranks. Returns when rank 0 releases them. If a version throws, all ranks
/// abort.
void follow_rank_0(Ranks& ranks, ompi_communicator_t* communicator);

/// The GPUs of a rank, of those that work together on its host: `gpus` of them, which follow those
/// of the ranks with lower numbers there. Begins anew at the end of `team`, which has at least one.
std::vector<int> gpus_of_rank(std::span<const int> team, int local_rank, int gpus);

}  // namespace lloyd
