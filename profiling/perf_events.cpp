#include "profiling/perf_events.h"

#include <fmt/format.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <system_error>

namespace lloyd::profiling {
namespace {

struct Event {
  const char* name;
  std::uint32_t type;
  std::uint64_t config;
};
constexpr std::uint64_t kL1dReadMisses = PERF_COUNT_HW_CACHE_L1D |
                                         (PERF_COUNT_HW_CACHE_OP_READ << 8) |
                                         (PERF_COUNT_HW_CACHE_RESULT_MISS << 16);
constexpr auto kHardwareEvents = std::to_array<Event>({
    {"l1d_misses", PERF_TYPE_HW_CACHE, kL1dReadMisses},
    {"llc_misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES},
    {"instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS},
    {"cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
});
constexpr Event kPageFaults{"page_faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS};

Event event_of(const std::string& name) {
  const auto found = std::ranges::find(kHardwareEvents, name, &Event::name);
  if (found != kHardwareEvents.end()) return *found;
  if (name == kPageFaults.name) return kPageFaults;
  throw std::invalid_argument("no CPU counter is called " + name);
}

perf_event_attr attributes(const std::string& name) {
  const Event event = event_of(name);
  perf_event_attr attr{};
  attr.size = sizeof attr;
  attr.type = event.type;
  attr.config = event.config;
  attr.exclude_kernel = 1;  // perf_event_paranoid = 2 allows user space only
  attr.exclude_hv = 1;
  attr.inherit = 1;
  attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
  return attr;
}

std::string reason(const std::string& name, int error) {
  switch (error) {
    case ENOENT:
    case EOPNOTSUPP:
    case ENODEV:
      return fmt::format(
          "this processor offers no counter of {}: a virtual machine shows a PMU only when its "
          "host passes one on; profile.cpu: [cachegrind] simulates the caches instead",
          name);
    case EACCES:
    case EPERM: {
      std::string level = "unknown";
      std::ifstream("/proc/sys/kernel/perf_event_paranoid") >> level;
      return fmt::format(
          "not permitted (kernel.perf_event_paranoid is {}): have root run sysctl -w "
          "kernel.perf_event_paranoid=2, and start a container with --cap-add=PERFMON or a "
          "seccomp profile that allows perf_event_open",
          level);
    }
    case ENOSYS:
      return "this kernel has no perf_event_open";
    case EMFILE:
      return "too many open files for a counter on each thread: raise ulimit -n";
    default:
      return fmt::format("perf_event_open failed for {}: {}", name, std::strerror(error));
  }
}

}  // namespace

std::vector<std::string> hardware_events() {
  std::vector<std::string> names;
  for (const Event& event : kHardwareEvents) names.emplace_back(event.name);
  return names;
}

std::unique_ptr<PerfEvent> PerfEvent::open(const std::string& name, std::string& why_not) {
  perf_event_attr attr = attributes(name);
  // Owns the descriptors from the first one on, so that a failure closes them all.
  std::unique_ptr<PerfEvent> event(new PerfEvent({}));
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    const int thread = std::stoi(task.path().filename());
    const long descriptor =
        syscall(SYS_perf_event_open, &attr, thread, -1, -1, PERF_FLAG_FD_CLOEXEC);
    if (descriptor >= 0) {
      event->descriptors_.push_back(static_cast<int>(descriptor));
    } else if (errno != ESRCH) {  // ESRCH: the thread has ended meanwhile
      why_not = reason(name, errno);
      return nullptr;
    }
  }
  return event;
}

PerfEvent::~PerfEvent() {
  for (const int descriptor : descriptors_) close(descriptor);
}

PerfReading PerfEvent::read() const {
  PerfReading sum{0, 1};
  double enabled = 0, running = 0;
  for (const int descriptor : descriptors_) {
    std::array<std::uint64_t, 3> value{};  // events, time enabled, time running
    if (::read(descriptor, value.data(), sizeof value) != sizeof value)
      throw std::system_error(errno, std::generic_category(), "cannot read a CPU counter");
    if (value[2] > 0)
      sum.events += static_cast<double>(value[0]) * static_cast<double>(value[1]) /
                    static_cast<double>(value[2]);
    enabled += static_cast<double>(value[1]);
    running += static_cast<double>(value[2]);
  }
  if (enabled > 0) sum.share = running / enabled;
  return sum;
}

}  // namespace lloyd::profiling
