// Which counters a chip has, as CUPTI's Profiler Host API tells it: needs neither a GPU nor a driver.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace lloyd::profiling {

struct MetricInfo {
  std::string
      name;  // as CUPTI's base metrics: "dram__bytes"; a counter needs a sub-metric: "dram__bytes.sum"
  std::string type;         // counter, ratio or throughput
  std::string unit;         // of the base metric, as CUPTI says it; may be empty
  std::string description;  // may be empty
};

/// The counters of one chip. All strings are CUPTI's own.
class Chip {
 public:
  /// Throws Unavailable when CUPTI cannot be had or does not know `name`.
  explicit Chip(const std::string& name);
  ~Chip();
  Chip(const Chip&) = delete;

  const std::string& name() const { return name_; }
  /// In CUPTI's order, without the names of its sampling units ("LTS.TriageCompute.…"), which the range profiler has
  /// not.
  const std::vector<MetricInfo>& metrics() const { return metrics_; }
  /// ".sum", ".avg.pct_of_peak_sustained_active" …: what may follow a metric's name.
  std::vector<std::string> sub_metrics(const MetricInfo& metric) const;
  /// Whether `metric` ("dram__bytes.sum") can be counted.
  bool has(const std::string& metric) const;
  /// Full names that may have been meant by `metric`, which the chip has not.
  std::vector<std::string> candidates(const std::string& metric) const;
  /// "byte", "percent", "inst/cycle"; "" where CUPTI names none.
  std::string unit(const std::string& metric) const;

 private:
  const MetricInfo* find(const std::string& base) const;
  struct Host;
  std::string name_;
  std::unique_ptr<Host> host_;
  std::vector<MetricInfo> metrics_;
};

/// The chips whose counters CUPTI knows. Throws Unavailable.
std::vector<std::string> known_chips();

/// The chip of CUDA device `device`; nullopt where there is no such device, driver or CUPTI, or another profiler is
/// attached to this process.
std::optional<std::string> chip_of_device(int device);

/// What a metric is checked against where there is no GPU: the chip of H100 and H200.
inline constexpr const char* kDefaultChip = "GH100";

struct UnknownMetric {
  std::string problem;                  // "GH100 has no such counter"
  std::vector<std::string> candidates;  // full names, one of which may have been meant
};
/// Checks `metric` against the chip of CUDA device `device`, or kDefaultChip where there is none, and then against every
/// other chip: what a chip that is not here has is no mistake. nullopt when some chip has it, or there is no CUPTI to ask.
std::optional<UnknownMetric> unknown_metric(const std::string& metric, int device);

}  // namespace lloyd::profiling
