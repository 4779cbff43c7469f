// Decides how a worker is started: as the program itself, or by mpirun.
//
// A point of a version that calls MPI itself always needs mpirun, with the program's twin
// (process/mpi_launcher.h). A point on GPUs needs mpirun where it has several processes, each of
// which is the program, with MPI opened at run time (measure/open_mpi.h).
//
// Rank 0 is the worker that the supervisor talks to. Its standard input comes through mpirun.
// mpirun gives its ranks only the standard streams, so rank 0 replies on the descriptor 3 of mpirun
// itself.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "experiments/process/work_directory.h"
#include "experiments/spec/spec.h"

namespace lloyd {

/// Why this version cannot run here with any problem; empty if it can. Does not check the GPU.
std::string unavailable_here(const RegisteredVersion& version);

/// Whether mpirun starts the worker for `point`.
bool needs_ranks(const Point& point);
/// Why the ranks of a point on GPUs cannot be started here, or do not have enough GPUs: those of
/// `device` on each host (nullopt: none). nullopt if they can, or if the point needs no ranks.
std::optional<std::string> rank_shortfall(const Point& point, const DeviceLimits& device);
/// The environment variable LLOYDBENCH_SHARE_GPUS: ranks without a GPU of their own share one. For
/// tests, so rows say `oversubscribed`.
bool ranks_may_share_gpus();

struct Launch {
  std::vector<std::string> command;
  std::string binding;  // of the ranks: core, hwthread or none; empty without ranks
  std::unique_ptr<WorkDirectory> scratch;  // for the files of Open MPI, even if it is killed
};
/// How to start the worker for `point`. The same worker serves all points that share_a_worker().
Launch launch_for(const Point& point);
/// True if one worker can run both: the versions are the same, and if mpirun starts it also the
/// processes, the threads and the GPUs.
bool share_a_worker(const Point& a, const Point& b);

}  // namespace lloyd
