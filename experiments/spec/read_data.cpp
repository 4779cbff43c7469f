#include <fmt/format.h>

#include <regex>
#include <system_error>
#include <utility>
#include <vector>

#include "data/sources/dataset.h"
#include "data/sources/generators.h"
#include "experiments/spec/draft.h"
#include "experiments/text/text.h"
#include "kernels/core/limits.h"

namespace lloyd {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLongestSourceName = 64;

/// The keys that go with `with`: generator or file.
std::vector<std::string> keys_with(const std::string& with) {
  std::vector<std::string> names;
  for (const Key& key : keys())
    if (key.section == "data" && key.with == with) names.push_back(key.name);
  return names;
}

/// Reads where points come from: a generator or a file.
class SourceReader {
 public:
  SourceReader(Draft& draft, data::NamedSource& named, SourceOrigin& origin)
      : draft_(draft),
        errors_(draft.errors),
        yaml_(draft.yaml),
        named_(named),
        source_(named.source),
        origin_(origin) {}

  void read(const Section& section) {
    origin_.place = section.place;
    const Entry* generator = section.find("generator");
    const Entry* file = section.find("file");
    origin_.is_file = file != nullptr;
    if (generator != nullptr && file != nullptr) {
      errors_.add(std::max(generator, file)->key_place,
                  "data has both a generator and a file; keep one of them");
      return;
    }
    if (generator == nullptr && file == nullptr) {
      errors_.add(section.place,
                  "data needs either a generator or a file; a spec without data uses "
                  "generator: uniform");
      return;
    }
    file != nullptr ? read_file_source(section, *file) : read_generator(section);
  }

 private:
  void read_generator(const Section& section) {
    yaml_.read(section, "generator", source_.generator);
    yaml_.read(section, "seed", source_.seed);
    std::vector<std::string> options;
    for (const auto& info : data::generators()) {
      if (info.name != source_.generator) continue;
      options = info.keys;
      std::vector<std::string> own = {"seed"};
      own.insert(own.end(), info.keys.begin(), info.keys.end());
      for (const Entry& entry : section.entries)
        if (entry.key != "generator" && entry.key != "name" && !contains(own, entry.key))
          errors_.add(entry.key_place,
                      fmt::format("generator '{}' has no key '{}'; its keys are {}", info.name,
                                  entry.key, join(own)));
    }
    for (const char* option : {"centers", "sigma", "range"}) {
      const std::size_t before = errors_.count();
      read_option(section, option, source_);
      if (const Entry* entry = section.find(option);
          entry != nullptr && errors_.count() == before && contains(options, std::string(option)))
        check_option(section, *entry);
    }
  }

  void read_option(const Section& section, std::string_view option, data::Source& source) {
    if (option == "centers") yaml_.read(section, "centers", source.centers);
    if (option == "sigma") yaml_.read(section, "sigma", source.sigma);
    if (option == "range") read_range(section, source);
  }

  /// Adds the error of a value that the generator itself refuses.
  void check_option(const Section& section, const Entry& option) {
    data::Source alone;
    alone.generator = source_.generator;
    read_option(section, option.key, alone);
    try {
      data::generate(alone, 1, 1, 1);
    } catch (const data::DataError& error) {
      errors_.add(option.place, fmt::format("data.{}", error.what()));
    }
  }

  void read_range(const Section& section, data::Source& source) {
    const Entry* entry = section.find("range");
    if (entry == nullptr) return;
    if (!entry->value.IsSequence() || entry->value.size() != 2) {
      errors_.add(entry->place, "data.range must be a list of two numbers, as in [0, 1]");
      return;
    }
    source.low = yaml_.real(entry->value[0], "data.range", place_of(entry->value[0]), Sign::any);
    source.high = yaml_.real(entry->value[1], "data.range", place_of(entry->value[1]), Sign::any);
    if (source.low && source.high && !(*source.low < *source.high))
      errors_.add(entry->place,
                  fmt::format("data.range must go from low to high, not from {} to {}",
                              entry->value[0].Scalar(), entry->value[1].Scalar()));
  }

  void read_file_source(const Section& section, const Entry& file) {
    source_.generator.clear();
    const std::size_t before = errors_.count();
    const std::vector<std::string> own = keys_with("file");
    for (const Entry& entry : section.entries)
      if (entry.key != "name" && !contains(own, entry.key))
        errors_.add(entry.key_place, fmt::format("a data file has no key '{}'; its keys are {}",
                                                 entry.key, join(own)));
    yaml_.read(section, "file", named_.file);
    yaml_.read(section, "format", source_.format);
    yaml_.read(section, "header", source_.header);
    read_delimiter(section);
    for (const auto& [key, out] : {std::pair("index_column", &source_.index_column),
                                   std::pair("label_column", &source_.label_column)})
      if (const Entry* entry = section.find(key))
        *out = read_column(key, entry->value, entry->label, entry->place);
    read_columns(section);
    yaml_.read(section, "array", source_.array);
    yaml_.read(section, "mapped", source_.mapped);
    if (errors_.count() == before) origin_.extent = read_extent(draft_, named_.file, file, source_);
    if (origin_.extent) named_.extent = {origin_.extent->n, origin_.extent->dim};
  }

