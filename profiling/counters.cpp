#include "profiling/counters.h"

#if LLOYD_CUDA
#include <cupti_profiler_target.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "kernels/core/status.h"
#include "profiling/driver.h"
#include "profiling/launches.h"
#include "profiling/metrics.h"
#include "profiling/occupancy.h"
#include "profiling/presets.h"
#include "profiling/range_profiler.h"
#include "profiling/row.h"
#endif

namespace lloyd::profiling {

#if LLOYD_CUDA
namespace {

// The counter data of this many ranges take about 100 MB, and replaying them takes minutes. A solve
// that launches more kernels in its profiled iterations is counted per phase only.
constexpr std::size_t kMostRanges = 2000;

struct Asked {
  std::string preset;  // "" for a metric requested by its own name
  std::vector<std::string> metrics, missing;
  std::vector<Derived> derived;
};

std::vector<Asked> resolve(const std::vector<std::string>& wanted, const Chip& chip) {
  std::vector<Asked> all;
  for (const std::string& word : wanted) {
    if (std::find(presets().begin(), presets().end(), word) != presets().end()) {
      PresetMetrics metrics = metrics_of(word, chip);
      all.push_back({word, metrics.metrics, metrics.missing, derived_of(word, chip)});
    } else if (chip.has(word)) {
      all.push_back({"", {word}, {}, {}});
    } else {
      all.push_back({"", {}, {word}, {}});
    }
  }
  return all;
}

// Ranges whose mean is reported: all calls of a phase, or all launches of a kernel in a phase.
struct Group {
  std::string phase, kernel;
  std::vector<std::size_t> ranges;
  const Launch* launch = nullptr;  // a kernel's first launch; null for a phase
};

// Skips phases that launch nothing: copies have no counters.
std::vector<Group> phase_groups(const std::vector<std::string>& names,
                                const std::set<std::string>& launching) {
  std::vector<Group> groups;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string leaf = names[i].substr(names[i].rfind('/') + 1);
    const std::string phase = leaf.substr(0, leaf.rfind('#'));
    if (!launching.contains(phase)) continue;
    auto at = std::find_if(groups.begin(), groups.end(),
                           [&](const Group& group) { return group.phase == phase; });
    if (at == groups.end()) at = groups.insert(groups.end(), {phase, "", {}, nullptr});
    at->ranges.push_back(i);
  }
  return groups;
}

std::vector<Group> kernel_groups(const std::vector<Launch>& launches) {
  std::vector<Group> groups;
  for (std::size_t i = 0; i < launches.size(); ++i) {
    const Launch& launch = launches[i];
    auto at = std::find_if(groups.begin(), groups.end(), [&](const Group& group) {
      return group.phase == launch.phase && group.kernel == launch.kernel;
    });
    if (at == groups.end())
      at = groups.insert(groups.end(), {launch.phase, launch.kernel, {}, &launch});
    at->ranges.push_back(i);
  }
  return groups;
}

class Counting {
 public:
  Counting(const Chip& chip, std::vector<Asked> asked, int iterations)
      : chip_(chip), asked_(std::move(asked)), iterations_(iterations) {
    for (const Asked& one : asked_)
      for (const std::string& metric : one.metrics)
        if (index_.emplace(metric, metrics_.size()).second) metrics_.push_back(metric);
  }

  const std::vector<std::string>& metrics() const { return metrics_; }
  std::vector<Row> take() { return std::move(rows_); }

  void missing() {
    for (const Asked& asked : asked_)
      for (const std::string& metric : asked.missing)
        add({}, metric, asked.preset, Row(nullptr),
            fmt::format("{} has no such counter", chip_.name()));
  }

  /// Adds rows without values for metrics that were not counted, for example because CUPTI cannot
  /// tell the kernels apart.
  void uncounted(const std::string& reason) {
    for (const Asked& asked : asked_)
      for (const std::string& metric : asked.metrics)
        add({}, metric, asked.preset, Row(nullptr), reason);
  }

  void counted(const std::vector<Group>& groups, const RangeValues& values) {
    const auto add_counted = [&](const Group& group, const std::string& metric,
                                 const std::string& preset, double value, const std::string& unit) {
      Row& row = add_number(group, metric, preset, value, unit);
      row["passes"] = values.passes;
      row["replay"] = "user";
    };
    for (const Group& group : groups) {
      std::map<std::string, double> means;
      for (const std::string& metric : metrics_) {
        double sum = 0;
        for (const std::size_t range : group.ranges)
          sum += values.values.at(range).at(index_.at(metric));
        means[metric] = sum / static_cast<double>(group.ranges.size());
      }
      for (const Asked& asked : asked_) {
        for (const std::string& metric : asked.metrics)
          add_counted(group, metric, asked.preset, means.at(metric), chip_.unit(metric));
        for (const Derived& derived : asked.derived) {
          double sum = 0;
          for (const Derived::Term& term : derived.terms)
            sum += term.factor * means.at(term.metric);
          add_counted(group, derived.name, asked.preset, sum, derived.unit);
        }
        if (asked.preset == "occupancy" && group.launch != nullptr) add_theory(group);
      }
    }
  }

