// Typed reading of YAML, with a place for every complaint.
#pragma once

#include <yaml-cpp/yaml.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "experiments/spec/plan.h"

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
  Place place;
  std::vector<Entry> entries;

  const Entry* find(const std::string& key) const;
};

/// A word of a list and where it stands.
struct Word {
  std::string text;
  Place place;
};

/// The range of a real number.
enum class Sign { any, not_negative, positive };

/// `text` as a whole number from `low` to `high`; adds an error that calls it `label` otherwise.
std::optional<std::int64_t> read_whole(const std::string& text, const std::string& label,
                                       std::int64_t low, std::int64_t high, const Place& place,
                                       Errors& errors);

/// Reads the values of a section into variables. A key that is absent leaves its variable as it
/// was; a value of the wrong type or out of range adds an error and leaves it as well.
class YamlReader {
 public:
  explicit YamlReader(Errors& errors) : errors_(errors) {}

  /// The one document in `text`, or nullopt and an error.
  std::optional<YAML::Node> parse(const std::string& text);

  /// A map whose keys are all `known` (of which there are none twice). `name` is "" for the whole
  /// spec; `kind` is what a key is called. Unknown keys are told and left out. nullopt when `node`
  /// is no map.
  std::optional<Section> section(const YAML::Node& node, const Place& place,
                                 const std::string& name, const std::vector<std::string>& known,
                                 const std::string& kind = "key");
  /// The section under `key` of `parent`; nullopt when there is none or it is in error.
  std::optional<Section> section(const Section& parent, const std::string& key,
                                 const std::vector<std::string>& known,
                                 const std::string& kind = "key");

  template <typename Out>
  void whole(const Section& section, const std::string& key, std::int64_t low, Out& out,
             std::int64_t high = std::numeric_limits<int>::max()) {
    const Entry* entry = section.find(key);
    if (entry == nullptr) return;
    if (const auto value = whole(*entry, low, high))
      out = static_cast<typename Unwrap<Out>::type>(*value);
  }
  void seed(const Section& section, const std::string& key, std::uint64_t& out);
  template <typename Out>
  void real(const Section& section, const std::string& key, Sign sign, Out& out) {
    const Entry* entry = section.find(key);
    if (entry == nullptr) return;
    if (const auto value = real(entry->value, entry->label, entry->place, sign)) out = *value;
  }
  std::optional<double> real(const YAML::Node& node, const std::string& label, const Place& place,
                             Sign sign);
  template <typename Out>
  void flag(const Section& section, const std::string& key, Out& out) {
    const Entry* entry = section.find(key);
    if (entry == nullptr) return;
    if (const auto value = flag(*entry)) out = *value;
  }
  /// Any text.
  void text(const Section& section, const std::string& key, std::string& out);
  /// One of `known`; `kind` is what an unknown word is called.
  void choice(const Section& section, const std::string& key, const std::string& kind,
              const std::vector<std::string>& known, std::string& out);
  /// A list of words; nullopt when the key is absent or no list.
  std::optional<std::vector<Word>> words(const Section& section, const std::string& key);

 private:
  template <typename T>
  struct Unwrap {
    using type = T;
  };
  template <typename T>
  struct Unwrap<std::optional<T>> {
    using type = T;
  };
  std::optional<std::int64_t> whole(const Entry& entry, std::int64_t low, std::int64_t high);
  std::optional<bool> flag(const Entry& entry);

  Errors& errors_;
};

/// "a list", "a map", "nothing" or the scalar in quotes: what stands where something else was
/// expected.
std::string describe(const YAML::Node& node);

}  // namespace lloyd
