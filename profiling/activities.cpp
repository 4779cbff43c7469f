#include "profiling/activities.h"

#include <cupti_activity.h>
#include <cupti_callbacks.h>
#include <fmt/format.h>

#include <cstdlib>
#include <mutex>

#include "profiling/kernel_name.h"

namespace lloyd::profiling {
namespace {

constexpr std::array kKinds{CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY,
                            CUPTI_ACTIVITY_KIND_MEMCPY2,  // between GPUs
                            CUPTI_ACTIVITY_KIND_MEMSET, CUPTI_ACTIVITY_KIND_RUNTIME};
// CUPTI requires 8-byte alignment and recommends 1 to 10 MB. This size holds about ten thousand
// records.
constexpr std::size_t kBufferBytes = std::size_t{4} << 20;

// Global, because CUPTI passes no user pointer to its buffer callbacks.
struct {
  std::mutex mutex;
  const Cupti* cupti = nullptr;
  std::vector<Activity> activities;
  std::size_t dropped = 0;
} recorded;

const char* direction(std::uint8_t kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOD:
      return "copy HtoD";
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOH:
      return "copy DtoH";
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOD:
      return "copy DtoD";
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOH:
      return "copy HtoH";
    case CUPTI_ACTIVITY_MEMCPY_KIND_PTOP:
      return "copy PtoP";
    default:
      return "copy";
  }
}

// Drops the suffix for the ABI version: cudaLaunchKernel_v7000 → cudaLaunchKernel.
std::string call_name(const Cupti& cupti, std::uint32_t callback) {
  const char* name = nullptr;
  if (cupti.result("cuptiGetCallbackName", CUPTI_CB_DOMAIN_RUNTIME_API, callback, &name) !=
          CUPTI_SUCCESS ||
      name == nullptr)
    return fmt::format("runtime call {}", callback);
  const std::string text = name;
  const std::size_t suffix = text.rfind("_v");
  return suffix != std::string::npos && suffix + 2 < text.size() &&
                 text.find_first_not_of("0123456789", suffix + 2) == std::string::npos
             ? text.substr(0, suffix)
             : text;
}

Activity base(Activity::Kind kind, std::uint64_t begin, std::uint64_t end,
              std::uint32_t correlation) {
  Activity activity;
  activity.kind = kind;
  activity.begin_ns = static_cast<std::int64_t>(begin);
  activity.end_ns = static_cast<std::int64_t>(end);
  activity.correlation = correlation;
  return activity;
}

// The parts that the records of all device work have in common.
template <typename Record>
Activity device_work(Activity::Kind kind, const Record& record) {
  Activity activity = base(kind, record.start, record.end, record.correlationId);
  activity.device = record.deviceId;
  activity.stream = record.streamId;
  return activity;
}

template <typename Record>
Activity copy_of(const Record& record) {
  Activity activity = device_work(Activity::Kind::copy, record);
  activity.name = direction(record.copyKind);
  activity.bytes = record.bytes;
  return activity;
}

void keep(const Cupti& cupti, const CUpti_Activity* record) {
  switch (record->kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
    case CUPTI_ACTIVITY_KIND_KERNEL: {
      const auto& k = *reinterpret_cast<const CUpti_ActivityKernel10*>(record);
      Activity a = device_work(Activity::Kind::kernel, k);
      a.name = kernel_name(k.name == nullptr ? "" : k.name);
      a.grid = {k.gridX, k.gridY, k.gridZ};
      a.block = {k.blockX, k.blockY, k.blockZ};
      a.registers_per_thread = k.registersPerThread;
      a.shared_bytes = k.staticSharedMemory + k.dynamicSharedMemory;
      recorded.activities.push_back(std::move(a));
      break;
    }
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      recorded.activities.push_back(
          copy_of(*reinterpret_cast<const CUpti_ActivityMemcpy6*>(record)));
      break;
    case CUPTI_ACTIVITY_KIND_MEMCPY2:
      recorded.activities.push_back(
          copy_of(*reinterpret_cast<const CUpti_ActivityMemcpyPtoP4*>(record)));
      break;
    case CUPTI_ACTIVITY_KIND_MEMSET: {
      const auto& m = *reinterpret_cast<const CUpti_ActivityMemset4*>(record);
      Activity a = device_work(Activity::Kind::memset, m);
      a.name = "memset";
      a.bytes = m.bytes;
      recorded.activities.push_back(std::move(a));
      break;
    }
    case CUPTI_ACTIVITY_KIND_RUNTIME: {
      const auto& r = *reinterpret_cast<const CUpti_ActivityAPI*>(record);
      Activity a = base(Activity::Kind::api, r.start, r.end, r.correlationId);
      a.name = call_name(cupti, r.cbid);
      // Programs check for errors after each launch. These calls take no time and would be half of
      // all records.
      if (a.name == "cudaGetLastError" || a.name == "cudaPeekAtLastError") break;
      a.thread = r.threadId;
      recorded.activities.push_back(std::move(a));
      break;
    }
    default:
      break;
  }
}

void CUPTIAPI lend_buffer(std::uint8_t** buffer, std::size_t* size, std::size_t* most) {
  *buffer = static_cast<std::uint8_t*>(std::malloc(kBufferBytes));
  *size = *buffer == nullptr ? 0 : kBufferBytes;
  *most = 0;  // 0: as many records as fit
}

void CUPTIAPI take_buffer(CUcontext context, std::uint32_t stream, std::uint8_t* buffer,
                          std::size_t, std::size_t valid) {
  const std::scoped_lock lock(recorded.mutex);
  if (recorded.cupti != nullptr) {
    CUpti_Activity* record = nullptr;
    while (recorded.cupti->result("cuptiActivityGetNextRecord", buffer, valid, &record) ==
           CUPTI_SUCCESS)
      keep(*recorded.cupti, record);
    std::size_t dropped = 0;
    if (recorded.cupti->result("cuptiActivityGetNumDroppedRecords", context, stream, &dropped) ==
        CUPTI_SUCCESS)
      recorded.dropped += dropped;
  }
  std::free(buffer);
}

}  // namespace

ActivityRecorder::ActivityRecorder(const Cupti& cupti) : cupti_(cupti) {
  {
    const std::scoped_lock lock(recorded.mutex);
    recorded.cupti = &cupti;
    recorded.activities.clear();
    recorded.dropped = 0;
  }
  cupti_.call("cuptiActivityRegisterCallbacks", &lend_buffer, &take_buffer);
  try {
    for (const CUpti_ActivityKind kind : kKinds) cupti_.call("cuptiActivityEnable", kind);
  } catch (...) {
    disable();
    throw;
  }
}

ActivityRecorder::~ActivityRecorder() { disable(); }

void ActivityRecorder::disable() noexcept {
  if (!std::exchange(enabled_, false)) return;
  for (const CUpti_ActivityKind kind : kKinds) cupti_.result("cuptiActivityDisable", kind);
}

std::int64_t ActivityRecorder::now() const {
  std::uint64_t ns = 0;
  cupti_.result("cuptiGetTimestamp", &ns);
  return static_cast<std::int64_t>(ns);
}

std::vector<Activity> ActivityRecorder::stop(std::size_t& dropped) {
  disable();
  cupti_.call("cuptiActivityFlushAll",
              static_cast<std::uint32_t>(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED));
  const std::scoped_lock lock(recorded.mutex);
  dropped = recorded.dropped;
  return std::exchange(recorded.activities, {});
}

}  // namespace lloyd::profiling
