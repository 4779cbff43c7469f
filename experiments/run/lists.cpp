#include "experiments/run/lists.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>

#include "experiments/run/launch.h"
#include "experiments/spec/plan.h"
#include "experiments/text/json_list.h"
#include "experiments/text/text.h"
#include "kernels/core/axes.h"
#include "profiling/doctor.h"

namespace lloyd {

void print_dry_run(const Spec& spec, bool json) {
  if (json) {
    JsonList list(std::cout);
    for (const Point& point : spec.points) list.add(to_json(point));
    return;
  }
  std::size_t width = 5, runnable = 0;
  for (const Point& point : spec.points) {
    width = std::max(width, point.id.size());
    runnable += point.available;
  }
  std::cout << fmt::format("{:<{}}  runnable here\n", "point", width);
  for (const Point& point : spec.points)
    fmt::print("{:<{}}  {}\n", point.id, width,
               point.available ? "yes" : "no: " + for_terminal(point.reason));
  std::cout << fmt::format("\n{} points, {} runnable here\n", spec.points.size(), runnable);
}

void list_versions(const DeviceQuery& gpus, int device, bool json) {
  using Json = nlohmann::ordered_json;
  const auto or_null = [](const std::string& text) {
    return text.empty() ? Json(nullptr) : Json(text);
  };
  Json list = Json::array();
  for (const RegisteredVersion& version : versions()) {
    const VersionInfo& info = version.info;
    std::string reason = unavailable_here(version);
    if (reason.empty() && info.backend == Backend::cuda &&
        static_cast<std::size_t>(device) >= gpus.devices.size())
      reason = gpus.devices.empty() ? gpus.problem
                                    : fmt::format("no CUDA device {}: this machine has {}", device,
                                                  gpus.devices.size());
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
  if (json) {
    std::cout << json_text(list, 1) << '\n';
    return;
  }
  for (const auto& v : list)
    std::cout << fmt::format("{:<28} {}{}{}\n", v.at("name").get<std::string>(),
                             for_terminal(v.at("summary").get<std::string>()),
                             v.at("reproducible").get<bool>() ? " [reproducible]" : "",
                             v.at("available").get<bool>()
                                 ? ""
                                 : fmt::format("\n{:29}not here: {}", "",
                                               for_terminal(v.at("reason").get<std::string>())));
}

void list_axes(bool json) {
  using Json = nlohmann::ordered_json;
  Json list = Json::array();
  for (const AxisInfo& axis : kAxes) {
    Json values = nullptr;
    const bool words = axis.name == std::string_view("precision");
    if (words)
      for (std::int64_t number = axis.lowest; number <= axis.highest; ++number)
        values.push_back(value_text(axis.name, number));
    Json by_default = nullptr;
    if (axis.default_value == kCores)
      by_default = "cores";
    else if (words)
      by_default = value_text(axis.name, axis.default_value);
    else if (axis.default_value != kNoDefault)
      by_default = axis.default_value;
    list.push_back(
        {{"axis", axis.name},
         {"default", by_default},
         {"lowest", words ? Json(nullptr) : Json(axis.lowest)},
         {"highest", words ? Json(nullptr) : Json(axis.highest)},
         {"values", values},
         {"read_by", axis.tunable == nullptr ? "every version" : "versions that list it"},
         {"text", axis.text}});
  }
  if (json) {
    std::cout << json_text(list, 1) << '\n';
    return;
  }
  const auto text = [](const Json& value) {
    return value.is_null()     ? std::string("-")
           : value.is_string() ? value.get<std::string>()
                               : value.dump();
  };
  std::cout << fmt::format("{:<19} {:<8} {:<28} {}\n", "axis", "default", "values", "meaning");
  for (const Json& axis : list) {
    std::string range = text(axis.at("lowest")) + " to " + text(axis.at("highest"));
    if (!axis.at("values").is_null())
      range = join(axis.at("values").get<std::vector<std::string>>());
    std::cout << fmt::format("{:<19} {:<8} {:<28} {}\n", text(axis.at("axis")),
                             text(axis.at("default")), range, text(axis.at("text")));
  }
}

void print_doctor(const DeviceQuery& gpus, int device, bool json) {
  using Json = nlohmann::ordered_json;
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
                      {"remedy", check.remedy.empty() ? Json(nullptr) : Json(check.remedy)}});
    std::cout << json_text(list, 1) << '\n';
    return;
  }
  const bool colours = isatty(STDOUT_FILENO) && std::getenv("NO_COLOR") == nullptr;
  for (const profiling::Check& check : checks) {
    const char* colour = check.health == Health::ok     ? "\033[32m"
                         : check.health == Health::warn ? "\033[33m"
                                                        : "\033[31m";
    std::cout << fmt::format("{}{:<8}{} {:<12} {}\n", colours ? colour : "", word(check.health),
                             colours ? "\033[0m" : "", check.name, for_terminal(check.detail));
    if (!check.remedy.empty())
      std::cout << std::string(22, ' ') << "-> " << for_terminal(check.remedy) << '\n';
  }
}

}  // namespace lloyd
