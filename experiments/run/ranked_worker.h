// A worker of several ranks, each of which mpirun starts.
#pragma once

namespace lloyd {

/// Rank 0 serves the supervisor's requests like run_worker(), and replies on the descriptor
/// kReplyDescriptor of mpirun. The others follow it. Returns the exit status.
int run_ranked_worker();

}  // namespace lloyd
