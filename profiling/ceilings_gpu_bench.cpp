#include "profiling/ceilings_gpu_bench.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>
#include <utility>

#include "profiling/ceilings_rounds.h"

namespace lloyd::profiling {
namespace {

constexpr int kSamples = 15;

/// The timing of one method's samples, all in milliseconds.
struct Schedule {
  double load_ms;    // the same work, before the first sample
  double sample_ms;  // the least length of a sample
  double pause_ms;   // before each sample
};
// The warm-up lasts as long as an idle GPU takes to raise its clocks, and a sample long enough for
// an NVML query.
constexpr Schedule kBackToBack{.load_ms = 150, .sample_ms = 15, .pause_ms = 0};
// An H200 reaches its power limit after about 50 ms of back-to-back matrix products (bf16, 8192³:
// 689 TFLOP/s at 1530 MHz; 2026-11-21). A solve of a few milliseconds does not reach it, so the
// ceiling is measured in bursts after pauses.
constexpr Schedule kBursts{.load_ms = 150, .sample_ms = 8, .pause_ms = 150};
// A sustained rate is taken after a second of the same load. The clock then swings with a period of
// about a second (docs/scaling.md), which the samples cover together.
constexpr Schedule kUnderLoad{.load_ms = 1000, .sample_ms = 70, .pause_ms = 0};
static_assert(kSamples * kUnderLoad.sample_ms >= 1000);

// The time between two rounds of samples. Other users of a host copy for seconds.
constexpr std::chrono::seconds kPause{2};

}  // namespace

CeilingBench::CeilingBench(const DeviceLimits& device, Nvml* nvml, const Announce& announce)
    : device_(device), nvml_(nvml), announce_(announce) {}

void CeilingBench::measure(const std::string& name, const std::string& unit, std::string method,
                           double work, const Launch& launch, Pace pace) {
  // The methods of a ceiling come in the same order each time, so their numbers identify them.
  const int number = methods_so_far_[full_name(name)]++;
  if (sustained_ && number != fastest_method(name)) return;
  Schedule schedule = kBackToBack;
  if (sustained_) {
    schedule = kUnderLoad;
    method += text(", after ", schedule.load_ms / 1e3, " s of it");
  } else if (pace == Pace::bursts) {
    schedule = kBursts;
    method += text(", bursts of ", schedule.sample_ms, " ms, ", schedule.pause_ms, " ms apart");
  }
  announce_(text(full_name(name), ": ", method));

  const double one_ms = warm_up(schedule.load_ms, launch);
  const int count = std::max(1, static_cast<int>(std::ceil(schedule.sample_ms / one_ms)));
  const double per_second = unit == "GB/s" ? 1e9 : 1e12;
  const auto round = [&] {
    Ceiling ceiling{full_name(name), unit, method, {}, {}, {}};
    for (int sample = 0; sample < kSamples; ++sample) {
      if (schedule.pause_ms > 0) {
        std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(schedule.pause_ms));
        timed_ms(1, launch);  // not a sample: wakes the GPU
      }
      GpuState* state = nvml_ == nullptr ? nullptr : &ceiling.states.emplace_back();
      const double ms = timed_ms(count, launch, state);
      ceiling.samples.push_back(work * count / (ms / 1e3) / per_second);
    }
    return ceiling;
  };
  // Under sustained load the power limit moves the clock, so these rates differ by themselves.
  results_.push_back(sustained_ ? round() : steady_round(round, kPause));
}

void CeilingBench::skip(const std::string& name, const std::string& unit,
                        const std::string& reason) {
  results_.push_back({full_name(name), unit, {}, {}, reason, {}});
}

std::string CeilingBench::full_name(const std::string& name) const {
  return sustained_ ? text(name, kSustained) : name;
}

// The number of the method with the best median without sustained load, counted from 0.
int CeilingBench::fastest_method(const std::string& name) const {
  int number = 0, fastest = 0;
  double best = 0;
  for (const Ceiling& result : results_) {
    if (result.name != name || result.samples.empty()) continue;
    if (const double rate = middle_of(result.samples); rate > best) {
      best = rate;
      fastest = number;
    }
    ++number;
  }
  return fastest;
}

// Repeats the work for at least `load_ms`. Returns how long one launch took at the end.
double CeilingBench::warm_up(double load_ms, const Launch& launch) {
  double one_ms = timed_ms(1, launch);  // does not count: loads the kernel and allocates
  for (double spent_ms = 0; spent_ms < load_ms;) {
    const int count = std::max(1, static_cast<int>(kBackToBack.sample_ms / one_ms));
    const double ms = timed_ms(count, launch);
    one_ms = ms / count;
    spent_ms += ms;
  }
  return one_ms;
}

// The device's time for `count` launches. NVML is asked after they are enqueued, so that it sees
// the GPU at work.
double CeilingBench::timed_ms(int count, const Launch& launch, GpuState* state) {
  start_.record(stream_);
  for (int i = 0; i < count; ++i) launch();
  end_.record(stream_);
  if (state != nullptr) *state = nvml_->state(device_.uuid);
  LLOYD_CUDA_CHECK(cudaStreamSynchronize(stream_));
  return end_.ms_since(start_);
}

}  // namespace lloyd::profiling
