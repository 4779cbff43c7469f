// How a worker is started: the program itself, or mpirun over its twin that is linked with MPI.
//
// The twin stands beside the program and is named after it: run_experiment_mpi. It is a program of its own so that
// run_experiment runs where there is no MPI. Under mpirun rank 0 is the worker that the supervisor talks to: its
// standard input comes through mpirun, and it answers on mpirun's own descriptor 3, as mpirun leaves its ranks none but
// the standard streams.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "experiments/process/work_directory.h"
#include "experiments/spec/spec.h"

namespace lloyd {

/// mpirun and the twin, or why there are none.
struct MpiLauncher {
  std::string mpirun;   // its path
  std::string version;  // "mpirun (Open MPI) 4.1.4"
  std::string program;
  std::string problem;  // with the remedy; empty: all is there
};
/// Looked up at the first call.
const MpiLauncher& mpi_launcher();

/// Why this version cannot run here, whatever the problem; empty when it can. Says nothing of the GPU.
std::string unavailable_here(const RegisteredVersion& version);

struct Launch {
  std::vector<std::string> command;
  std::string binding;  // of the ranks: core, hwthread or none; empty without ranks
  std::unique_ptr<WorkDirectory> scratch;  // what Open MPI writes, also when it is killed
};
/// For the worker of `point` and of other points of its version, processes and threads (a launched version) or of its
/// version (any other).
Launch launch_for(const Point& point);
/// Whether one worker can run both.
bool share_a_worker(const Point& a, const Point& b);

}  // namespace lloyd
