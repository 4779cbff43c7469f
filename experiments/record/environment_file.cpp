#include "experiments/record/environment_file.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "experiments/record/run_files.h"
#include "experiments/text/text.h"

namespace lloyd {
namespace {

bool is_text(const nlohmann::json& value) { return value.is_string(); }
bool is_text_or_null(const nlohmann::json& value) { return value.is_string() || value.is_null(); }
bool is_flag(const nlohmann::json& value) { return value.is_boolean(); }
bool is_count(const nlohmann::json& value) { return value.is_number_unsigned(); }
bool is_list(const nlohmann::json& value) { return value.is_array(); }

/// Collects the required fields that an environment does not have.
class FieldCheck {
 public:
  explicit FieldCheck(const nlohmann::json& environment) : environment_(environment) {}

  /// `field` is a path such as cpu/model. Returns whether it is there and fits.
  bool require(const std::string& field, bool (*fits)(const nlohmann::json&)) {
    const nlohmann::json::json_pointer pointer("/" + field);
    if (environment_.contains(pointer) && fits(environment_.at(pointer))) return true;
    missing_.push_back(field);
    return false;
  }
  /// The fields of one machine, which stand below `folder`.
  void require_machine(const std::string& folder) {
    require(folder + "host", is_text);
    require(folder + "cpu/model", is_text_or_null);
    require(folder + "cpu/cores", is_count);
  }
  const std::vector<std::string>& missing() const { return missing_; }

 private:
  const nlohmann::json& environment_;
  std::vector<std::string> missing_;
};

std::vector<std::string> missing_fields(const nlohmann::json& environment) {
  FieldCheck check(environment);
  check.require("t_utc", is_text);
  check.require_machine("");
  check.require("build/commit", is_text);
  check.require("build/dirty", is_flag);
  if (check.require("gpus", is_list))
    for (std::size_t i = 0; i < environment.at("gpus").size(); ++i)
      check.require(fmt::format("gpus/{}/name", i), is_text);
  // Only the environment of a merged run has parts.
  if (environment.contains("parts") && check.require("parts", is_list))
    for (std::size_t i = 0; i < environment.at("parts").size(); ++i)
      check.require_machine(fmt::format("parts/{}/environment/", i));
  return check.missing();
}

}  // namespace

nlohmann::ordered_json read_environment(const RunDirectory& directory) {
  nlohmann::json environment = directory.read_json(run_files::kEnvironment);
  if (const std::vector<std::string> missing = missing_fields(environment); !missing.empty())
    throw RunDirectoryError(
        fmt::format("{}: is damaged (no valid {}); restore the file, or start a new run",
                    (directory.path() / run_files::kEnvironment).string(), join(missing)));
  return environment;
}

}  // namespace lloyd
