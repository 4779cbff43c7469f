// Times the repetitions of a point in one launch.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "experiments/measure/noise.h"
#include "experiments/measure/session.h"
#include "experiments/spec/spec.h"
#include "kernels/core/version.h"
#include "profiling/nvml.h"

namespace lloyd {

/// The timing_basis of a version that reports its own times.
inline constexpr const char* kSelfReported = "self_reported";

/// Memory to lend for the labels of one answer.
LabelBuffer label_buffer(const Problem& problem);

/// The result of one timed repetition.
struct Sample {
  int repetition = 0;  // index within the launch
  double solve_ms = 0;
  double waited_ms = 0;  // measured by the harness around the solve
  std::optional<double> setup_ms, fetch_ms, transfer_ms;
  std::string timing_basis;
  // Set by a version that passes its problem on to another version (Chooser).
  std::optional<std::string> chosen, chosen_by;
  int iterations = 0;
  profiling::GpuState gpu;
  Noise noise;
  std::string t_utc;
};

/// How many seconds of load precede the sample `repetition`: from `least` to twice as many. A few
/// repetitions already spread evenly over this range. At its power limit a GPU's clock swings for
/// seconds after a load begins, on an H200 with a period of about one second (docs/scaling.md).
/// After a fixed time, all samples would see the same part of the swing.
double load_seconds(double least, int repetition);

class Timer {
 public:
  using Check = std::function<void(Solution, const Sample&)>;
  /// Calls `body`, which is the part of a solve named "setup", "solve" or "fetch".
  using Watch = std::function<void(const char* part, const std::function<void()>& body)>;

  /// `nvml` is null if the version does not run on a GPU or NVML is unavailable. `gpus`: the UUIDs
  /// of those that the version uses. `pins_labels`: lends labels in pinned memory. References and
  /// pointers must outlive this object.
  Timer(Session& session, const VersionFactory& make, const Measure& measure, NoiseMeter& noise,
        profiling::Nvml* nvml, std::vector<std::string> gpus, bool on_gpu, bool pins_labels = false)
      : session_(session),
        make_(make),
        measure_(measure),
        noise_(noise),
        nvml_(nvml),
        gpus_(std::move(gpus)),
        on_gpu_(on_gpu),
        pins_labels_(pins_labels) {}

  /// Takes the first solve of a point: its answer and its times. The times are those of a cold
  /// start, and `watch` may add to them.
  Sample first(const Problem& problem, Context& context, std::optional<double> needed_cores,
               const Watch& watch, Solution& answer);
  /// True if the times of a first solve are as good as those of a later one, and the spec asks for
  /// no more.
  bool suffices(const Sample& first) const;

  /// Repeats the solve until the launch has `measure.repetitions` samples and its median is known
  /// within `measure.max_noise`, or until measure.max_seconds or the limit of repetitions is
  /// reached. Takes at least one sample. `taken` holds the solve_ms of samples that an earlier
  /// process took in this launch. `check` receives each answer and throws if it is wrong. `keep`
  /// receives each sample before the next one is taken. Each sample has a different
  /// context.first_row. For `needed_cores` see NoiseMeter::begin.
  void run(const std::string& name, const Problem& problem, Context& context,
           const std::vector<double>& taken, std::optional<double> needed_cores, const Check& check,
           const std::function<void(const Sample&)>& keep);

 private:
  /// Takes a sample. With `throttled: retry` it takes a few more while the GPU throttles its clock.
  Sample take_unthrottled(const Problem& problem, Context& context, const Check& check);
  /// With `watch` the solve is the first one: nothing warms up for it.
  Sample take(const Problem& problem, Context& context, const Check& check,
              const Watch* watch = nullptr);
  std::int64_t draw_first_row(std::int64_t n);
  /// Repeats the solve without timing for load_seconds().
  void hold_load(Version& version, Context& context);
  /// Solves once without timing, right before the timed solve, if the timed one should be warm.
  void warm_up(Version& version, Context& context);
  /// `call` calls the solve. Fills the times, the noise and the state of the GPUs.
  void time_solve(Version& version, Context& context, const Watch& call, Sample& sample);

  Session& session_;
  const VersionFactory& make_;
  const Measure& measure_;
  NoiseMeter& noise_;
  profiling::Nvml* nvml_;
  std::vector<std::string> gpus_;  // the UUIDs of those that the version uses
  bool on_gpu_, pins_labels_;
  std::optional<double> needed_cores_;
  int next_repetition_ = 0;
  std::mt19937_64 random_{std::random_device{}()};
  std::optional<double> last_ms_;  // solve_ms of the last sample
};

}  // namespace lloyd
