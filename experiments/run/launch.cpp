#include "experiments/run/launch.h"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>

#include "experiments/measure/open_mpi.h"
#include "experiments/process/mpi_launcher.h"
#include "experiments/process/program_files.h"
#include "experiments/text/text.h"
#include "kernels/core/cores.h"
#include "kernels/core/limits.h"

namespace lloyd {
namespace {

namespace fs = std::filesystem;

/// The machines whose GPUs the ranks use, this one first: LLOYDBENCH_HOSTS, "node1,node2". Empty:
/// this one alone.
std::vector<std::string> hosts() {
  const char* names = std::getenv("LLOYDBENCH_HOSTS");
  return names == nullptr ? std::vector<std::string>{} : split_list(names);
}

/// The number of cores (not hardware threads) in the CPU affinity of this process.
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

/// The variables of Open MPI for ranks that are all on this machine.
std::vector<std::string> on_this_machine(const fs::path& scratch) {
  return {
      "TMPDIR=" + scratch.string(),
      // Messages go through shared memory. Without these settings Open MPI also looks for networks
      // and warns about missing ones.
      "OMPI_MCA_pml=ob1",
      "OMPI_MCA_btl=self,vader",
      "OMPI_MCA_btl_vader_backing_directory=" + scratch.string(),
      "OMPI_MCA_btl_sm_backing_directory=" + scratch.string(),  // its name in Open MPI 5
      // Most containers forbid reading another process's memory, and Open MPI warns each time.
      "OMPI_MCA_btl_vader_single_copy_mechanism=none",
      "OMPI_MCA_hwloc_base_mem_bind_failure_action=silent",
      // Within a scheduler's job mpirun would start ranks by the scheduler, on other nodes, too.
      "OMPI_MCA_plm=isolated",
      "OMPI_MCA_ras=^alps,gridengine,lsf,slurm,tm",
      "PRTE_MCA_plm=^lsf,slurm,tm",  // the names in Open MPI 5
      "PRTE_MCA_ras=^gridengine,lsf,pbs,slurm,tm",
  };
}

/// The variables of our environment that ranks on other machines need: of NCCL, of this program,
/// and where libraries are.
std::vector<std::string> names_of_settings() {
  std::vector<std::string> names;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string name = std::string(*entry).substr(0, std::string(*entry).find('='));
    if (name.starts_with("NCCL_") || name.starts_with("LLOYDBENCH_") || name == "LD_LIBRARY_PATH")
      names.push_back(name);
  }
  return names;
}

}  // namespace

std::string unavailable_here(const RegisteredVersion& version) {
  if (version.launched) return mpi_launcher().no_twin_ranks;
  return version.make == nullptr ? version.unavailable : "";
}

bool needs_ranks(const Point& point) {
  const RegisteredVersion& version = *find_version(point.version);
  const bool on_gpus = version.info.backend == Backend::cuda && !version.info.external;
  return version.launched || (on_gpus && point.processes.value_or(1) > 1);
}

std::optional<std::string> rank_shortfall(const Point& point, const DeviceLimits& device) {
  if (!needs_ranks(point) || find_version(point.version)->launched) return std::nullopt;
  if (const std::string& reason = mpi_launcher().no_ranks; !reason.empty()) return reason;
  static const std::string no_library = no_open_mpi();
  if (!no_library.empty()) return fmt::format("{}: {}", no_library, kInstallOpenMpi);
  const int processes = *point.processes, gpus = point.gpus.value_or(1);
  const auto here = std::max<std::int64_t>(std::ssize(device.team), 1);
  const std::int64_t machines = std::max<std::int64_t>(std::ssize(hosts()), 1);
  if (processes <= machines * (here / gpus) || ranks_may_share_gpus()) return std::nullopt;
  const std::string needed =
      fmt::format("needs {} GPUs ({} processes × {})", with_commas(std::int64_t{processes} * gpus),
                  with_commas(processes), with_commas(gpus));
  const std::string there = fmt::format(
      "(GPU {} and those of its model after it that reach each other's memory)", device.index);
  return machines == 1 ? fmt::format("{}, this machine has {} {}", needed, here, there)
                       : fmt::format("{}, the {} machines of LLOYDBENCH_HOSTS have {} each {}",
                                     needed, machines, here, there);
}

