#include "experiments/spec/yaml_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "experiments/spec/axis.h"
#include "experiments/text/text.h"
#include "kernels/core/limits.h"

namespace lloyd {
namespace {

bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; }

/// Where a key belongs that section `name` does not have; "" when no section has it, or when `name`
/// is no section but an entry of exclude, axes or figures.
std::string right_place(const std::string& key, const std::string& name) {
  if (key_names(name).empty()) return "";
  const std::vector<std::string> axes = axis_names();
  if (name.empty() && contains(axes, key)) return "; it is an axis and belongs under axes";
  std::vector<std::string> sections;
  bool at_top = false;
  for (const Key& known : keys()) {
    if (known.name != key) continue;
    if (known.section.empty())
      at_top = true;
    else
      sections.push_back(known.section);
  }
  if (at_top && !sections.empty())
    return "; it is a key of the spec itself, or belongs under " + join(sections, " or ");
  if (at_top) return "; it is a key of the spec itself and belongs to no section";
  return sections.empty() ? "" : "; it belongs under " + join(sections, " or ");
}

}  // namespace

Place place_of(const YAML::Node& node) {
  const YAML::Mark mark = node.Mark();
  return {mark.line + 1, mark.column + 1, ""};
}

std::string describe(const YAML::Node& node) {
  if (node.IsSequence()) return "a list";
  if (node.IsMap()) return "a map";
  return node.IsScalar() ? in_quotes(node.Scalar()) : "nothing";
}

const Entry* Section::find(const std::string& key) const {
  const auto entry =
      std::find_if(entries.begin(), entries.end(), [&](const Entry& e) { return e.key == key; });
  return entry == entries.end() ? nullptr : &*entry;
}

std::optional<std::int64_t> read_whole(const std::string& text, const std::string& label,
                                       std::int64_t low, std::int64_t high, const Place& place,
                                       Errors& errors) {
  const WholeNumber number = parse_whole(text);
  if (number.form == WholeNumber::Form::not_a_number) {
    errors.add(place, fmt::format("{} must be a whole number, not {}", label, in_quotes(text)));
    return std::nullopt;
  }
  if (number.form == WholeNumber::Form::fraction) {
    errors.add(place, fmt::format("{} must be a whole number, not {}", label, text));
    return std::nullopt;
  }
  const auto value = number.as_int64();
  if (value && *value >= low && *value <= high) return value;
  if (high < std::numeric_limits<int>::max())
    errors.add(place, fmt::format("{} must be from {} to {}, not {}", label, low, high, text));
  else if (number.negative || (value && *value < low))
    errors.add(place, fmt::format("{} must be at least {}, not {}", label, low, text));
  else
    errors.add(place, fmt::format("{} must be at most {}, not {}", label, with_commas(high), text));
  return std::nullopt;
}

std::optional<Section> YamlReader::section(const YAML::Node& node, const Place& place,
                                           const std::string& name,
                                           const std::vector<std::string>& known,
                                           const std::string& kind) {
  if (!node.IsMap()) {
    errors_.add(place, fmt::format("{} must be a map (key: value), not {}",
                                   name.empty() ? "a spec" : name, describe(node)));
    return std::nullopt;
  }
  Section section{name, place, {}};
  for (const auto& pair : node) {
    const Place key_place = place_of(pair.first);
    if (!pair.first.IsScalar()) {
      errors_.add(key_place, fmt::format("a key must be a word, not {}", describe(pair.first)));
      continue;
    }
    const std::string key = pair.first.Scalar();
    // yaml-cpp keeps a repeated key and finds the first: checked here.
    if (const Entry* first = section.find(key)) {
      errors_.add(key_place, fmt::format("'{}' is given twice; the first is in line {}", key,
                                         first->key_place.line));
      continue;
    }
    if (!contains(known, key)) {
      std::string hint = right_place(key, name);
      if (hint.empty()) hint = suggestion(key, known);
      const std::string choices =
          fmt::format("; the {} are {}", kind == "axis" ? "axes" : "keys", join(known));
      errors_.add(key_place, fmt::format("unknown {} {}{}{}", kind, in_quotes(key),
                                         name.empty() || kind == "axis" ? "" : " in " + name,
                                         hint.empty() ? choices : hint));
      continue;
    }
    const bool axis = kind == "axis";
    section.entries.push_back({key, name.empty() || axis ? key : name + "." + key, key_place,
                               pair.second.IsNull() ? key_place : place_of(pair.second),
                               pair.second});
  }
  return section;
}

