// CUPTI's range profiler over a subject that can be run again: how often it must run is CUPTI's to say, and each run starts
// from a new prepare(). Only in a build with CUDA.
#pragma once

#include <cuda.h>

#include <string>
#include <vector>

#include "profiling/cupti.h"
#include "profiling/subject.h"

namespace lloyd::profiling {

/// What counts as a range: each phase of the subject, or each kernel that it launches.
enum class Ranges { phases, kernels };

struct RangeValues {
  std::vector<std::string> names;  // phases: as given; kernels: CUPTI's own, which are numbers
  std::vector<std::vector<double>> values;  // by range, then in the order of the metrics
  std::size_t passes = 0;                   // runs of the subject
};

/// `metrics` are full names that `chip` has; `expected` ranges come in a run, nested up to `depth`. A phase that begins
/// for the third time is the range "phase#2". Throws Unavailable.
RangeValues profile_ranges(const Cupti& cupti, CUcontext context, const std::string& chip,
                           const std::vector<std::string>& metrics, Ranges ranges,
                           std::size_t expected, std::size_t depth, Subject& subject);

}  // namespace lloyd::profiling
