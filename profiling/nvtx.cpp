#include "profiling/nvtx.h"

#include <map>
#include <string_view>

#if LLOYD_CUDA
#include <nvtx3/nvToolsExt.h>
#endif

namespace lloyd::profiling {

#if LLOYD_CUDA
namespace {

nvtxDomainHandle_t domain() {
  static nvtxDomainHandle_t handle = [] {
    nvtxDomainHandle_t created = nvtxDomainCreateA("lloydbench");
    const char* names[] = {"experiment", "point", "repetition", "iteration"};
    for (std::uint32_t i = 0; i < 4; ++i) nvtxDomainNameCategoryA(created, i + 1, names[i]);
    return created;
  }();
  return handle;
}

nvtxEventAttributes_t attributes(std::uint32_t category, std::int64_t payload) {
  nvtxEventAttributes_t event{};
  event.version = NVTX_VERSION;
  event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  event.category = category;
  event.payloadType = NVTX_PAYLOAD_TYPE_INT64;
  event.payload.llValue = payload;
  return event;
}

struct Phase {
  nvtxStringHandle_t name;
  std::uint32_t category;
};

// Registers a phase's name at its first use and gives it its own category after those of the
// levels.
const Phase& registered(const char* name) {
  static std::map<std::string_view, Phase> known;
  const auto found = known.find(name);
  if (found != known.end()) return found->second;
  const auto category = static_cast<std::uint32_t>(NvtxRange::Level::phase) +
                        static_cast<std::uint32_t>(known.size());
  nvtxDomainNameCategoryA(domain(), category, name);
  return known.emplace(name, Phase{nvtxDomainRegisterStringA(domain(), name), category})
      .first->second;
}

}  // namespace

NvtxRange::NvtxRange(Level level, const std::string& message, std::int64_t payload) {
  nvtxEventAttributes_t event = attributes(static_cast<std::uint32_t>(level), payload);
  event.messageType = NVTX_MESSAGE_TYPE_ASCII;
  event.message.ascii = message.c_str();
  nvtxDomainRangePushEx(domain(), &event);
}

NvtxRange::~NvtxRange() { nvtxDomainRangePop(domain()); }

CaptureRange::CaptureRange() {
  nvtxEventAttributes_t event = attributes(0, 0);
  event.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  event.message.registered = nvtxDomainRegisterStringA(domain(), "capture");
  nvtxDomainRangePushEx(domain(), &event);
}

CaptureRange::~CaptureRange() { nvtxDomainRangePop(domain()); }

void NvtxObserver::begin_phase(const char* name) {
  const Phase& phase = registered(name);
  nvtxEventAttributes_t event = attributes(phase.category, 0);
  event.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  event.message.registered = phase.name;
  nvtxDomainRangePushEx(domain(), &event);
}

void NvtxObserver::begin_iteration(int iteration) {
  static const nvtxStringHandle_t name = nvtxDomainRegisterStringA(domain(), "iteration");
  nvtxEventAttributes_t event =
      attributes(static_cast<std::uint32_t>(NvtxRange::Level::iteration), iteration);
  event.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  event.message.registered = name;
  nvtxDomainRangePushEx(domain(), &event);
}

void NvtxObserver::end_phase() { nvtxDomainRangePop(domain()); }
void NvtxObserver::end_iteration() { nvtxDomainRangePop(domain()); }
#else
NvtxRange::NvtxRange(Level, const std::string&, std::int64_t) {}
NvtxRange::~NvtxRange() = default;
CaptureRange::CaptureRange() = default;
CaptureRange::~CaptureRange() = default;
void NvtxObserver::begin_phase(const char*) {}
void NvtxObserver::end_phase() {}
void NvtxObserver::begin_iteration(int) {}
void NvtxObserver::end_iteration() {}
#endif

}  // namespace lloyd::profiling
