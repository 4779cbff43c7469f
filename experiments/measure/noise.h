// Detects other activity on the machine while a sample is taken.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "experiments/record/rows.h"
#include "profiling/nvml.h"

namespace lloyd {

/// The activity during a sample. A number is empty if it could not be read.
struct Noise {
  // Counted from start() to stop(), over all processes that solve: how often a thread was
  // preempted, and page faults.
  std::optional<std::int64_t> involuntary_switches, page_faults;
  std::optional<std::int64_t> disk_page_faults;  // the page faults that read from disk
  // How often a thread of this process moved to another core, from set-up to the end of the solve.
  std::optional<std::int64_t> migrations;
  // The CPU that other processes used on the cores available to us, in cores. Measured over half a
  // second if the sample is shorter.
  std::optional<double> other_cpu;
  std::optional<double> own_cpu;     // the same for the run itself
  std::optional<double> other_gpu;   // percent of the GPU that others used in a second; of several
                                     // GPUs, of the one that they used most
  std::vector<std::string> reasons;  // why the sample is noisy; empty when it is not
};

/// Which numbers of `noise`, of a sample of `ms`, may have changed its time, in words:
///  - preempted threads, if they lost more than 1% of the time at 0.1 ms each. That is the least
///    that two switches and a cache refill cost. Below this limit, an occasional switch is part of
///    every long solve;
///  - pages that were read from disk;
///  - other processes' CPU, if it exceeds the cores that the version leaves free (`cores` −
///    `needed`) by more than 0.2. Services of a quiet machine use less than 0.2, and ticks of 10 ms
///    can hardly resolve it. A GPU version needs one core for each GPU, so a busy neighbour does
///    not disturb it on a machine with several cores;
///  - other processes' use of the GPU from 5%, for a version that runs there (other_gpu is empty
///    for others).
std::vector<std::string> disturbances(const Noise& noise, double ms, double needed, int cores);

/// Fills the columns `noisy` and `noise`.
void fill_noise(Row& row, const Noise& noise);

/// The busy time of the cores that a process may use, and the part of it that the process and its
/// descendants used.
struct CpuReading {
  double at_ms = 0, busy_s = 0, own_s = 0;
  int cores = 0;
};
/// nullopt if /proc does not give the numbers.
std::optional<CpuReading> read_cpu(pid_t root);
/// The CPU that other processes used between two readings, in cores.
double others_between(const CpuReading& first, const CpuReading& last);

/// GPUs to watch: NVML, their UUIDs, our processes on them, and those that were there before the
/// run. The driver may number processes differently than we do in a container, so ours are known by
/// when they appear.
struct WatchedGpus {
  std::shared_ptr<profiling::Nvml> nvml;
  std::vector<std::string> uuids;
  std::set<unsigned> own, others;
};

class NoiseMeter {
 public:
  struct Watched {
    pid_t run = 0;  // the supervisor; it and its descendants count as ours
    // The descendants of this process solve too. 0: only this process solves. What they start on
    // the GPUs after the meter was made is ours as well.
    pid_t solvers = 0;
    std::optional<WatchedGpus> gpus;
  };
  explicit NoiseMeter(Watched watched);

  /// Call before the set-up of a sample. It takes the readings that are slow. `needed`: how many
  /// cores the version needs; if empty, as many as the run is seen to use. `gpus`: how many of the
  /// watched GPUs it uses, from the first.
  void begin(std::optional<double> needed, std::size_t gpus = 1);
  /// Call before the solve. It takes milliseconds where other processes solve.
  void start();
  /// Call right after the solve.
  void stop();
  /// Call after stop(). It takes the readings that are slow.
  Noise noise();

 private:
  struct Solvers {
    std::int64_t switches = 0, faults = 0, disk_faults = 0;
  };
  Solvers read_solvers() const;
  void find_solvers_on_gpus();

  Watched watched_;
  bool solvers_found_ = false;
  std::optional<double> needed_;
  std::size_t gpus_ = 1;
  std::deque<CpuReading> readings_;
  std::optional<std::int64_t> migrations_;
  Solvers before_, after_;
  double started_ms_ = 0, stopped_ms_ = 0;
};

/// The load that others put on this machine before a run, for environment.json and a line on the
/// terminal.
struct Load {
  std::optional<double> other_cpu;  // cores
  int cores = 0;
  // On the GPUs that the run uses. Empty: no GPU, or its driver does not say.
  std::optional<std::size_t> gpu_processes;
};
nlohmann::ordered_json to_json(const Load& load);
/// For example "others use 0.1 of 2 cores, no process on the GPU".
std::string to_text(const Load& load);
/// Takes half a second.
Load measure_load(profiling::Nvml* nvml, const std::vector<std::string>& gpus);

}  // namespace lloyd
