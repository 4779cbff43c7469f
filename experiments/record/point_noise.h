// What the rows of a point say about other activity during its samples.
#pragma once

#include <string>
#include <vector>

#include "experiments/record/rows.h"
#include "experiments/record/statistics.h"

namespace lloyd {

/// The part of a sample that the summary of its point needs.
struct SampleNoise {
  double iteration_ms = 0;
  bool noisy = false;
  std::string reason;    // the first reason
  std::string throttle;  // the reason for a throttled GPU clock
};
SampleNoise sample_noise(const Row& row);
/// Says in a few words why the median of a point's samples is unreliable. Empty if no reason is
/// known. A quarter of noisy samples is enough: noisy samples are slow, so the median of all
/// samples is at least the 67th percentile of the quiet ones.
/// `interval`: of the median that is shown.
std::string point_noise(const std::vector<SampleNoise>& samples, const Interval& interval,
                        double max_noise);

}  // namespace lloyd
