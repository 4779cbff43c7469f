// The keys of a spec. This is the only list of them: the reader takes types, ranges and choices
// from it, error messages take their suggestions, and schema.cpp makes the JSON Schema, from which
// docs/spec.md is written. The axes have their own table (kernels/core/axes.inc).
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace lloyd {

/// The range of a real number.
enum class Sign { any, not_negative, positive };

struct Key {
  enum class Kind {
    text,     // matches `pattern`, if there is one
    flag,     // true or false
    verify,   // true, false or a map with the keys of section measure.verify
    whole,    // from low to high
    seed,     // from 0 to 2^64 - 1
    real,     // of `sign`
    range,    // [low, high], two real numbers
    choice,   // one of `words`
    column,   // a name, or a number from low to high
    columns,  // a list of them
    words,    // a list from `words`, or of texts that match `pattern`
    figures,  // a list from `words`, or of maps such as {speedup: {x: k}}
    section,  // a map with the keys of the section of this name
    axes,
    zip,
    exclude,
  };

  std::string section;  // "" for the spec itself
  std::string name;
  Kind kind;
  std::string text;                // what it means, in one sentence
  nlohmann::ordered_json example;  // a good value
  bool needed = false;             // a spec without it is refused
  std::int64_t low = 0, high = std::numeric_limits<int>::max();
  Sign sign = Sign::any;
  std::string noun = {};  // what messages call one of the words; "": they are not words
  std::vector<std::string> words = {};
  std::string pattern = {};  // a regular expression that a whole text matches
  std::string with = {};     // section data: the key that this one goes with, generator or file
};

/// All keys, in the order in which they are documented.
const std::vector<Key>& keys();
/// The names of a section's keys ("": of the spec's).
std::vector<std::string> key_names(const std::string& section);
/// Throws std::logic_error when the table has no such key.
const Key& key_of(std::string_view section, std::string_view name);

/// The same for "section.name".
const Key& key_at(const std::string& path);

/// The figures whose axis on x a spec may choose, with the one that they have otherwise.
const std::map<std::string, std::string>& figures_with_x();

/// The value of a key that a spec leaves out; null when there is none.
nlohmann::json default_of(const Key& key);

}  // namespace lloyd
