// run_experiment_mpi is a worker with several ranks. mpirun starts it.
#include <fcntl.h>
#include <mpi.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <iostream>
#include <string>

#include "build_info.h"
#include "experiments/measure/ranks.h"
#include "experiments/run/job.h"

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "--version") == 0) {
    std::cout << lloyd::build_info::version << '\n';
    return 0;
  }
  // mpirun puts each rank into its own process group, so killing mpirun's group would leave the
  // ranks alive.
  const pid_t launcher = getppid();
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != launcher) return 1;

  int threads = MPI_THREAD_SINGLE;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &threads);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  int status = 0;
  if (rank != 0) {
    lloyd::follow_rank_0(MPI_COMM_WORLD);
  } else {
    // mpirun has the supervisor's descriptor, but its ranks do not.
    const std::string path =
        "/proc/" + std::to_string(launcher) + "/fd/" + std::to_string(lloyd::kReplyDescriptor);
    const int replies = open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (replies < 0) {
      std::cerr << "cannot open " << path << ": " << std::strerror(errno)
                << "; run_experiment starts this program, through mpirun\n";
      MPI_Abort(MPI_COMM_WORLD, 2);
    }
    lloyd::Leader leader(MPI_COMM_WORLD);
    status = lloyd::run_worker(replies, [&](const lloyd::Job&) { return leader.session(); });
  }
  MPI_Finalize();
  return status;
}
