#include "experiments/run/lists.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>

#include "experiments/process/program_files.h"
#include "experiments/record/missing.h"
#include "experiments/record/parameters.h"
#include "experiments/record/rows.h"
#include "experiments/run/launch.h"
#include "experiments/spec/axis.h"
#include "experiments/spec/keys.h"
#include "experiments/spec/shard.h"
#include "experiments/text/json_list.h"
#include "experiments/text/or_null.h"
#include "experiments/text/table.h"
#include "experiments/text/text.h"
#include "kernels/core/axes.h"
#include "profiling/doctor.h"

namespace lloyd {
namespace {

using Json = nlohmann::ordered_json;
using Points = std::vector<const Point*>;

/// A line for each point, with its id, as other programs want it.
std::string plan_lines(const Points& points) {
  std::size_t width = 5;
  for (const Point* point : points) width = std::max(width, point->id.size());
  std::string text = fmt::format("{:<{}}  runnable here\n", "point", width);
  for (const Point* point : points)
    text += fmt::format("{:<{}}  {}\n", point->id, width,
                        point->available ? "yes" : "no: " + for_terminal(point->reason));
  return text;
}

/// A table for a person: what all points share once, and each reason once.
std::string plan_table(const Points& points, const Terminal& shown) {
  std::vector<std::string> ids;
  for (const Point* point : points) ids.push_back(point->id);
  const Parameters parameters(ids);
  std::vector<Table::Column> columns{{"version"}};
  for (const std::string& name : parameters.varying()) columns.push_back({name, true});
  columns.push_back({"runnable here"});
  Table table(std::move(columns));
  std::vector<Missing> missing;
  for (const Point* each : points) {
    const Point& point = *each;
    std::vector<Table::Cell> cells{{point.version}};
    for (const std::string& name : parameters.varying())
      cells.push_back({Parameters::value(point.id, name)});
    const std::string here = point.available ? "yes" : "no";
    cells.push_back({here, colour_of(here)});
    table.add(std::move(cells));
    if (!point.available)
      missing.push_back({here, point.version, parameters.name(point.id), point.reason});
  }
  std::string text;
  if (!parameters.shared().empty())
    text += hanging("", 0, "all points: " + parameters.shared(), shown.width);
  text += table.text(shown) + (missing.empty() ? "" : "\n") + missing_text(missing, shown);
  return text + '\n' + hanging("", 0, "--filter looks at ids, such as " + ids.front(), shown.width);
}

/// A point as --json prints it, with what its rows will say of the data.
nlohmann::json planned_json(const Point& point, const data::Sources& sources) {
  nlohmann::json planned = to_json(point);
  planned["data"] = point.source(sources).describe();
  planned["data_part"] = or_null<nlohmann::json>(data_part(point, point.extent(sources)));
  return planned;
}

/// The versions as --json prints them, with whether they can run here.
Json versions_json(const DeviceQuery& gpus, int device) {
  Json list = Json::array();
  for (const RegisteredVersion& version : versions()) {
    const VersionInfo& info = version.info;
    std::string reason = unavailable_here(version);
    if (reason.empty() && info.backend == Backend::cuda && gpus.find(device) == nullptr)
      reason = gpus.why_no(device);
    list.push_back({{"name", info.name},
                    {"family", info.family},
                    {"backend", to_string(info.backend)},
                    {"parent", or_null(info.parent)},
                    {"axes", info.axes},
                    {"reproducible", info.reproducible},
                    {"study", or_null(info.study)},
                    {"summary", info.summary},
                    {"available", reason.empty()},
                    {"reason", or_null(reason)}});
  }
  return list;
}

/// The axes as --json prints them.
Json axes_json() {
  Json list = Json::array();
  for (const AxisInfo& axis : kAxes) {
    const std::vector<std::string> values = axis_words(axis.name);
    const bool words = takes_words(axis.name);
    Json by_default = nullptr;
    if (axis.key != nullptr)
      by_default = default_of(key_at(axis.key));
    else if (defaults_to_cores(axis))
      by_default = "cores";
    else if (!values.empty())
      by_default = value_text(axis.name, axis.default_value);
    else if (axis.default_value != kNoDefault)
      by_default = axis.default_value;
    list.push_back({{"axis", axis.name},
                    {"default", by_default},
                    {"lowest", words ? Json(nullptr) : Json(axis.lowest)},
                    {"highest", words ? Json(nullptr) : Json(axis.highest)},
                    {"values", values.empty() ? Json(nullptr) : Json(values)},
                    {"read_by", axis.gpu                  ? "versions on a GPU in this process"
                                : axis.tunable == nullptr ? "every version"
                                                          : "versions that list it"},
                    {"text", axis_meaning(axis)}});
  }
  return list;
}

void print_json(const Json& list) { std::cout << json_text(list, 1) << '\n'; }

}  // namespace

void print_dry_run(const Spec& spec, const std::optional<Points>& left, bool json) {
  Points points;
  if (left)
    points = *left;
  else
    for (const Point& point : spec.points) points.push_back(&point);
  if (json) {
    JsonList list(std::cout);
    for (const Point* point : points) list.add(planned_json(*point, spec.data));
    return;
  }
  const Terminal shown = terminal(STDOUT_FILENO);
  if (!points.empty())
    std::cout << (shown.width ? plan_table(points, shown) : plan_lines(points)) << '\n';
  const std::string part =
      spec.shard ? fmt::format(" of {} in part {}", spec.sweep.size(), to_string(*spec.shard)) : "";
  const std::string all = counted(spec.points.size(), "point") + part;
  std::cout << fmt::format("{}, {} runnable here\n",
                           left ? fmt::format("{} left of {}", points.size(), all) : all,
                           std::ranges::count_if(points, &Point::available));
}

void list_versions(const DeviceQuery& gpus, int device, bool json) {
  const Json list = versions_json(gpus, device);
  if (json) return print_json(list);
  const Terminal shown = terminal(STDOUT_FILENO);
  Table table({{"version"}, {"here"}, {"summary"}});
  std::vector<Missing> missing;
  for (const Json& version : list) {
    const auto name = version.at("name").get<std::string>();
    const bool available = version.at("available");
    const std::string here = available ? "yes" : "no";
    table.add({{name},
               {here, colour_of(here)},
               {for_terminal(version.at("summary").get<std::string>()) +
                (version.at("reproducible") == true ? " [reproducible]" : "")}});
    if (!available) missing.push_back({here, name, "", version.at("reason").get<std::string>()});
  }
  std::cout << table.text(shown) << (missing.empty() ? "" : "\n") << missing_text(missing, shown);
}

void list_axes(bool json) {
  const Json list = axes_json();
  if (json) return print_json(list);
  const auto text = [](const Json& value) {
    return value.is_null()     ? std::string("-")
           : value.is_string() ? value.get<std::string>()
                               : value.dump();
  };
  Table table({{"axis"}, {"default"}, {"values"}, {"meaning"}});
  for (const Json& axis : list) {
    std::string range = "-";
    if (!axis.at("lowest").is_null())
      range = text(axis.at("lowest")) + " to " + text(axis.at("highest"));
    if (!axis.at("values").is_null())
      range = join(axis.at("values").get<std::vector<std::string>>());
    table.add({{text(axis.at("axis"))},
               {text(axis.at("default"))},
               {std::move(range)},
               {text(axis.at("text"))}});
  }
  std::cout << table.text(terminal(STDOUT_FILENO));
}

void print_doctor(const DeviceQuery& gpus, int device, bool json) {
  using profiling::Health;
  const std::vector<profiling::Check> checks = profiling::examine(gpus, device, home_directory());
  const auto word = [](Health health) {
    return health == Health::ok ? "ok" : health == Health::warn ? "warn" : "missing";
  };
  if (json) {
    Json list = Json::array();
    for (const profiling::Check& check : checks)
      list.push_back({{"check", check.name},
                      {"status", word(check.health)},
                      {"detail", check.detail},
                      {"remedy", or_null(check.remedy)}});
    print_json(list);
    return;
  }
  constexpr std::size_t kIndent = 22;
  const Terminal shown = terminal(STDOUT_FILENO);
  for (const profiling::Check& check : checks) {
    const std::string status = word(check.health);
    const std::string lines = hanging(fmt::format("{:<8} {}", status, check.name), kIndent,
                                      for_terminal(check.detail), shown.width);
    std::cout << coloured(status, colour_of(status), shown) << lines.substr(status.size());
    if (!check.remedy.empty())
      std::cout << hanging("", kIndent, "-> " + for_terminal(check.remedy), shown.width);
  }
}

}  // namespace lloyd
