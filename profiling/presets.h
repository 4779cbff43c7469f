// Presets: a question about a kernel, and the counters of a chip that answer it. profiling/README.md has the table.
#pragma once

#include <string>
#include <vector>

#include "profiling/metrics.h"

namespace lloyd::profiling {

/// Names, in the order in which they are told.
const std::vector<std::string>& presets();

struct PresetMetrics {
  std::vector<std::string> metrics;  // full names that this chip has
  std::vector<std::string> missing;  // what the chip has under no name
};
/// `preset` must be one of presets().
PresetMetrics metrics_of(const std::string& preset, const Chip& chip);

/// A quantity that is a sum of counters, each times a factor.
struct Derived {
  std::string name;  // "flop_fp32"
  std::string unit;
  struct Term {
    std::string metric;
    double factor;
  };
  std::vector<Term> terms;
};
/// What `preset` tells beside its counters: the floating-point operations of "roofline", with the tensor cores' apart.
std::vector<Derived> derived_of(const std::string& preset, const Chip& chip);

}  // namespace lloyd::profiling
