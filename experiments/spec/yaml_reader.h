// Typed reading of YAML, with a place for every complaint.
#pragma once

#include <yaml-cpp/yaml.h>

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "experiments/spec/errors.h"
#include "experiments/spec/keys.h"

namespace lloyd {

Place place_of(const YAML::Node& node);

/// A value of a map, with what to call it in a message ("solve.iterations").
struct Entry {
  std::string key;
  std::string label;
  Place key_place;
  Place place;  // of the value; of the key where the value is empty
  YAML::Node value;
};

/// A map of the spec, its keys checked.
struct Section {
  std::string name;  // as in the table of keys
  Place place;
  std::vector<Entry> entries;

  const Entry* find(const std::string& key) const;
};

/// A word of a list and where it stands.
struct Word {
  std::string text;
  Place place;
};

/// `text` as a whole number from `low` to `high`; adds an error that calls it `label` otherwise.
std::optional<std::int64_t> read_whole(const std::string& text, const std::string& label,
                                       std::int64_t low, std::int64_t high, const Place& place,
                                       Errors& errors);

/// Reads the values of a section into variables. A key that is absent leaves its variable as it
/// was; a value of the wrong type or out of range adds an error and leaves it as well. Types and
/// ranges are those of the table of keys.
class YamlReader {
 public:
  explicit YamlReader(Errors& errors) : errors_(errors) {}

  /// A map whose keys are all `known` (of which there are none twice). `name` is "" for the whole
  /// spec; `kind` is what a key is called. Unknown keys are told and left out. nullopt when `node`
  /// is no map.
  std::optional<Section> section(const YAML::Node& node, const Place& place,
                                 const std::string& name, const std::vector<std::string>& known,
                                 const std::string& kind = "key");
  /// The section under `key` of `parent`, with the keys that the table gives it; nullopt when
  /// there is none or it is in error.
  std::optional<Section> section(const Section& parent, const std::string& key);

  /// Reads `key`, which the table of keys describes, into a variable of the type that it has there:
  /// bool, std::uint64_t (a seed), another integer, double, std::string (text or a choice) or
  /// std::vector<std::string> (words, each once), or an optional of these.
  template <typename Out>
  void read(const Section& section, const std::string& key, Out& out) {
    using Value = typename Unwrap<Out>::type;
    const Key& known = key_of(section.name, key);
    const Entry* entry = section.find(key);
    if (entry == nullptr) return;
    if constexpr (std::is_same_v<Value, bool>) {
      assign(flag(*entry), out);
    } else if constexpr (std::is_same_v<Value, std::uint64_t>) {
      assign(seed(*entry), out);
    } else if constexpr (std::is_integral_v<Value>) {
      assign(whole(*entry, known.low, known.high), out);
    } else if constexpr (std::is_floating_point_v<Value>) {
      assign(real(entry->value, entry->label, entry->place, known.sign), out);
    } else if constexpr (std::is_same_v<Value, std::string>) {
      known.kind == Key::Kind::choice ? choice(*entry, known, out) : text(*entry, out);
    } else {
      choose_words(*entry, known, out);
    }
  }
  /// The figures of a list: names, or maps such as {speedup: {x: k}}, which become "speedup:k".
  void figures(const Entry& entry, const Key& key, std::vector<std::string>& out);
  std::optional<double> real(const YAML::Node& node, const std::string& label, const Place& place,
                             Sign sign);
  /// The words of a list, or the one word that stands in place of a list; nullopt for anything
  /// else.
  std::optional<std::vector<Word>> words(const Entry& entry);

 private:
  template <typename T>
  struct Unwrap {
    using type = T;
  };
  template <typename T>
  struct Unwrap<std::optional<T>> {
    using type = T;
  };
  template <typename Value, typename Out>
  static void assign(const std::optional<Value>& value, Out& out) {
    if (value) out = static_cast<typename Unwrap<Out>::type>(*value);
  }
  std::optional<std::int64_t> whole(const Entry& entry, std::int64_t low, std::int64_t high);
  std::optional<std::uint64_t> seed(const Entry& entry);
  std::optional<bool> flag(const Entry& entry);
  std::optional<std::string> chosen_x(const std::string& figure, const YAML::Node& name,
                                      const YAML::Node& options);
  void text(const Entry& entry, std::string& out);
  void choice(const Entry& entry, const Key& key, std::string& out);
  void choose_words(const Entry& entry, const Key& key, std::vector<std::string>& out);

  Errors& errors_;
};

/// "a list", "a map", "nothing" or the scalar in quotes: what stands where something else was
/// expected.
std::string describe(const YAML::Node& node);

}  // namespace lloyd
