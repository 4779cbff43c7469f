// What the rows of a point say together.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "experiments/record/point_noise.h"
#include "experiments/record/rows.h"
#include "experiments/record/statistics.h"
#include "experiments/spec/spec.h"

namespace lloyd {

struct PointResult {
  // Samples by launch, or by restart if there are several.
  using Samples = std::map<int, std::vector<double>>;
  std::string status, reason;
  std::string place, gpu, card;  // gpu: its model, card: its UUID; or empty
  Samples iteration_ms, solve_ms, end_to_end_ms;
  std::map<int, double> restarts;  // the least inertia of each; empty without restarts
  std::vector<SampleNoise> noise;
  std::vector<int> iterations;
  std::vector<double> inertia;
  bool oversubscribed = false;
  bool on_cpu = false;
  bool on_node = false;  // the place is a node, not a host
  bool verified = true;  // each sample

  Interval interval() const { return interval_of(iteration_ms); }
  static Interval interval_of(const Samples& samples);
};

/// The results of all points that have rows, by their ids.
std::map<std::string, PointResult> results_of(const Spec& spec,
                                              const std::vector<Row>& measurements);

}  // namespace lloyd
