// What answers to a problem are compared with.
#pragma once

#include "experiments/measure/checked_points.h"
#include "experiments/measure/expected_run.h"
#include "kernels/core/reference.h"

namespace lloyd {

struct Oracle {
  const CheckedPoints& points;
  Reference& reference;    // of these points
  const ExpectedRun* run;  // with the spread for the version's distance; null for a sample
};

}  // namespace lloyd
