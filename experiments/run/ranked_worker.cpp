#include "experiments/run/ranked_worker.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <iostream>
#include <string>

#include "experiments/measure/open_mpi.h"
#include "experiments/measure/ranks.h"
#include "experiments/run/job.h"
#include "experiments/run/launch.h"

namespace lloyd {
namespace {

std::unique_ptr<Session> open_ranked_session(Leader& leader, const Job& job) {
  const Point& point = job.points.at(0);  // all have as many GPUs
  if (find_version(point.version)->info.backend == Backend::cpu) return leader.session();
  return leader.session_on_gpus(job.device->index, point.tunables().gpus, ranks_may_share_gpus());
}

}  // namespace

int run_ranked_worker() {
  // mpirun puts each rank into its own process group, so killing mpirun's group would leave the
  // ranks alive.
  const pid_t launcher = getppid();
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != launcher) return 1;

  OpenMpi ranks;
  if (ranks.rank() != 0) {
    follow_rank_0(ranks, ranks.communicator());
    return 0;
  }
  // mpirun has the supervisor's descriptor, but its ranks do not.
  const std::string path =
      "/proc/" + std::to_string(launcher) + "/fd/" + std::to_string(kReplyDescriptor);
  const int replies = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (replies < 0) {
    std::cerr << "cannot open " << path << ": " << std::strerror(errno)
              << "; run_experiment starts this program, through mpirun on its own machine\n";
    ranks.abort(2);
  }
  Leader leader(ranks, ranks.communicator());
  return run_worker(replies, [&](const Job& job) { return open_ranked_session(leader, job); });
}

}  // namespace lloyd
