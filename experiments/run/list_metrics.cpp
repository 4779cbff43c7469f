#include "experiments/run/list_metrics.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>

#include "experiments/spec/spec.h"
#include "experiments/text/or_null.h"
#include "experiments/text/pattern.h"
#include "experiments/text/terminal.h"
#include "experiments/text/text.h"
#include "profiling/metrics.h"
#include "profiling/subject.h"

namespace lloyd {
namespace {

constexpr int kUsage = 2;

int complain(const std::string& message) {
  std::cerr << "run_experiment: " << message << '\n';
  return kUsage;
}

}  // namespace

int list_metrics(const MetricQuery& query) try {
  const Pattern match(query.match);
  const std::vector<std::string> chips = profiling::known_chips();
  std::string name = query.chip;
  if (name.empty()) {
    const auto present = profiling::chip_of_device(query.device);
    name = present.value_or(profiling::kDefaultChip);
    if (!present)
      std::cerr << fmt::format(
          "no GPU here: these are the counters of {} (--chip names another: {})\n", name,
          join(chips));
  } else if (!contains(chips, name)) {
    return complain(unknown_word("chip", name, chips));
  }

  const profiling::Chip chip(name);
  const Terminal shown = terminal(STDOUT_FILENO);
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const profiling::MetricInfo& metric : chip.metrics()) {
    if (!match.found_in(metric.name) && !match.found_in(metric.description)) continue;
    if (!query.json && shown.width) {
      const std::string unit = metric.unit.empty() ? "" : " [" + metric.unit + "]";
      std::cout << coloured(metric.name, Colour::strong, shown) << ' ' << metric.type << unit
                << '\n'
                << hanging("", 4, metric.description, shown.width);
      continue;
    }
    if (!query.json) {
      std::cout << fmt::format("{:<70} {:<10} {}{}\n", metric.name, metric.type, metric.description,
                               metric.unit.empty() ? "" : " [" + metric.unit + "]");
      continue;
    }
    list.push_back({{"chip", name},
                    {"metric", metric.name},
                    {"type", metric.type},
                    {"unit", or_null(metric.unit)},
                    {"description", or_null(metric.description)},
                    {"sub_metrics", chip.sub_metrics(metric)}});
  }
  if (query.json)
    std::cout << json_text(list, 1) << '\n';
  else
    std::cerr
        << "a counter's name needs one of its sub-metrics, as in dram__bytes.sum; --json lists "
           "them\n";
  return 0;
} catch (const profiling::Unavailable& error) {
  return complain(error.what());
} catch (const Pattern::Error& error) {
  return complain(fmt::format("--match: {}", error.what()));
}

}  // namespace lloyd