std::optional<Section> YamlReader::section(const Section& parent, const std::string& key) {
  const Entry* entry = parent.find(key);
  if (entry == nullptr) return std::nullopt;
  return section(entry->value, entry->place, entry->label, key_names(entry->label));
}

std::optional<std::int64_t> YamlReader::whole(const Entry& entry, std::int64_t low,
                                              std::int64_t high) {
  if (entry.value.IsScalar())
    return read_whole(entry.value.Scalar(), entry.label, low, high, entry.place, errors_);
  errors_.add(entry.place,
              fmt::format("{} must be a whole number, not {}", entry.label, describe(entry.value)));
  return std::nullopt;
}

std::optional<std::uint64_t> YamlReader::seed(const Entry& entry) {
  const WholeNumber number =
      entry.value.IsScalar() ? parse_whole(entry.value.Scalar()) : WholeNumber{};
  if (number.form == WholeNumber::Form::whole && !number.negative) return number.magnitude;
  errors_.add(entry.place, fmt::format("{} must be a whole number from 0 to 2^64 - 1, not {}",
                                       entry.label, describe(entry.value)));
  return std::nullopt;
}

std::optional<double> YamlReader::real(const YAML::Node& node, const std::string& label,
                                       const Place& place, Sign sign) {
  const auto value = node.IsScalar() ? parse_real(node.Scalar()) : std::nullopt;
  if (value && (sign == Sign::any || *value > 0 || (sign == Sign::not_negative && *value == 0)))
    return value;
  const char* wanted = sign == Sign::any        ? "a number"
                       : sign == Sign::positive ? "a number above 0"
                                                : "0 or more";
  errors_.add(place, fmt::format("{} must be {}, not {}", label, wanted,
                                 value ? node.Scalar() : describe(node)));
  return std::nullopt;
}

std::optional<bool> YamlReader::flag(const Entry& entry) {
  bool value = false;
  if (entry.value.IsScalar() && YAML::convert<bool>::decode(entry.value, value)) return value;
  errors_.add(entry.place,
              fmt::format("{} must be true or false, not {}", entry.label, describe(entry.value)));
  return std::nullopt;
}

void YamlReader::text(const Entry& entry, std::string& out) {
  if (!entry.value.IsScalar()) {
    errors_.add(entry.place,
                fmt::format("{} must be text, not {}", entry.label, describe(entry.value)));
    return;
  }
  out = entry.value.Scalar();
  // A block, as `title: >` begins one, ends in a newline.
  out.erase(out.find_last_not_of('\n') + 1);
  if (std::any_of(out.begin(), out.end(), is_control))
    errors_.add(entry.place, fmt::format("{} must be one line without control characters, not {}",
                                         entry.label, in_quotes(out)));
}

void YamlReader::choice(const Entry& entry, const Key& key, std::string& out) {
  if (!entry.value.IsScalar())
    errors_.add(entry.place, fmt::format("{} must be one of {}, not {}", entry.label,
                                         join(key.words), describe(entry.value)));
  else if (contains(key.words, entry.value.Scalar()))
    out = entry.value.Scalar();
  else if (!key.noun.empty())
    errors_.add(entry.place, unknown_word(key.noun, entry.value.Scalar(), key.words));
  else
    errors_.add(entry.place, fmt::format("{} must be one of '{}', not {}", entry.label,
                                         join(key.words, "', '"), describe(entry.value)));
}

void YamlReader::choose_words(const Entry& entry, const Key& key, std::vector<std::string>& out) {
  const auto given = words(entry);
  if (!given) return;
  for (const Word& word : *given) {
    if (!contains(key.words, word.text))
      errors_.add(word.place, unknown_word(key.noun, word.text, key.words));
    else if (!contains(out, word.text))
      out.push_back(word.text);
  }
}

