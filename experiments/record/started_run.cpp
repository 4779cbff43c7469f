#include "experiments/record/started_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <type_traits>

#include "experiments/record/answers.h"
#include "experiments/record/run_directory.h"
#include "experiments/record/run_files.h"
#include "experiments/spec/shard.h"
#include "experiments/text/text.h"

namespace lloyd {
namespace {

/// A value has the wrong type. A conversion would change it or fail.
struct WrongValue : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The overrides that have a value only if they were given, each with its name.
template <typename Visit>
void for_each_optional(Visit visit) {
  visit("repetitions", &Overrides::repetitions);
  visit("warmup", &Overrides::warmup);
  visit("timeout", &Overrides::timeout);
  visit("seed", &Overrides::seed);
  visit("shuffle", &Overrides::shuffle);
  visit("profile", &Overrides::profile);
}

template <typename Value>
void read_override(const nlohmann::json& json, const char* key, std::optional<Value>& value) {
  if (!json.contains(key)) return;
  const nlohmann::json& given = json.at(key);
  if constexpr (std::is_same_v<Value, int>) {
    value = as_int(given);
    if (!value) throw WrongValue(fmt::format("{} is not a whole number", key));
    return;
  } else if constexpr (std::is_same_v<Value, std::uint64_t>) {
    if (!given.is_number_unsigned()) throw WrongValue(fmt::format("{} is not a seed", key));
  } else if constexpr (std::is_same_v<Value, double>) {
    if (!given.is_number()) throw WrongValue(fmt::format("{} is not a number", key));
  }
  value = given.get<Value>();
}

Overrides overrides_from_json(const nlohmann::json& json) {
  Overrides o;
  o.set = json.at("set").get<std::vector<std::string>>();
  o.only = json.at("only").get<std::vector<std::string>>();
  o.filter = json.at("filter").get<std::string>();
  for_each_optional([&](const char* name, auto member) { read_override(json, name, o.*member); });
  return o;
}

std::vector<std::string> known_parts(const nlohmann::json& json) {
  std::vector<std::string> parts = json;
  for (const std::string& part : parts)
    if (!contains(answer_parts(), part))
      throw WrongValue(fmt::format("save has {}", in_quotes(part)));
  return parts;
}

}  // namespace

nlohmann::json to_json(const Overrides& o) {
  nlohmann::json json = {{"set", o.set}, {"only", o.only}, {"filter", o.filter}};
  for_each_optional([&](const char* name, auto member) {
    if (o.*member) json[name] = *(o.*member);
  });
  return json;
}

Overrides resumed_overrides(const Overrides& started, const Overrides& given) {
  Overrides all = given;
  const auto axis_of = [](const std::string& option) { return option.substr(0, option.find('=')); };
  const auto is_given = [&](const std::string& option) {
    return std::ranges::find(given.set, axis_of(option), axis_of) != given.set.end();
  };
  all.set.clear();
  std::ranges::remove_copy_if(started.set, std::back_inserter(all.set), is_given);
  all.set.insert(all.set.end(), given.set.begin(), given.set.end());
  if (all.only.empty()) all.only = started.only;
  if (all.filter.empty()) all.filter = started.filter;
  for_each_optional([&](const char*, auto member) {
    if (!(all.*member)) all.*member = started.*member;
  });
  return all;
}

std::vector<std::string> changed_options(const Overrides& started, const Overrides& now) {
  const nlohmann::json was = to_json(started), is = to_json(now);
  std::vector<std::string> options;
  for (const auto& [key, value] : is.items())
    if (!was.contains(key) || was.at(key) != value)
      options.push_back((value == false ? "--no-" : "--") + key);
  return options;
}

StartedRun started_run(const std::filesystem::path& directory) {
  const nlohmann::json plan = RunDirectory::plan_of(directory);
  const auto damaged = [&](const std::string& how) {
    return RunDirectoryError(fmt::format("{}: is damaged ({}); start a new run",
                                         (directory / run_files::kPlan).string(), how));
  };
  try {
    StartedRun run;
    run.spec = plan.at("spec").get<std::string>();
    if (plan.contains("files")) run.files = plan.at("files").get<FoundFiles>();
    run.overrides = overrides_from_json(plan.at("overrides"));
    if (plan.contains("save")) run.save = known_parts(plan.at("save"));
    if (plan.contains("shard")) {
      run.shard = parse_shard(plan.at("shard").get<std::string>());
      if (!run.shard) throw WrongValue("shard is not a part of a sweep");
    }
    run.fingerprints = plan.at("fingerprints");
    for (const char* key : {"data", "binary", "external"}) run.fingerprints.at(key);
    return run;
  } catch (const nlohmann::json::exception& error) {
    throw damaged(error.what());
  } catch (const WrongValue& error) {
    throw damaged(error.what());
  }
}

}  // namespace lloyd
