// Where a worker runs its version: the version itself, a session on the device, the inputs, and
// what watches the machine. The passes (passes.h) use it.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "data/sources/generators.h"
#include "experiments/measure/noise.h"
#include "experiments/measure/session.h"
#include "experiments/measure/trial_file.h"
#include "experiments/run/inputs.h"
#include "experiments/run/job.h"
#include "kernels/core/batch.h"
#include "kernels/core/version.h"
#include "profiling/nvml.h"
#include "profiling/nvtx.h"

namespace lloyd {

class Workbench {
 public:
  /// All points of `job` must have the same version. `inputs` has the job's data and must outlive
  /// this object. Throws if the device is unavailable.
  Workbench(Job job, const OpenSession& open, Inputs& inputs);

  /// Valid until the next call.
  Problem problem(const Point& point);
  Context context(const Point& point);
  /// Throws DataError if a file that holds the points has changed since problem().
  void check_files() const { inputs_.check_unchanged(); }
  /// How long making the point's initial centroids took.
  double init_ms(const Point& point) const { return inputs_.init_ms(point); }
  std::string init_device(const Point& point) const { return inputs_.init_device(point); }
  /// What this process spent once, before its first point: the CUDA context, and what all transfers
  /// between host and device share.
  double process_setup_ms() const { return process_setup_ms_; }
  /// How many cores the point needs, or nullopt if that is unknown.
  std::optional<double> needed_cores(const Point& point) const;

  const Job& job() const { return job_; }
  const VersionInfo& version() const { return version_.info; }
  /// Makes the version for the problem (for_problem() in kernels/core/batch.h).
  VersionFactory make(const Problem& problem) const {
    return for_problem(version_.info, make_, problem);
  }
  Session& session() { return *session_; }
  NoiseMeter& noise() { return noise_; }
  bool on_gpu() const { return on_gpu_; }
  /// The UUIDs of the GPUs that the point uses. None if its version does not run on a GPU.
  std::vector<std::string> gpus(const Point& point) const;
  /// Null if the version does not run on a GPU or NVML is unavailable; no_nvml() then says why.
  const std::shared_ptr<profiling::Nvml>& nvml() const { return nvml_; }
  const std::string& no_nvml() const { return no_nvml_; }

 private:
  std::unique_ptr<Session> opened(const OpenSession& open);
  std::set<unsigned> processes_on_gpus() const;
  NoiseMeter::Watched watched() const;

  Job job_;
  std::shared_ptr<const data::Generator> generator_;  // of the last problem
  const RegisteredVersion& version_;
  Inputs& inputs_;
  bool on_gpu_;
  std::vector<std::string> gpus_;  // of the points together
  std::string no_nvml_;
  std::shared_ptr<profiling::Nvml> nvml_;
  std::set<unsigned> others_;  // processes that used the GPUs before this one did
  double process_setup_ms_ = 0;
  std::unique_ptr<Session> session_;
  std::shared_ptr<const void> pinned_;  // the points of the last problem
  VersionFactory make_;
  NoiseMeter noise_;
  TrialFile trials_;
  profiling::NvtxObserver nvtx_;
};

}  // namespace lloyd
