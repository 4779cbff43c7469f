// CUPTI's range profiler. CUPTI decides how often the subject must run, and each run starts with a
// new prepare(). Compiled only in a build with CUDA.
#pragma once

#include <cuda.h>

#include <string>
#include <vector>

#include "profiling/cupti.h"
#include "profiling/subject.h"

namespace lloyd::profiling {

/// What a range is: each phase of the subject, or each kernel that it launches.
enum class Ranges { phases, kernels };

struct RangeValues {
  std::vector<std::string> names;           // phases: see below; kernels: CUPTI's numbers
  std::vector<std::vector<double>> values;  // by range, then by metric
  std::size_t passes = 0;                   // runs of the subject
};

/// `metrics` are full names of metrics that `chip` has. A run has `expected` ranges, nested up to
/// `depth` levels. The third call of a phase is the range "phase#2". Throws Unavailable.
RangeValues profile_ranges(const Cupti& cupti, CUcontext context, const std::string& chip,
                           const std::vector<std::string>& metrics, Ranges ranges,
                           std::size_t expected, std::size_t depth, Subject& subject);

}  // namespace lloyd::profiling
