#include "experiments/run/launch.h"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <set>

#include "experiments/record/environment.h"
#include "profiling/program.h"

namespace lloyd {
namespace {

namespace fs = std::filesystem;

constexpr double kVersionSeconds = 5;
constexpr const char* kPackages =
    "install Open MPI (Debian, Ubuntu: apt-get install openmpi-bin libopenmpi-dev)";

/// The first line that `command` prints. Empty if it fails.
std::string first_line_of(std::vector<std::string> command) {
  const std::string text = profiling::output_of(std::move(command), kVersionSeconds).value_or("");
  return text.substr(0, text.find('\n'));
}

MpiLauncher find_mpi() {
  MpiLauncher mpi;
  mpi.program = program_path() + "_mpi";
  if (access(mpi.program.c_str(), X_OK) != 0) {
    mpi.problem = fmt::format("built without MPI ({} is not there): {} and build again",
                              mpi.program, kPackages);
    return mpi;
  }
  mpi.mpirun = profiling::find_program("mpirun");
  if (mpi.mpirun.empty()) {
    mpi.problem = fmt::format("mpirun is not on PATH: {}", kPackages);
    return mpi;
  }
  mpi.version = first_line_of({mpi.mpirun, "--version"});
  if (mpi.version.find("Open MPI") == std::string::npos)
    mpi.problem =
        fmt::format("{} is not Open MPI's (it says '{}'): {}", mpi.mpirun, mpi.version, kPackages);
  else if (first_line_of({mpi.program, "--version"}).empty())
    mpi.problem =
        fmt::format("{} does not start here (ldd says what it lacks): {}", mpi.program, kPackages);
  return mpi;
}

/// The number of cores (not hardware threads) that this process may use.
int physical_cores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  sched_getaffinity(0, sizeof allowed, &allowed);
  std::set<std::string> cores;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed)) continue;
    std::ifstream in(
        fmt::format("/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list", cpu));
    std::string siblings;
    if (!std::getline(in, siblings)) siblings = std::to_string(cpu);
    cores.insert(siblings);
  }
  return static_cast<int>(cores.size());
}

/// A folder in memory, or on a disk if memory is short. The ranks' messages go through files there.
fs::path scratch_base(int ranks) {
  constexpr std::uintmax_t kBytesPerRank = 16 << 20;  // Open MPI itself uses about 4 MiB each
  const fs::path memory = "/dev/shm";
  std::error_code error;
  const fs::space_info space = fs::space(memory, error);
  const bool has_room = !error && access(memory.c_str(), W_OK | X_OK) == 0 &&
                        space.available >= kBytesPerRank * static_cast<std::uintmax_t>(ranks);
  return has_room ? memory : fs::temp_directory_path();
}

}  // namespace

const MpiLauncher& mpi_launcher() {
  static const MpiLauncher mpi = find_mpi();
  return mpi;
}

std::string unavailable_here(const RegisteredVersion& version) {
  if (version.launched) return mpi_launcher().problem;
  return version.make == nullptr ? version.unavailable : "";
}

bool share_a_worker(const Point& a, const Point& b) {
  return a.version == b.version && (!find_version(a.version)->launched ||
                                    (a.processes == b.processes && a.threads == b.threads));
}

Launch launch_for(const Point& point) {
  Launch launch;
  if (!find_version(point.version)->launched) {
    launch.command = {program_path(), "--worker"};
    return launch;
  }
  const MpiLauncher& mpi = mpi_launcher();
  const int ranks = point.tunables().processes, threads = point.tunables().threads;
  const std::int64_t needed = std::int64_t{ranks} * threads;
  launch.scratch = std::make_unique<WorkDirectory>(scratch_base(ranks));
  const std::string scratch = launch.scratch->path().string();
  launch.command = {
      "env",
      "TMPDIR=" + scratch,
      // All ranks are on one machine, so messages go through shared memory. Without these settings
      // Open MPI also looks for networks and warns about missing ones.
      "OMPI_MCA_pml=ob1",
      "OMPI_MCA_btl=self,vader",
      "OMPI_MCA_btl_vader_backing_directory=" + scratch,
      "OMPI_MCA_btl_sm_backing_directory=" + scratch,  // its name in Open MPI 5
      // Most containers forbid reading another process's memory, and Open MPI warns each time.
      "OMPI_MCA_btl_vader_single_copy_mechanism=none",
      "OMPI_MCA_hwloc_base_mem_bind_failure_action=silent",
      mpi.mpirun,
      "--allow-run-as-root",
      // Allows more ranks than Open MPI's slots. The rows say whether there were too few cores.
      "--oversubscribe",
      "-np",
      std::to_string(ranks),
  };
  const auto add = [&](std::initializer_list<const char*> words) {
    launch.command.insert(launch.command.end(), words.begin(), words.end());
  };
  const std::string share = fmt::format("slot:PE={}", threads);
  if (needed <= physical_cores()) {
    launch.binding = "core";
    add({"--map-by", share.c_str(), "--bind-to", "core"});
  } else if (needed <= available_cores()) {
    launch.binding = "hwthread";
    add({"--use-hwthread-cpus", "--map-by", share.c_str(), "--bind-to", "hwthread"});
  } else {
    launch.binding = "none";
    // A waiting thread must not occupy the core of the thread that it waits for. On 2 cores, an
    // iteration over 1001 points by 3 ranks of 2 threads took 86 ms when OpenMP's threads spin, and
    // 0.25 ms when they do not.
    if (std::getenv("OMP_WAIT_POLICY") == nullptr)
      launch.command.insert(launch.command.begin() + 1, "OMP_WAIT_POLICY=passive");
    add({"--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"});
  }
  launch.command.push_back(mpi.program);
  return launch;
}

}  // namespace lloyd