void YamlReader::figures(const Entry& entry, const Key& key, std::vector<std::string>& out) {
  const auto add = [&out](const std::string& figure) {
    if (!contains(out, figure)) out.push_back(figure);
  };
  const auto is_known = [&](const YAML::Node& name) {
    const bool known = contains(key.words, name.Scalar());
    if (!known) errors_.add(place_of(name), unknown_word(key.noun, name.Scalar(), key.words));
    return known;
  };
  const auto read_one = [&](const YAML::Node& item) {
    if (item.IsScalar()) {
      if (is_known(item)) add(item.Scalar());
      return;
    }
    if (!item.IsMap()) {
      errors_.add(place_of(item), fmt::format("{} must list names, not {}; an axis is chosen by "
                                              "{{speedup: {{x: k}}}}",
                                              entry.label, describe(item)));
      return;
    }
    for (const auto& pair : item) {
      if (!pair.first.IsScalar() || !is_known(pair.first)) continue;
      const std::string name = pair.first.Scalar();
      if (const auto x = chosen_x(name, pair.first, pair.second))
        add(*x == figures_with_x().at(name) ? name : name + ":" + *x);
    }
  };
  const bool list = entry.value.IsSequence();
  if (!list && entry.value.IsScalar() && entry.value.Scalar().find(',') != std::string::npos) {
    static_cast<void>(words(entry));
  } else if (!list) {
    read_one(entry.value);
  } else {
    for (const YAML::Node& item : entry.value) read_one(item);
  }
}

std::optional<std::string> YamlReader::chosen_x(const std::string& figure, const YAML::Node& name,
                                                const YAML::Node& options) {
  const auto& with_x = figures_with_x();
  if (!with_x.contains(figure)) {
    std::vector<std::string> others;
    for (const auto& [other, x] : with_x) others.push_back(other);
    errors_.add(place_of(name), fmt::format("figure '{}' has no axis on x that can be chosen; "
                                            "those that have one are {}",
                                            figure, join(others)));
    return std::nullopt;
  }
  const std::size_t before = errors_.count();
  const auto given = section(options, options.IsNull() ? place_of(name) : place_of(options),
                             "figure " + figure, {"x"});
  if (!given || errors_.count() > before) return std::nullopt;
  const Entry* x = given->find("x");
  if (x == nullptr || !x->value.IsScalar()) {
    errors_.add(x == nullptr ? given->place : x->place,
                fmt::format("figure {} needs one axis, such as {{x: k}}; the axes are {}", figure,
                            join(axis_names())));
    return std::nullopt;
  }
  const std::vector<std::string> axes = axis_names();
  const std::string axis = x->value.Scalar();
  if (contains(axes, axis)) return axis;
  const std::string hint = suggestion(axis, axes);
  errors_.add(x->place, fmt::format("unknown axis {}{}", in_quotes(axis),
                                    hint.empty() ? "; the axes are " + join(axes) : hint));
  return std::nullopt;
}

std::optional<std::vector<Word>> YamlReader::words(const Entry& entry) {
  if (entry.value.IsScalar()) {
    if (const std::string& text = entry.value.Scalar(); text.find(',') == std::string::npos)
      return std::vector<Word>{{text, entry.place}};
    errors_.add(entry.place, fmt::format("{} must be one value or a list such as [a, b], not {}",
                                         entry.label, in_quotes(entry.value.Scalar())));
    return std::nullopt;
  }
  if (!entry.value.IsSequence()) {
    errors_.add(entry.place, fmt::format("{} must be one value or a list, not {}", entry.label,
                                         describe(entry.value)));
    return std::nullopt;
  }
  std::vector<Word> words;
  for (const YAML::Node& item : entry.value) {
    if (item.IsScalar())
      words.push_back({item.Scalar(), place_of(item)});
    else
      errors_.add(place_of(item),
                  fmt::format("{} must list single values, not {}", entry.label, describe(item)));
  }
  return words;
}

}  // namespace lloyd
