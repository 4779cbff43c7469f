// The input and the result of a profiling pass. Profiling knows nothing about k-means: it runs a
// Subject and observes its ranges.
#pragma once

#include <nlohmann/json.hpp>
#include <stdexcept>
#include <vector>

#include "kernels/core/version.h"

namespace lloyd::profiling {

/// A solve that a profiler can restart as often as it needs.
class Subject {
 public:
  virtual ~Subject() = default;
  /// Creates the version anew and lets it allocate and upload, so that nothing remains of an
  /// earlier run().
  virtual void prepare() = 0;
  /// Runs the loop. Blocks until the device is done.
  virtual void run() = 0;
  virtual void fetch() = 0;
  /// Sets the observer of the following ranges; null: none.
  virtual void observe(RangeObserver* observer) = 0;
  /// The largest number of iterations of one run().
  virtual int iterations() const = 0;
};

/// Rows without point and version, which the harness adds.
struct Profile {
  std::vector<nlohmann::ordered_json> counters;  // phase, kernel, metric … reason (counters.jsonl)
  std::vector<nlohmann::ordered_json> events;    // timeline.jsonl
};

/// This kind of profile is not available here. what() gives the reason and a remedy.
struct Unavailable : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace lloyd::profiling
