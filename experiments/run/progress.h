// Prints the progress of a run.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "experiments/record/parameters.h"
#include "experiments/record/run_directory.h"
#include "experiments/run/forecast.h"
#include "experiments/run/task.h"
#include "experiments/spec/spec.h"
#include "experiments/text/terminal.h"

namespace lloyd {

/// Prints a line on standard error for each result, and on a terminal a last line that says how far
/// the run is. On a terminal the lines leave out what all points share.
class Progress {
 public:
  /// `live`: whether a terminal gets the last line.
  Progress(const Spec& spec, const std::vector<Task>& tasks, bool quiet, bool live);
  ~Progress();
  Progress(const Progress&) = delete;

  /// What the lines call a point: its id, on a terminal without what all points share.
  std::string name(const Point& point) const;
  void begin(const Point& point);
  /// The end of a point's launch. `launch`: "launch 2 of 3", or empty. `results`: how many results
  /// are no longer to take.
  void end(const Point& point, const std::string& launch, const std::string& status,
           const std::string& text, std::size_t results = 1);
  /// The end of points that cannot run.
  void skip(const std::string& what, const std::string& status, const std::string& reason,
            std::size_t results);
  /// Prints something that is not the end of a point.
  void note(const std::string& text);

 private:
  void print(const std::string& what, const std::string& status, const std::string& text);
  void clear_live_line() const;

  Terminal terminal_;
  bool quiet_, live_;
  Parameters parameters_;
  Forecast forecast_;
  std::size_t total_ = 0, done_ = 0;
  double last_end_ms_;
};

/// The median of the samples with its interval, how many there are and what disturbed them.
std::string result_text(const std::vector<TakenSample>& samples, double max_noise);

}  // namespace lloyd
