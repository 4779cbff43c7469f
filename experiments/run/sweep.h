// Runs a whole sweep, from its spec to the exit status.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "experiments/spec/spec.h"
#include "kernels/core/device.h"

namespace lloyd {

struct RunOptions {
  std::filesystem::path out;     // empty: results/<spec name>/<UTC>-<short hash>
  std::filesystem::path resume;  // empty: a new run
  bool retry_failed = false;
  std::vector<std::string> save;  // the parts of the answers to keep, as in answer_parts()
  int device = 0;
  bool quiet = false;
  bool progress = true;
  bool json = false;
  std::optional<unsigned> locked_mhz;  // the clock that the GPU is locked to
  bool nsys = false, ncu = false;      // run the points once more under the tool
};

/// The points with work left in the run directory `options.resume`, by which nothing is locked or
/// changed. Throws RunDirectoryError if it cannot be read or is of another spec.
std::vector<const Point*> points_left(const Spec& spec, const Overrides& overrides,
                                      const DeviceQuery& gpus, const RunOptions& options);

/// Runs (or resumes) the sweep and writes the run directory. Returns the exit status: 0, 1, or 130
/// if interrupted. Throws RunDirectoryError if the directory cannot be used.
int run_sweep(const Spec& spec, const Overrides& overrides, const DeviceQuery& gpus,
              const RunOptions& options);

}  // namespace lloyd
