// --list-metrics prints the counters that CUPTI knows for a chip.
#pragma once

#include <string>

namespace lloyd {

struct MetricQuery {
  std::string chip;   // empty: that of CUDA device `device`, or a default if there is no device
  std::string match;  // regular expression on names and descriptions; empty: all
  int device = 0;
  bool json = false;
};

/// Prints the counters. Returns the exit status. It is 2, with one line on standard error, for an
/// unknown chip, an invalid expression or a missing CUPTI.
int list_metrics(const MetricQuery& query);

}  // namespace lloyd
