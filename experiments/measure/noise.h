// What else was going on while a sample was taken.
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

/// What was seen during a sample. A number that could not be had is empty.
struct Noise {
  // Of the processes that solve, during the solve: a thread that had to make room for another, and pages that were not
  // there.
  std::optional<std::int64_t> involuntary_switches, page_faults;
  std::optional<std::int64_t> disk_page_faults;  // of the page faults, those that had to read
  // Of this process's threads, from set-up to the solve's end: moves from one core to another.
  std::optional<std::int64_t> migrations;
  // Cores' worth of CPU that others used, of those that we may use; over half a second where the sample is shorter.
  std::optional<double> other_cpu;
  std::optional<double> own_cpu;     // that the run itself used, likewise
  std::optional<double> other_gpu;   // percent of the GPU that others used, over a second
  std::vector<std::string> reasons;  // why the sample is noisy; empty when it is not
};

/// What of `noise` may have changed a time of `solve_ms`, with the numbers:
///  - threads that had to make room, when that took more than 1% of the time at 0.1 ms each: what two switches and caches
///    that another has used cost at least. Below that a switch now and then is part of every long solve;
///  - pages that were read from disk;
///  - other processes' CPU, when the version needs cores that they used: `needed` cores of `cores`, and 0.2 more than
///    there is room for. Less is what a quiet machine's services take, and near what ticks of 10 ms can tell. A GPU
///    version needs one core, so it is not disturbed by a busy neighbour on a machine with several;
///  - other processes' use of the GPU from 5% on, for a version that runs there (other_gpu is empty for others).
std::vector<std::string> disturbances(const Noise& noise, double solve_ms, double needed,
                                      int cores);

/// The columns `noisy` and `noise`.
void fill_noise(Row& row, const Noise& noise);

/// Busy time of the cores that a process may use, and how much of it was that process's and its descendants'.
struct CpuReading {
  double at_ms = 0, busy_s = 0, own_s = 0;
  int cores = 0;
};
/// nullopt where /proc does not say.
std::optional<CpuReading> read_cpu(pid_t root);
/// Cores' worth of CPU between two readings that was not ours.
double others_between(const CpuReading& first, const CpuReading& last);

/// For a GPU: its NVML, what CUDA calls it and the processes on it that are ours.
struct WatchedGpu {
  std::shared_ptr<profiling::Nvml> nvml;
  std::string uuid;
  std::set<unsigned> own;
};

class NoiseMeter {
 public:
  struct Watched {
    pid_t run = 0;      // the supervisor: it and its descendants are "we"
    pid_t solvers = 0;  // whose descendants solve too; 0: this process alone does
    std::optional<WatchedGpu> gpu;
  };
  explicit NoiseMeter(Watched watched);

  /// Before a sample's set-up: what takes time to read. `needed`: cores that the version needs; empty: as many as the run
  /// is seen to use.
  void begin(std::optional<double> needed);
  /// Right before the solve.
  void start();
  /// Right after it.
  Noise stop(double solve_ms);

 private:
  struct Solvers {
    std::int64_t switches = 0, faults = 0, disk_faults = 0;
  };
  Solvers read_solvers() const;

  Watched watched_;
  std::optional<double> needed_;
  std::deque<CpuReading> readings_;
  std::optional<std::int64_t> migrations_;
  Solvers before_;
};

/// What others do on this machine before a run: for environment.json and a line on the terminal.
struct Load {
  std::optional<double> other_cpu;  // cores
  int cores = 0;
  std::optional<std::size_t> gpu_processes;  // empty: no GPU, or its driver does not say
};
nlohmann::ordered_json to_json(const Load& load);
/// "others use 0.1 of 2 cores, no process on the GPU".
std::string to_text(const Load& load);
/// Takes half a second.
Load measure_load(profiling::Nvml* nvml, const std::string& gpu_uuid);

/// A sample as far as its point's summary needs it.
struct SampleNoise {
  double iteration_ms = 0;
  bool noisy = false;
  std::string reason;    // the first one
  std::string throttle;  // what held the GPU's clock back
};
SampleNoise sample_noise(const Row& row);
/// Why the median of a point's samples is not to be relied on, in a few words; empty when nothing is known against it. A
/// quarter of noisy samples is enough: they are slow ones, so the median of all is at best the 67th percentile of the others.
std::string point_noise(const std::vector<SampleNoise>& samples, double max_noise);

}  // namespace lloyd
