// Decides how a worker is started: as the program itself, or as mpirun with the program's MPI twin.
//
// The twin, run_experiment_mpi, is in the same folder. It is a separate program so that
// run_experiment also runs where there is no MPI. Rank 0 is the worker that the supervisor talks
// to. Its standard input comes through mpirun. mpirun gives its ranks only the standard streams, so
// rank 0 replies on the descriptor 3 of mpirun itself.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "experiments/process/work_directory.h"
#include "experiments/spec/spec.h"

namespace lloyd {

/// mpirun and the twin, or the reason why they are missing.
struct MpiLauncher {
  std::string mpirun;   // its path
  std::string version;  // "mpirun (Open MPI) 4.1.4"
  std::string program;
  std::string problem;  // with the remedy; empty if nothing is missing
};
/// Searches for them in the first call.
const MpiLauncher& mpi_launcher();

/// Why this version cannot run here with any problem; empty if it can. Does not check the GPU.
std::string unavailable_here(const RegisteredVersion& version);

struct Launch {
  std::vector<std::string> command;
  std::string binding;  // of the ranks: core, hwthread or none; empty without ranks
  std::unique_ptr<WorkDirectory> scratch;  // for the files of Open MPI, even if it is killed
};
/// How to start the worker for `point`. The same worker serves all points that share_a_worker().
Launch launch_for(const Point& point);
/// True if one worker can run both: the versions are the same, and for a version that mpirun starts
/// also the processes and threads.
bool share_a_worker(const Point& a, const Point& b);

}  // namespace lloyd
