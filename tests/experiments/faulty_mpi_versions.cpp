// Versions with several ranks, one of which misbehaves. Compiled twice, like every MPI version.
#include "kernels/core/version.h"

#if LLOYD_MPI
#include <mpi.h>
#include <unistd.h>

#include <csignal>
#include <stdexcept>
#endif

namespace lloyd {
namespace {

#if LLOYD_MPI
// The other ranks wait for the faulty one in a barrier, as they would wait for the messages of any
// version.
template <int Rank, typename Fault>
class Faulty : public Version {
 public:
  void prepare(const Problem&, Context&) override {}
  void run(Context& context) override {
    int rank = 0;
    MPI_Comm_rank(context.communicator, &rank);
    if (rank == Rank) Fault()();
    MPI_Barrier(context.communicator);
  }
  Solution fetch(Context&) override { return {}; }
};

struct Die {
  void operator()() const { raise(SIGKILL); }
};
struct Hang {
  void operator()() const { sleep(3600); }
};
struct Throw {
  void operator()() const { throw std::runtime_error("the flux is out of phase"); }
};

using RankDies = Faulty<1, Die>;
using RankHangs = Faulty<1, Hang>;
using RankThrows = Faulty<1, Throw>;
using LeaderThrows = Faulty<0, Throw>;
#endif

LLOYD_MPI_VERSION(RankDies, {.name = "faulty_rank_dies",
                             .family = "faulty",
                             .axes = {"processes"},
                             .summary = "rank 1 kills itself"});
LLOYD_MPI_VERSION(RankHangs, {.name = "faulty_rank_hangs",
                              .family = "faulty",
                              .axes = {"processes"},
                              .summary = "rank 1 hangs"});
LLOYD_MPI_VERSION(RankThrows, {.name = "faulty_rank_throws",
                               .family = "faulty",
                               .axes = {"processes"},
                               .summary = "rank 1 throws"});
LLOYD_MPI_VERSION(LeaderThrows, {.name = "faulty_leader_throws",
                                 .family = "faulty",
                                 .axes = {"processes"},
                                 .summary = "rank 0 throws"});

}  // namespace
}  // namespace lloyd