  void read_delimiter(const Section& section) {
    std::string delimiter, decimal = ".";
    yaml_.read(section, "delimiter", delimiter);
    yaml_.read(section, "decimal", decimal);
    if (!delimiter.empty()) source_.delimiter = delimiter == "tab" ? '\t' : delimiter[0];
    source_.decimal = decimal[0];
  }

  void read_columns(const Section& section) {
    const Entry* entry = section.find("columns");
    if (entry == nullptr) return;
    if (entry->value.IsSequence() && entry->value.size() == 0)
      errors_.add(entry->place, "data.columns lists none; name at least one, or leave it out");
    const auto add = [&](const YAML::Node& node, const Place& place) {
      if (const auto column = read_column("columns", node, entry->label, place))
        source_.columns.push_back(*column);
    };
    if (!entry->value.IsSequence())
      add(entry->value, entry->place);
    else
      for (const YAML::Node& item : entry->value) add(item, place_of(item));
  }

  /// A whole number is the column's number, unless it stands in quotes.
  std::optional<data::Column> read_column(const std::string& name, const YAML::Node& node,
                                          const std::string& label, const Place& place) {
    const Key& key = key_of("data", name);
    if (!node.IsScalar()) {
      errors_.add(place, fmt::format("{} must be a column's name or number, not {}", label,
                                     describe(node)));
      return std::nullopt;
    }
    const std::string& text = node.Scalar();
    const bool quoted = node.Tag() == "!";
    if (quoted || parse_whole(text).form == WholeNumber::Form::not_a_number) return text;
    const auto number = read_whole(text, label, key.low, key.high, place, errors_);
    return number ? std::optional<data::Column>(static_cast<int>(*number)) : std::nullopt;
  }

  Draft& draft_;
  Errors& errors_;
  YamlReader& yaml_;
  data::NamedSource& named_;
  data::Source& source_;
  SourceOrigin& origin_;
};

/// Reads the name of a source in a list of `count`.
void read_name(Draft& draft, const Section& section, std::size_t count, std::string& name) {
  const Entry* entry = section.find("name");
  if (entry == nullptr) {
    if (count > 1)
      draft.errors.add(section.place,
                       "each of several sources needs a name, as in {name: a, generator: uniform}");
    return;
  }
  std::string given;
  draft.yaml.read(section, "name", given);
  static const std::regex good(key_of("data", "name").pattern);
  if (!entry->value.IsScalar()) return;
  if (given.size() > kLongestSourceName || !std::regex_match(given, good))
    draft.errors.add(entry->place, fmt::format("data.name must be up to {} of a-z, A-Z, 0-9, '_', "
                                               "'.' and '-', not {}",
                                               kLongestSourceName, in_quotes(given)));
  else if (contains(draft.source_names(), given))
    draft.errors.add(entry->place,
                     fmt::format("data has two sources called '{}'; rename one", given));
  else
    name = given;
}

}  // namespace

std::optional<FileExtent> read_extent(Draft& draft, const std::string& file, const Entry& entry,
                                      data::Source& source) {
  const fs::path beside = draft.spec.path.parent_path() / file;
  std::vector<fs::path> places = {beside, file};
  if (const auto before = draft.found.find(file); before != draft.found.end())
    places.insert(draft.typed ? places.end() : places.begin(), before->second);
  std::error_code ignored;
  const auto place = std::find_if(places.begin(), places.end(),
                                  [&](const fs::path& path) { return fs::exists(path, ignored); });
  if (file.empty() || place == places.end()) {
    const std::string other = beside == fs::path(file) ? "" : fmt::format(" and '{}'", file);
    draft.errors.add(entry.place, fmt::format("{} {} was not found; looked for '{}'{}", entry.label,
                                              in_quotes(file), beside.string(), other));
    return std::nullopt;
  }
  try {
    // Read under the short path, which is the one that a message about the file should show.
    const fs::path& found = *place;
    source.file = found;
    const data::Extent extent = data::extent_of(source);
    source.file = fs::absolute(found).lexically_normal();
    if (invalid_utf8(source.file.string()) != std::string::npos) {
      draft.errors.add(entry.place, fmt::format("{} has a path that is not UTF-8: {}; rename it",
                                                in_quotes(file), source.file.string()));
      return std::nullopt;
    }
    return FileExtent{extent.n, extent.dim, entry.place, found.filename().string()};
  } catch (const data::DataError& error) {
    draft.errors.add(entry.place, fmt::format("{} cannot be used: {}", entry.label, error.what()));
    return std::nullopt;
  }
}

void read_data(Draft& draft, const Section& root) {
  const Entry* entry = root.find("data");
  if (entry == nullptr) return;
  std::vector<std::pair<YAML::Node, Place>> items;
  if (entry->value.IsSequence())
    for (const YAML::Node& item : entry->value) items.emplace_back(item, place_of(item));
  else
    items.emplace_back(entry->value, entry->place);
  if (items.empty()) {
    draft.errors.add(entry->place, "data lists no source; name at least one, or leave data out");
    return;
  }
  draft.spec.data.assign(items.size(), data::NamedSource{});
  draft.origins.assign(items.size(), SourceOrigin{});
  for (std::size_t i = 0; i < items.size(); ++i) {
    const auto section =
        draft.yaml.section(items[i].first, items[i].second, "data", key_names("data"));
    if (!section) continue;
    read_name(draft, *section, items.size(), draft.spec.data[i].name);
    SourceReader(draft, draft.spec.data[i], draft.origins[i]).read(*section);
  }
}
}  // namespace lloyd