 private:
  Row& add(const Group& group, const std::string& metric, const std::string& preset, Row value,
           const std::string& reason, const std::string& unit = "") {
    Row row;
    row["phase"] = text_or_null(group.phase);
    row["kernel"] = text_or_null(group.kernel);
    row["metric"] = metric;
    row["preset"] = text_or_null(preset);
    row["value"] = std::move(value);
    row["unit"] = text_or_null(unit);
    for (const char* field : {"passes", "replay"}) row[field] = nullptr;  // of a counted value
    row["status"] = reason.empty() ? status::ok : status::unsupported;
    row["reason"] = text_or_null(reason);
    row["calls"] = group.ranges.empty() ? Row(nullptr) : Row(group.ranges.size());
    row["iterations"] = iterations_;
    rows_.push_back(std::move(row));
    return rows_.back();
  }

  Row& add_number(const Group& group, const std::string& metric, const std::string& preset,
                  double value, const std::string& unit) {
    if (std::isfinite(value)) return add(group, metric, preset, value, "", unit);
    return add(group, metric, preset, Row(nullptr),
               "CUPTI gives no number: nothing happened that it could be a share of, or a MIG "
               "slice shares the unit",
               unit);
  }

  // Adds the occupancy that the launch could reach. The driver's occupancy function computes it, so
  // it needs no profiling pass.
  void add_theory(const Group& group) {
    const Launch& launch = *group.launch;
    const auto number = [&](const char* name, auto value, const char* unit) -> Row& {
      return add(group, name, "occupancy", Row(value), "", unit);
    };
    const auto product = [](const std::array<unsigned, 3>& n) {
      return std::size_t{n[0]} * n[1] * n[2];
    };
    number("launch_blocks", product(launch.grid), "block");
    number("launch_threads_per_block", product(launch.block), "thread");
    if (const auto occupancy = occupancy_of(launch)) {
      number("launch_registers_per_thread", occupancy->registers_per_thread, "register");
      number("launch_shared_bytes_per_block",
             static_cast<std::size_t>(occupancy->static_shared_bytes) + launch.dynamic_shared_bytes,
             "byte");
      number("theoretical_blocks_per_multiprocessor", occupancy->blocks, "block");
      number("theoretical_occupancy", occupancy->percent, "percent")["limiter"] =
          occupancy->limiter;
    } else {
      add(group, "theoretical_occupancy", "occupancy", Row(nullptr),
          "the driver does not report this kernel's resources", "percent");
    }
  }

  const Chip& chip_;
  std::vector<Asked> asked_;
  int iterations_;
  std::vector<std::string> metrics_;
  std::map<std::string, std::size_t> index_;
  std::vector<Row> rows_;
};

std::string chip_or_reason(const Cupti& cupti, int device) {
  CUpti_Profiler_Initialize_Params params{};
  params.structSize = CUpti_Profiler_Initialize_Params_STRUCT_SIZE;
  cupti.call("cuptiProfilerInitialize", &params);
  if (const auto chip = chip_of_device(device)) return *chip;
  throw Unavailable(fmt::format("CUPTI {} does not name the chip of device {} ({})",
                                cupti.version(), device, driver_version()));
}

}  // namespace

Profile count(Subject& subject, const std::vector<std::string>& wanted, int device) {
  const Cupti& cupti = Cupti::open();
  const Chip chip(chip_or_reason(cupti, device));
  Counting counting(chip, resolve(wanted, chip), subject.iterations());
  counting.missing();
  if (counting.metrics().empty()) return {counting.take(), {}};

  CUcontext context = nullptr;
  driver_call("cuCtxGetCurrent", &context);
  subject.prepare();
  const Launches launches = record_launches(cupti, subject);
  // CUPTI 13.0 counted no instructions in a graph's kernels, which would be a wrong result, and
  // left the context broken.
  if (launches.graphs > 0)
    throw Unavailable(fmt::format(
        "{} launches of CUDA graphs in {} iterations: CUPTI does not count what kernels "
        "of a graph do",
        launches.graphs, subject.iterations()));
  if (launches.kernels.empty())
    throw Unavailable(
        "no kernel was launched in this process; what a version runs in a process of its own is "
        "beyond CUPTI's reach");

  if (!launches.phases.empty()) {
    const std::size_t depth = std::max<std::size_t>(launches.depth, 1);
    const RangeValues values =
        profile_ranges(cupti, context, chip.name(), counting.metrics(), Ranges::phases,
                       launches.ranges.size(), depth, subject);
    counting.counted(phase_groups(values.names, launches.phases), values);
  }

  const std::size_t kernels = launches.kernels.size();
  if (kernels > kMostRanges) {
    counting.uncounted(
        fmt::format("more ranges than fit: {} kernels in {} iterations, but at most {} "
                    "can be told apart",
                    kernels, subject.iterations(), kMostRanges));
  } else {
    const RangeValues values = profile_ranges(cupti, context, chip.name(), counting.metrics(),
                                              Ranges::kernels, kernels, 1, subject);
    if (values.names.size() == kernels)
      counting.counted(kernel_groups(launches.kernels), values);
    else
      counting.uncounted(
          fmt::format("kernels have no names: {} were launched, CUPTI counted "
                      "{} ranges",
                      kernels, values.names.size()));
  }
  return {counting.take(), {}};
}
#else
Profile count(Subject&, const std::vector<std::string>&, int) {
  throw Unavailable("built without CUDA (configure with -DLLOYD_CUDA=ON)");
}
#endif

}  // namespace lloyd::profiling
