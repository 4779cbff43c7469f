#include "experiments/spec/axis.h"

#include <fmt/format.h>

#include "data/sources/dataset.h"
#include "experiments/spec/spec.h"
#include "kernels/core/axes.h"

namespace lloyd {
namespace {

std::vector<std::string> precision_names() {
  std::vector<std::string> names;
  for (const Precision precision : kPrecisions) names.emplace_back(to_string(precision));
  return names;
}

}  // namespace

std::vector<Axis> all_axes() {
  std::vector<Axis> axes;
  for (const AxisInfo& axis : kAxes)
    axes.push_back(
        {axis.name, axis.lowest, axis.highest, axis.key != nullptr || axis.gpu, {}, false, false});
  return axes;
}

std::vector<std::string> axis_names() {
  std::vector<std::string> names;
  for (const AxisInfo& axis : kAxes) names.emplace_back(axis.name);
  return names;
}

std::string axis_meaning(const AxisInfo& axis) {
  return axis.key == nullptr ? axis.text : fmt::format("{}; {} unless given", axis.text, axis.key);
}

bool takes_words(std::string_view axis) { return axis == "data" || !axis_words(axis).empty(); }

std::vector<std::string> axis_words(std::string_view axis) {
  if (axis == "precision") return precision_names();
  if (axis == "init") return data::init_methods();
  if (axis == "host_memory") return {kPageable, kPinned};
  return {};
}

std::string value_text(std::string_view axis, std::int64_t number) {
  const std::vector<std::string> words = axis_words(axis);
  return words.empty() ? std::to_string(number) : words.at(static_cast<std::size_t>(number));
}

}  // namespace lloyd
