#include "experiments/spec/keys.h"

#include <fmt/format.h>

#include <stdexcept>
#include <string_view>

#include "experiments/spec/key_tables.h"
#include "experiments/spec/spec.h"

namespace lloyd {

const std::vector<Key>& keys() {
  static const std::vector<Key> all = [] {
    std::vector<Key> joined;
    for (const auto& part :
         {spec_keys(), data_keys(), solve_keys(), measure_keys(), profile_keys()})
      joined.insert(joined.end(), part.begin(), part.end());
    return joined;
  }();
  return all;
}

std::vector<std::string> key_names(const std::string& section) {
  std::vector<std::string> names;
  for (const Key& key : keys())
    if (key.section == section) names.push_back(key.name);
  return names;
}

const Key& key_of(std::string_view section, std::string_view name) {
  for (const Key& key : keys())
    if (key.section == section && key.name == name) return key;
  throw std::logic_error(fmt::format("no key {}.{} in the tables (key_tables.h)", section, name));
}

const Key& key_at(const std::string& path) {
  const std::size_t dot = path.find('.');
  return key_of(path.substr(0, dot), path.substr(dot + 1));
}

nlohmann::json default_of(const Key& key) {
  if (key.section.find('.') != std::string::npos) return nullptr;  // a section in a section
  static const nlohmann::json defaults = Spec{}.resolved();
  const nlohmann::json& of_section = key.section.empty() ? defaults : defaults.at(key.section);
  return of_section.value(key.name, nlohmann::json(nullptr));
}

}  // namespace lloyd
