#include "experiments/list_metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>
#include <regex>

#include "experiments/spec.h"
#include "experiments/text.h"
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
  const std::regex match(query.match);
  const std::vector<std::string> chips = profiling::known_chips();
  std::string name = query.chip;
  if (name.empty()) {
    const auto present = profiling::chip_of_device(query.device);
    name = present.value_or(profiling::kDefaultChip);
    if (!present)
      std::cerr << fmt::format(
          "no GPU here: these are the counters of {} (--chip names another: {})\n", name,
          join(chips));
  } else if (std::find(chips.begin(), chips.end(), name) == chips.end()) {
    return complain(unknown_word("chip", name, chips));
  }

  const profiling::Chip chip(name);
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const profiling::MetricInfo& metric : chip.metrics()) {
    if (!std::regex_search(metric.name, match) && !std::regex_search(metric.description, match))
      continue;
    if (!query.json) {
      std::cout << fmt::format("{:<70} {:<10} {}{}\n", metric.name, metric.type, metric.description,
                               metric.unit.empty() ? "" : " [" + metric.unit + "]");
      continue;
    }
    const auto or_null = [](const std::string& text) {
      return text.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(text);
    };
    list.push_back({{"chip", name},
                    {"metric", metric.name},
                    {"type", metric.type},
                    {"unit", or_null(metric.unit)},
                    {"description", or_null(metric.description)},
                    {"sub_metrics", chip.sub_metrics(metric)}});
  }
  if (query.json)
    std::cout << list.dump(1) << '\n';
  else
    std::cerr
        << "a counter's name needs one of its sub-metrics, as in dram__bytes.sum; --json lists "
           "them\n";
  return 0;
} catch (const profiling::Unavailable& error) {
  return complain(error.what());
} catch (const std::regex_error& error) {
  return complain(fmt::format("--match: {} is not a regular expression: {}", in_quotes(query.match),
                              error.what()));
}

}  // namespace lloyd
