// --list-metrics: the counters that CUPTI knows for a chip.
#pragma once

#include <string>

namespace lloyd {

struct MetricQuery {
  std::string chip;   // empty: that of CUDA device `device`, or the default where there is none
  std::string match;  // regular expression on names and descriptions; empty: all
  int device = 0;
  bool json = false;
};

/// Prints them. The exit status: 2 with one line on standard error for an unknown chip, a bad expression or no CUPTI.
int list_metrics(const MetricQuery& query);

}  // namespace lloyd
