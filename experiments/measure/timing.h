// The timed repetitions of a point, in one launch.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "experiments/measure/noise.h"
#include "experiments/measure/session.h"
#include "experiments/spec/spec.h"
#include "kernels/core/version.h"
#include "profiling/nvml.h"

namespace lloyd {

/// The timing_basis of a version that reports its own times.
inline constexpr const char* kSelfReported = "self_reported";

/// What one timed repetition gave.
struct Sample {
  int repetition = 0;  // within the launch
  double solve_ms = 0;
  double waited_ms = 0;  // by the harness's clock, around the solve
  std::optional<double> setup_ms, fetch_ms, transfer_ms;
  std::string timing_basis;
  std::optional<std::string> chosen;  // by a version that hands its problem on
  int iterations = 0;
  profiling::GpuState gpu;
  Noise noise;
  std::string t_utc;
};

class Timer {
 public:
  using Check = std::function<void(Solution, const Sample&)>;

  /// `nvml`: null where the version runs on no GPU or NVML cannot be had. All arguments outlive this.
  Timer(Session& session, const VersionFactory& make, const Measure& measure, NoiseMeter& noise,
        profiling::Nvml* nvml, const std::string& gpu_uuid, bool on_gpu)
      : session_(session),
        make_(make),
        measure_(measure),
        noise_(noise),
        nvml_(nvml),
        gpu_uuid_(gpu_uuid),
        on_gpu_(on_gpu) {}

  /// Repeats the solve until the launch has `measure.repetitions` samples and its median is known within
  /// `measure.max_noise`, or until time or patience are spent; at least once. `taken`: solve_ms of the samples that an
  /// earlier process took in this launch. `check` is given each answer and throws when it is wrong; `keep` is handed each
  /// sample before the next one is taken. Each sample has another context.first_row. `needed_cores`: see
  /// NoiseMeter::begin.
  void run(const std::string& name, const Problem& problem, Context& context,
           const std::vector<double>& taken, std::optional<double> needed_cores, const Check& check,
           const std::function<void(const Sample&)>& keep);

 private:
  /// A sample; with `throttled: retry` another one where the GPU held its clock back, a few times.
  Sample take_unthrottled(const Problem& problem, Context& context, const Check& check);
  Sample take(const Problem& problem, Context& context, const Check& check);

  Session& session_;
  const VersionFactory& make_;
  const Measure& measure_;
  NoiseMeter& noise_;
  profiling::Nvml* nvml_;
  const std::string& gpu_uuid_;
  bool on_gpu_;
  std::optional<double> needed_cores_;
  int next_repetition_ = 0;
  std::mt19937_64 random_{std::random_device{}()};
  std::optional<double> last_ms_;  // solve_ms of this process's last sample
};

}  // namespace lloyd
