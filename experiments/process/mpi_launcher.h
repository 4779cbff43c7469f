// Finds mpirun and the program's twin, run_experiment_mpi.
//
// The twin is in the same folder and has the versions that call MPI themselves. It is a separate
// program so that run_experiment also runs where there is no MPI.
#pragma once

#include <string>

namespace lloyd {

/// The remedy that reasons name.
inline constexpr const char* kInstallOpenMpi =
    "install Open MPI (Debian, Ubuntu: apt-get install openmpi-bin libopenmpi-dev)";

/// mpirun and the twin, or the reason why they are missing. Reasons name the remedy, and are empty
/// if nothing is missing.
struct MpiLauncher {
  std::string mpirun;         // its path
  std::string version;        // "mpirun (Open MPI) 4.1.4"
  std::string program;        // the twin
  std::string no_ranks;       // why no ranks can be started
  std::string no_twin_ranks;  // why none of the twin can
};
/// Searches for them in the first call.
const MpiLauncher& mpi_launcher();

}  // namespace lloyd
