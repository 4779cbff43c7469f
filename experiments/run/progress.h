// Prints the progress of a run.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "experiments/measure/noise.h"
#include "experiments/measure/session.h"
#include "experiments/record/run_directory.h"
#include "experiments/spec/spec.h"

namespace lloyd {

/// Prints one line for each point. On a terminal, a last line shows how far the run is.
class Progress {
 public:
  Progress(std::size_t total, bool quiet, bool live);
  ~Progress();
  Progress(const Progress&) = delete;

  void begin(const Point& point);
  void end(const std::string& what, const std::string& result, int points = 1);
  /// Prints a message that is not the result of a point.
  void note(const std::string& text);

 private:
  std::size_t total_, done_ = 0;
  int measured_ = 0;
  bool quiet_, live_;
  double started_ = now_ms();
};

/// The median of the samples with its interval, their number, and what disturbed them.
std::string result_text(const std::vector<TakenSample>& samples, double max_noise);

}  // namespace lloyd
