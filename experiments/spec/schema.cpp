#include "experiments/spec/schema.h"

#include <fmt/format.h>

#include <algorithm>

#include "data/sources/dataset.h"
#include "experiments/spec/axis.h"
#include "experiments/spec/keys.h"
#include "experiments/text/text.h"
#include "kernels/core/axes.h"

namespace lloyd {
namespace {

using Json = nlohmann::ordered_json;
using Kind = Key::Kind;

// Numbers as the reader takes them. For YAML 1.2 10_000 is text, for YAML 1.1 1e6 is.
const std::string kWhole = "[0-9]+(_[0-9]+)*(\\.0+)?([eE][+]?[0-9]+)?";
const std::string kReal = "[+-]?([0-9]+(_[0-9]+)*\\.?[0-9]*|\\.[0-9]+)([eE][+-]?[0-9]+)?";

Json described(Json schema, const std::string& type, const std::string& text) {
  schema["x-type"] = type;
  schema["description"] = text;
  return schema;
}

Json whole(std::int64_t low, std::uint64_t high) {
  return {{"type", {"integer", "string"}},
          {"minimum", low},
          {"maximum", high},
          {"pattern", fmt::format("^[+{}]?{}$", low < 0 ? "-" : "", kWhole)}};
}

std::string whole_text(std::int64_t low, std::int64_t high) {
  if (high < std::numeric_limits<int>::max())
    return fmt::format("a whole number from {} to {}", low, high);
  return low > std::numeric_limits<int>::min() ? fmt::format("a whole number from {}", low)
                                               : "a whole number";
}

Json real(Sign sign) {
  Json schema = {{"type", {"number", "string"}}, {"pattern", "^" + kReal + "$"}};
  if (sign == Sign::positive) schema["exclusiveMinimum"] = 0;
  if (sign == Sign::not_negative) schema["minimum"] = 0;
  return schema;
}

Json text(const std::string& pattern = "") {
  Json schema = {{"type", {"string", "number"}}};  // a title may be 2026
  if (!pattern.empty()) schema["pattern"] = "^(" + pattern + ")$";
  return schema;
}

/// A list, or the one value that stands for a list of one.
Json one_or_more(const Json& item, int least) {
  return {{"anyOf", {item, {{"type", "array"}, {"items", item}, {"minItems", least}}}}};
}

Json map_of(const Json& properties) {
  return {{"type", "object"}, {"properties", properties}, {"additionalProperties", false}};
}

Json axis_value(const AxisInfo& axis) {
  if (const std::vector<std::string> words = axis_words(axis.name); !words.empty())
    return {{"enum", words}};
  if (takes_words(axis.name)) return text();
  return whole(axis.lowest, static_cast<std::uint64_t>(axis.highest));
}

std::string axis_text(const AxisInfo& axis) {
  const Json value = axis_value(axis);
  if (value.contains("enum")) return join(value.at("enum").get<std::vector<std::string>>());
  if (takes_words(axis.name)) return "a name or a list of names";
  return whole_text(axis.lowest, axis.highest) + ", or a list of them";
}

Json axes() {
  Json properties;
  for (const AxisInfo& axis : kAxes) {
    Json& schema = properties[axis.name] =
        described(one_or_more(axis_value(axis), 1), axis_text(axis), axis_meaning(axis));
    if (defaults_to_cores(axis))
      schema["description"] =
          std::string(axis.text) +
          "; all cores that the program may use, by CPU affinity and quota, unless given";
    else if (axis.default_value == kDefaultOfKey)
      continue;  // the description names the key
    else if (axis.default_value != kNoDefault)
      schema["default"] = !axis_words(axis.name).empty()
                              ? Json(value_text(axis.name, axis.default_value))
                              : Json(axis.default_value);
  }
  return map_of(properties);
}

Json zip() {
  const Json group = {{"type", "array"},
                      {"items", {{"enum", axis_names()}}},
                      {"minItems", 2},
                      {"uniqueItems", true}};
  return {{"anyOf", {group, {{"type", "array"}, {"items", group}}}}};
}

Json exclude() {
  Json properties = {{"version", one_or_more(text(), 1)}};
  for (const AxisInfo& axis : kAxes) {
    const Json value =
        takes_words(axis.name)
            ? text()
            : Json{{"type", {"integer", "string"}},
                   {"pattern", fmt::format("^\\s*(<=|>=|!=|<|>)?\\s*[+-]?{}\\s*$", kWhole)}};
    properties[axis.name] = one_or_more(value, 1);
  }
  Json entry = map_of(properties);
  entry["minProperties"] = 1;
  return one_or_more(entry, 0);
}

Json words(const Key& key) {
  Json word = text(key.pattern);
  if (!key.words.empty() && key.pattern.empty()) word = {{"enum", key.words}};
  if (!key.words.empty() && !key.pattern.empty()) word = {{"anyOf", {{{"enum", key.words}}, word}}};
  return one_or_more(word, key.needed ? 1 : 0);
}

Json figures(const Key& key) {
  Json properties;
  const std::vector<std::string> axes = axis_names();
  for (const auto& [name, x] : figures_with_x()) {
    Json axis = {{"enum", axes}};
    if (std::ranges::count(axes, x) > 0) axis["default"] = x;  // "time" is no axis
    properties[name] = map_of({{"x", axis}});
    properties[name]["required"] = Json::array({"x"});
  }
  return one_or_more({{"anyOf", {{{"enum", key.words}}, map_of(properties)}}}, 0);
}

Json value_of(const Key& key);

/// The generators, with what each of them is.
Json generators() {
  Json choices = Json::array();
  for (const data::GeneratorInfo& info : data::generators())
    choices.push_back({{"const", info.name}, {"description", info.describe()}});
  return {{"oneOf", choices}};
}

/// Which keys of `data` go together.
Json data_rules() {
  const auto only = [](const std::string& condition, const Json& value, Json names) {
    return Json{
        {"if", {{"properties", {{condition, value}}}, {"required", Json::array({condition})}}},
        {"then", {{"propertyNames", {{"enum", std::move(names)}}}}}};
  };
  Json file = Json::array();
  for (const Key& key : keys())
    if (key.section == "data" && key.with == "file") file.push_back(key.name);
  file.push_back("name");
  Json rules = Json::array({only("file", true, file)});
  for (const data::GeneratorInfo& info : data::generators()) {
    Json names = {"name", "generator", "seed"};
    for (const std::string& name : info.keys) names.push_back(name);
    rules.push_back(only("generator", {{"const", info.name}}, names));
  }
  return {{"oneOf",
           {{{"required", Json::array({"generator"})}}, {{"required", Json::array({"file"})}}}},
          {"allOf", rules}};
}

Json section(const std::string& name) {
  Json properties;
  for (const Key& key : keys())
    if (key.section == name) properties[key.name] = value_of(key);
  Json schema = map_of(properties);
  if (name == "data") schema.update(data_rules());
  if (name == "solve") {
    const Json file = {{"properties", {{"init", {{"const", "file"}}}}},
                       {"required", Json::array({"init"})}};
    schema["if"] = file;
    schema["then"] = {{"required", Json::array({"init_file"})}};
    schema["dependentSchemas"] = {{"init_file", file}};
  }
  return schema;
}

/// A source of points, or a list of named ones.
Json sources() {
  const Json same = {{"$ref", "#/properties/data/anyOf/0"}};
  Json named = same;
  named["required"] = Json::array({"name"});
  return {{"anyOf",
           {section("data"),
            {{"type", "array"}, {"items", same}, {"minItems", 1}, {"maxItems", 1}},
            {{"type", "array"}, {"items", named}, {"minItems", 2}}}}};
}

/// The words of a choice that have no noun are characters.
std::string choice_text(const Key& key) {
  return key.noun.empty() ? "\"" + join(key.words, "\", \"") + "\"" : join(key.words);
}

std::pair<Json, std::string> typed(const Key& key) {
  switch (key.kind) {
    case Kind::text:
      return {text(key.pattern), "text"};
    case Kind::flag:
      return {{{"type", "boolean"}}, "true or false"};
    case Kind::verify: {
      Json sample = section("measure.verify");
      sample["required"] = Json::array({"sample"});
      return {{{"anyOf", {{{"type", "boolean"}}, sample}}}, "true, false, or {sample: N}"};
    }
    case Kind::whole:
      return {whole(key.low, static_cast<std::uint64_t>(key.high)), whole_text(key.low, key.high)};
    case Kind::seed:
      return {whole(0, std::numeric_limits<std::uint64_t>::max()), "a whole number below 2^64"};
    case Kind::real:
      return {real(key.sign), key.sign == Sign::positive       ? "a number above 0"
                              : key.sign == Sign::not_negative ? "a number from 0"
                                                               : "a number"};
    case Kind::range:
      return {{{"type", "array"}, {"items", real(Sign::any)}, {"minItems", 2}, {"maxItems", 2}},
              "two numbers"};
    case Kind::choice:
      if (key.name == "generator") return {generators(), choice_text(key)};
      return {{{"enum", key.words}}, choice_text(key)};
    case Kind::words:
      return {words(key), key.words.empty() ? "a name or a list of names"
                          : key.pattern.empty()
                              ? "one or a list of " + join(key.words)
                              : "one or a list of " + join(key.words) + ", or CUPTI's names"};
    case Kind::figures:
      return {figures(key), "one or a list of " + join(key.words)};
    case Kind::column:
      return {{{"type", {"integer", "string"}}, {"minimum", key.low}}, "a name or a whole number"};
    case Kind::columns:
      return {one_or_more({{"type", {"integer", "string"}}}, 1),
              "a name or a whole number, or a list of them"};
    case Kind::section:
      if (key.name == "data") return {sources(), "a map of the keys below, or a list of maps"};
      return {section(key.name), "a map of the keys below"};
    case Kind::axes:
      return {axes(), "a map of the axes below"};
    case Kind::zip:
      return {zip(), "a list of axes, or a list of such lists"};
    case Kind::exclude:
      return {exclude(), "a map, or a list of maps"};
  }
  return {};
}

Json value_of(const Key& key) {
  auto [value, type] = typed(key);
  Json schema = described(std::move(value), type, key.text);
  const auto standard = default_of(key);
  const bool no_text = standard.is_string() && standard.get<std::string>().empty();
  if (!key.needed && !standard.is_null() && !standard.is_object() && !no_text)
    schema["default"] = standard;
  schema["examples"] = Json::array({key.example});
  return schema;
}

}  // namespace

nlohmann::ordered_json spec_schema() {
  Json schema = {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                 {"title", "A spec of lloydbench"},
                 {"description", "What a sweep runs and how it measures (docs/spec.md)."}};
  schema.update(section(""));
  schema["required"] = Json::array();
  for (const Key& key : keys())
    if (key.needed) schema["required"].push_back(key.name);
  // Data files give n. The axes must if points are generated.
  const Json file = {{"type", "object"}, {"required", Json::array({"file"})}};
  const Json with_file = {
      {"properties", {{"data", {{"anyOf", {file, {{"type", "array"}, {"items", file}}}}}}}},
      {"required", Json::array({"data"})}};
  const auto axes_with = [](const Json& names) {
    return Json{{"properties", {{"axes", {{"required", names}}}}}};
  };
  schema["if"] = with_file;
  schema["then"] = axes_with(Json::array({"k"}));
  schema["else"] = axes_with(Json::array({"n", "k"}));
  return schema;
}

}  // namespace lloyd
