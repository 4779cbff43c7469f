// A preset is a question about a kernel, with the counters of a chip that answer it.
// profiling/README.md has the table.
#pragma once

#include <string>
#include <vector>

#include "profiling/metrics.h"

namespace lloyd::profiling {

/// The names of the presets, in the order in which they are listed.
const std::vector<std::string>& presets();

struct PresetMetrics {
  std::vector<std::string> metrics;  // full names that this chip has
  std::vector<std::string> missing;  // metrics that this chip lacks
};
/// `preset` must be one of presets().
PresetMetrics metrics_of(const std::string& preset, const Chip& chip);

/// A weighted sum of counters.
struct Derived {
  std::string name;  // "flop_fp32"
  std::string unit;
  struct Term {
    std::string metric;
    double factor;
  };
  std::vector<Term> terms;
};
/// The quantities that `preset` computes from its counters. Only "roofline" has some:
/// floating-point operations by precision, and separately those of the tensor cores.
std::vector<Derived> derived_of(const std::string& preset, const Chip& chip);

}  // namespace lloyd::profiling