bool ranks_may_share_gpus() { return std::getenv("LLOYDBENCH_SHARE_GPUS") != nullptr; }

bool share_a_worker(const Point& a, const Point& b) {
  if (a.version != b.version || needs_ranks(a) != needs_ranks(b)) return false;
  return !needs_ranks(a) ||
         (a.processes == b.processes && a.threads == b.threads && a.gpus == b.gpus);
}

namespace {

/// Ranks on GPUs, of this program. They are not bound: a rank has a thread for each GPU and those
/// of NCCL, and rank 0 also makes the data and judges answers.
Launch launch_on_gpus(const Point& point) {
  const int processes = *point.processes;
  const std::vector<std::string> machines = hosts();
  Launch launch;
  launch.binding = "none";
  launch.command = {"env"};
  const auto add = [&](std::initializer_list<std::string> words) {
    launch.command.insert(launch.command.end(), words);
  };
  if (machines.empty()) {
    launch.scratch = std::make_unique<WorkDirectory>(scratch_base(processes));
    for (const std::string& setting : on_this_machine(launch.scratch->path())) add({setting});
  }
  add({mpi_launcher().mpirun, "--allow-run-as-root", "--oversubscribe", "-np",
       std::to_string(processes), "--bind-to", "none"});
  if (!machines.empty()) {
    const auto count = static_cast<int>(machines.size());
    const std::string slots = fmt::format(":{}", (processes + count - 1) / count);
    add({"--host", join(machines, slots + ",") + slots});
    // mpirun hands on its own variables (OMPI_…) to other machines, and those that it is told to.
    for (const std::string& name : names_of_settings()) add({"-x", name});
  }
  if (std::int64_t{processes} * point.gpus.value_or(1) > available_cores())
    add({"--mca", "mpi_yield_when_idle", "1"});
  add({program_path(), "--ranked-worker"});
  return launch;
}

/// Ranks of the program's twin, on this machine. Where there are enough cores, a rank is bound to
/// one for each of its threads.
Launch launch_twin(const Point& point) {
  const MpiLauncher& mpi = mpi_launcher();
  const int ranks = point.tunables().processes, threads = point.tunables().threads;
  const std::int64_t needed = std::int64_t{ranks} * threads;
  Launch launch;
  launch.scratch = std::make_unique<WorkDirectory>(scratch_base(ranks));
  launch.command = {
      mpi.mpirun,
      "--allow-run-as-root",
      // Allows more ranks than Open MPI's slots. The rows say whether there were too few cores.
      "--oversubscribe",
      "-np",
      std::to_string(ranks),
  };
  const std::vector<std::string> settings = on_this_machine(launch.scratch->path());
  launch.command.insert(launch.command.begin(), settings.begin(), settings.end());
  launch.command.insert(launch.command.begin(), "env");
  const auto add = [&](std::initializer_list<const char*> words) {
    launch.command.insert(launch.command.end(), words.begin(), words.end());
  };
  const std::string share = fmt::format("slot:PE={}", threads);
  if (needed <= std::min(physical_cores(), available_cores())) {
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

}  // namespace

Launch launch_for(const Point& point) {
  if (needs_ranks(point))
    return find_version(point.version)->launched ? launch_twin(point) : launch_on_gpus(point);
  // A program that is built again during a run is gone from its path, but not for the run itself.
  const std::string program = program_path();
  Launch launch;
  launch.command = {program.ends_with(" (deleted)") ? "/proc/self/exe" : program, "--worker"};
  return launch;
}

}  // namespace lloyd
