// Lists a chip's counters by CUPTI's Profiler Host API, which needs neither a GPU nor a driver.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace lloyd::profiling {

/// A base metric of CUPTI, such as "dram__bytes". A counter adds a sub-metric: "dram__bytes.sum".
struct MetricInfo {
  std::string name;
  std::string type;         // counter, ratio or throughput
  std::string unit;         // of the base metric, as CUPTI gives it; may be empty
  std::string description;  // may be empty
};

/// The counters of one chip. All strings are CUPTI's own.
class Chip {
 public:
  /// Throws Unavailable when CUPTI is not available or does not know `name`.
  explicit Chip(const std::string& name);
  ~Chip();
  Chip(const Chip&) = delete;

  const std::string& name() const { return name_; }
  /// All metrics in CUPTI's order, except those of its sampling units ("LTS.TriageCompute.…"),
  /// which the range profiler does not have.
  const std::vector<MetricInfo>& metrics() const { return metrics_; }
  /// The suffixes that the metric's name may have: ".sum", ".avg.pct_of_peak_sustained_active", …
  std::vector<std::string> sub_metrics(const MetricInfo& metric) const;
  /// Whether `metric` ("dram__bytes.sum") can be counted.
  bool has(const std::string& metric) const;
  /// Full names that the user may have meant by `metric`, which this chip does not have.
  std::vector<std::string> candidates(const std::string& metric) const;
  /// The unit, such as "byte", "percent" or "inst/cycle"; "" where CUPTI gives none.
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

/// The chip of CUDA device `device`. nullopt without such a device, a driver or CUPTI, or when
/// another profiler is attached to this process.
std::optional<std::string> chip_of_device(int device);

/// The chip that metrics are checked against on a machine without a GPU: that of H100 and H200.
inline constexpr const char* kDefaultChip = "GH100";

struct UnknownMetric {
  std::string problem;                  // "GH100 has no such counter"
  std::vector<std::string> candidates;  // full names that the user may have meant
};
/// Checks `metric` against the chip of CUDA device `device`, or kDefaultChip without a device, and
/// then against all other chips: it is no mistake to name a counter of another chip. Returns
/// nullopt when some chip has the metric, or when CUPTI is not available.
std::optional<UnknownMetric> unknown_metric(const std::string& metric, int device);

}  // namespace lloyd::profiling
