// What a profiling pass works on, and what it gives back. Profiling knows nothing of k-means: it gets something that
// runs, and is told of ranges.
#pragma once

#include <nlohmann/json.hpp>
#include <stdexcept>
#include <vector>

#include "kernels/core/version.h"

namespace lloyd::profiling {

/// A solve that can be had again from its start as often as a profiler needs it.
class Subject {
 public:
  virtual ~Subject() = default;
  /// Makes the version anew and lets it allocate and upload: nothing that an earlier run() changed is left.
  virtual void prepare() = 0;
  /// The loop. Blocks until the device is done.
  virtual void run() = 0;
  virtual void fetch() = 0;
  /// Who is told of the ranges of what follows; null: nobody.
  virtual void observe(RangeObserver* observer) = 0;
  /// Of one run(), at most.
  virtual int iterations() const = 0;
};

/// Rows without their point and version, which the harness adds.
struct Profile {
  std::vector<nlohmann::ordered_json> counters;  // phase, kernel, metric … reason (counters.jsonl)
  std::vector<nlohmann::ordered_json> events;    // timeline.jsonl
};

/// This kind of profile cannot be had here; what() says why and what would help.
struct Unavailable : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace lloyd::profiling
