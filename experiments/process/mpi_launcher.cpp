#include "experiments/process/mpi_launcher.h"

#include <fmt/format.h>
#include <unistd.h>

#include <utility>
#include <vector>

#include "experiments/process/program_files.h"
#include "profiling/program.h"

namespace lloyd {
namespace {

constexpr double kVersionSeconds = 5;

/// The first line that `command` prints. Empty if it fails.
std::string first_line_of(std::vector<std::string> command) {
  const std::string text = profiling::output_of(std::move(command), kVersionSeconds).value_or("");
  return text.substr(0, text.find('\n'));
}

MpiLauncher find_mpi() {
  MpiLauncher mpi;
  mpi.program = program_path() + "_mpi";
  mpi.mpirun = profiling::find_program("mpirun");
  if (mpi.mpirun.empty()) {
    mpi.no_ranks = fmt::format("mpirun is not on PATH: {}", kInstallOpenMpi);
  } else {
    mpi.version = first_line_of({mpi.mpirun, "--version"});
    if (mpi.version.find("Open MPI") == std::string::npos)
      mpi.no_ranks = fmt::format("{} is not Open MPI's (it says '{}'): {}", mpi.mpirun, mpi.version,
                                 kInstallOpenMpi);
  }
  mpi.no_twin_ranks = mpi.no_ranks;
  if (access(mpi.program.c_str(), X_OK) != 0)
    mpi.no_twin_ranks = fmt::format("built without MPI ({} is not there): {} and build again",
                                    mpi.program, kInstallOpenMpi);
  else if (mpi.no_twin_ranks.empty() && first_line_of({mpi.program, "--version"}).empty())
    mpi.no_twin_ranks = fmt::format("{} does not start here (ldd says what it lacks): {}",
                                    mpi.program, kInstallOpenMpi);
  return mpi;
}

}  // namespace

const MpiLauncher& mpi_launcher() {
  static const MpiLauncher mpi = find_mpi();
  return mpi;
}

}  // namespace lloyd
