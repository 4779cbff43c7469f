#include "profiling/launches.h"

#include <cupti_callbacks.h>
#include <cupti_driver_cbid.h>

#include <algorithm>

#include "profiling/kernel_name.h"

namespace lloyd::profiling {
namespace {

// All launch functions of the driver. The runtime's launch functions call them.
constexpr std::array kLaunchCalls{CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel,
                                  CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz,
                                  CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx,
                                  CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz,
                                  CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel,
                                  CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel_ptsz,
                                  CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch,
                                  CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch_ptsz};

struct Recording {
  PhaseRecorder phases;
  Launches launches;
};

// The parameters that a callback receives, in order. CUPTI's generated_cuda_meta.h also declares
// them, but it needs the types of the driver's first version and does not compile here. The
// parameters of cuLaunchKernel and cuLaunchCooperativeKernel begin alike.
struct LaunchParams {
  CUfunction function;
  std::array<unsigned, 3> grid, block;
  unsigned shared_bytes;
};
struct LaunchExParams {
  const CUlaunchConfig* config;
  CUfunction function;
};

Launch launch_of(const LaunchParams& p) {
  return {"", "", p.function, p.grid, p.block, p.shared_bytes};
}

Launch launch_of(const LaunchExParams& p) {
  const CUlaunchConfig& c = *p.config;
  return {"",
          "",
          p.function,
          {c.gridDimX, c.gridDimY, c.gridDimZ},
          {c.blockDimX, c.blockDimY, c.blockDimZ},
          c.sharedMemBytes};
}

void on_launch(void* user, CUpti_CallbackDomain, CUpti_CallbackId id, const void* given) {
  const auto* data = static_cast<const CUpti_CallbackData*>(given);
  if (data->callbackSite != CUPTI_API_ENTER) return;
  auto& recording = *static_cast<Recording*>(user);
  const std::vector<std::string>& open = recording.phases.open();
  recording.launches.phases.insert(open.begin(), open.end());
  Launch launch;
  switch (id) {
    case CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch:
    case CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch_ptsz:
      ++recording.launches.graphs;
      return;
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx:
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz:
      launch = launch_of(*static_cast<const LaunchExParams*>(data->functionParams));
      break;
    default:
      launch = launch_of(*static_cast<const LaunchParams*>(data->functionParams));
  }
  if (!open.empty()) launch.phase = open.back();
  launch.kernel = kernel_name(data->symbolName == nullptr ? "" : data->symbolName);
  recording.launches.kernels.push_back(std::move(launch));
}

class Subscription {
 public:
  Subscription(const Cupti& cupti, Recording& recording) : cupti_(cupti) {
    cupti_.call("cuptiSubscribe", &handle_, static_cast<CUpti_CallbackFunc>(on_launch),
                static_cast<void*>(&recording));
    for (const CUpti_CallbackId id : kLaunchCalls)
      cupti_.call("cuptiEnableCallback", uint32_t{1}, handle_, CUPTI_CB_DOMAIN_DRIVER_API, id);
  }
  ~Subscription() { cupti_.result("cuptiUnsubscribe", handle_); }
  Subscription(const Subscription&) = delete;

 private:
  const Cupti& cupti_;
  CUpti_SubscriberHandle handle_ = nullptr;
};

}  // namespace

void PhaseRecorder::begin_phase(const char* name) {
  open_.emplace_back(name);
  ranges_.emplace_back(name);
  depth_ = std::max(depth_, open_.size());
}

Launches record_launches(const Cupti& cupti, Subject& subject) {
  Recording recording;
  {
    const Subscription subscription(cupti, recording);
    subject.observe(&recording.phases);
    subject.run();
    subject.observe(nullptr);
  }
  recording.launches.ranges = recording.phases.ranges();
  recording.launches.depth = recording.phases.depth();
  return recording.launches;
}

}  // namespace lloyd::profiling
