#include <fmt/format.h>

#include <limits>
#include <regex>

#include "experiments/spec/draft.h"
#include "experiments/text/text.h"

namespace lloyd {
namespace {

/// Reads the conditions of points that are not generated.
class ExcludeReader {
 public:
  explicit ExcludeReader(Draft& draft)
      : draft_(draft), errors_(draft.errors), yaml_(draft.yaml), request_(draft.request) {}

  void read(const Section& root) {
    const Entry* entry = root.find("exclude");
    if (entry == nullptr) return;
    const std::size_t before = errors_.count();
    if (entry->value.IsMap()) {
      read_exclude_entry(entry->value);
    } else if (!entry->value.IsSequence()) {
      errors_.add(
          entry->place,
          fmt::format(
              "exclude must be a list of maps, as in [{{version: \"cpu_*\", n: \"> 1e6\"}}], "
              "not {}",
              describe(entry->value)));
    } else {
      for (const YAML::Node& node : entry->value) read_exclude_entry(node);
    }
    if (errors_.count() > before) draft_.can_plan = false;
  }

 private:
  void read_exclude_entry(const YAML::Node& node) {
    std::vector<std::string> known = {"version"};
    for (const std::string& name : axis_names()) known.push_back(name);
    const auto section = yaml_.section(node, place_of(node), "exclude", known);
    if (!section) return;
    if (node.size() == 0)
      errors_.add(place_of(node), "an entry of exclude needs at least one key; {} is every point");
    ExcludeEntry entry;
    for (const Entry& condition : section->entries) {
      entry.conditions.push_back({condition.key, {}});
      auto& tests = entry.conditions.back().tests;
      if (!condition.value.IsSequence()) {
        read_exclude_test(condition.key, condition.value, condition.place, tests);
        continue;
      }
      if (condition.value.size() == 0)
        errors_.add(condition.place,
                    fmt::format("{} has no values; list at least one", condition.label));
      for (const YAML::Node& item : condition.value)
        read_exclude_test(condition.key, item, place_of(item), tests);
    }
    request_.exclude.push_back(std::move(entry));
  }

  void read_exclude_test(const std::string& key, const YAML::Node& node, const Place& place,
                         std::vector<ExcludeTest>& tests) {
    const std::string label = "exclude." + key;
    if (!node.IsScalar()) {
      errors_.add(place, fmt::format("{} must be a value or a list of values, not {}", label,
                                     describe(node)));
      return;
    }
    const std::string& text = node.Scalar();
    std::vector<std::string> names = draft_.words_of(key);
    if (key == "version" || takes_words(key)) {
      if (key == "version") {
        for (const RegisteredVersion& version : versions()) names.push_back(version.info.name);
      }
      const bool known = std::any_of(names.begin(), names.end(), [&](const std::string& name) {
        return glob_match(text, name);
      });
      if (!known)
        errors_.add(place,
                    key == "version" ? unknown_version(text) : unknown_word(key, text, names));
      tests.push_back({text, "", 0});
      return;
    }
    static const std::regex comparison(R"(\s*(<=|>=|!=|<|>)\s*(\S+)\s*)");
    std::smatch match;
    const bool compares = text.size() < 100 && std::regex_match(text, match, comparison);
    const std::string number = compares ? match[2].str() : text;
    if (parse_whole(number).form == WholeNumber::Form::not_a_number) {
      errors_.add(
          place,
          fmt::format("{} must be a number, a list, or a comparison such as \"> 1e6\", not {}",
                      label, in_quotes(text)));
      return;
    }
    if (const auto value = read_whole(number, label, std::numeric_limits<std::int64_t>::min(),
                                      std::numeric_limits<std::int64_t>::max(), place, errors_))
      tests.push_back({"", compares ? match[1].str() : "==", *value});
  }

  Draft& draft_;
  Errors& errors_;
  YamlReader& yaml_;
  PlanRequest& request_;
};

}  // namespace

void read_exclude(Draft& draft, const Section& root) { ExcludeReader(draft).read(root); }

}  // namespace lloyd
