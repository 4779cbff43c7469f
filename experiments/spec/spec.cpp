#include "experiments/spec/spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <regex>
#include <set>
#include <thread>

#include "experiments/spec/plan.h"
#include "experiments/spec/yaml_reader.h"
#include "experiments/text/pattern.h"
#include "experiments/text/text.h"
#include "kernels/core/axes.h"
#include "kernels/core/limits.h"
#include "profiling/metrics.h"
#include "profiling/presets.h"

namespace lloyd {
namespace {

namespace fs = std::filesystem;

const std::vector<std::string> kSpecKeys = {"name",  "title",   "versions", "baseline",
                                            "axes",  "zip",     "exclude",  "data",
                                            "solve", "measure", "profile",  "figures"};
const std::vector<std::string> kFileKeys = {"file", "format", "header", "index_column",
                                            "label_column"};
const std::vector<std::string> kDefaultCounters = {"occupancy", "l1", "l2", "roofline"};
const std::vector<std::string> kCpuCounters = {"l1d_misses", "llc_misses", "instructions",
                                               "cycles"};
const std::vector<std::string> kCpuWords = {"l1d_misses", "llc_misses", "instructions", "cycles",
                                            "cachegrind"};
const std::vector<std::string> kFigures = {
#include "analysis/figures.inc"
};
const std::vector<std::string> kProfileKinds = {"none",     "nvtx", "counters",
                                                "timeline", "cpu",  "all"};

constexpr std::int64_t kLongestSpec = 1'000'000;  // bytes
constexpr std::size_t kLongestName = 64, kLongestTitle = 200;

bool contains(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

std::vector<std::string> precision_names() {
  std::vector<std::string> names;
  for (const Precision precision : kPrecisions) names.emplace_back(to_string(precision));
  return names;
}

bool is_glob(const std::string& text) { return text.find_first_of("*?") != std::string::npos; }

/// The registered versions, and each family as a glob: what a user may have meant.
std::vector<std::string> version_words() {
  std::vector<std::string> words;
  for (const RegisteredVersion& version : versions()) {
    words.push_back(version.info.name);
    if (const std::string family = version.info.family + "_*"; !contains(words, family))
      words.push_back(family);
  }
  return words;
}

std::string unknown_version(const std::string& word) {
  const std::string hint = suggestion(word, version_words());
  return fmt::format("{} {}{}", is_glob(word) ? "no version matches" : "unknown version",
                     in_quotes(word), hint.empty() ? "; --list-versions shows them all" : hint);
}

/// What a spec says, on its way to a Spec.
class SpecReader {
 public:
  SpecReader(const fs::path& path, const Overrides& overrides, const std::string& typed, int device,
             const FoundFiles& found)
      : overrides_(overrides),
        device_(device),
        found_(found),
        typed_(!typed.empty()),
        shown_(typed.empty() ? path.string() : typed),
        errors_(shown_),
        yaml_(errors_) {
    spec_.path = path;
    request_.axes = all_axes();
  }

  Spec read() {
    read_text();
    if (const auto document = yaml_.parse(spec_.text))
      if (const auto root = yaml_.section(*document, place_of(*document), "", kSpecKeys))
        read_sections(*root);
    throw_if_wrong();
    return std::move(spec_);
  }

 private:
  // The order matters: the data file tells the default n and dim, --set replaces axes before they
  // are checked.
  void read_sections(const Section& root) {
    read_identity(root);
    read_versions(root);
    read_data(root);
    read_axes(root);
    apply_set();
    read_zip(root);
    check_axes();
    read_exclude(root);
    read_solve(root);
    read_measure(root);
    read_profile(root);
    read_figures(root);
    apply_options();
    if (can_plan_) {
      spec_.points = make_plan(request_, errors_);
      if (spec_.points.empty() && errors_.count() == 0)
        errors_.add(root.find("exclude")->key_place,
                    "nothing left to run: exclude leaves out every point");
    }
    throw_if_wrong();
    keep_only();
    keep_filtered();
  }

  void throw_if_wrong() const {
    if (errors_.count() > 0) throw SpecError(errors_.sorted());
  }

  void read_text() {
    std::error_code ignored;
    if (fs::is_directory(spec_.path, ignored))
      throw SpecError({shown_ + ": is a folder, not a spec"});
    std::ifstream file(spec_.path, std::ios::binary);
    if (!file)
      throw SpecError({fmt::format("{}: cannot be read: {}", shown_, std::strerror(errno))});
    // The size of a pipe or of /dev/zero is not known ahead.
    std::array<char, 4096> block;
    while (file && spec_.text.size() <= kLongestSpec) {
      file.read(block.data(), block.size());
      spec_.text.append(block.data(), static_cast<std::size_t>(file.gcount()));
    }
    if (file.bad())
      throw SpecError({fmt::format("{}: cannot be read: {}", shown_, std::strerror(errno))});
    if (spec_.text.size() > kLongestSpec)
      throw SpecError(
          {fmt::format("{}: is longer than {} bytes, which no spec needs; is it a data file?",
                       shown_, with_commas(kLongestSpec))});
    if (const std::size_t at = invalid_utf8(spec_.text); at != std::string::npos) {
      const std::size_t line = spec_.text.rfind('\n', at) + 1;  // npos + 1 is 0
      throw SpecError(
          {fmt::format("{}:{}:{}: the byte 0x{:02X} is not UTF-8; save the file as UTF-8", shown_,
                       std::count(spec_.text.begin(),
                                  spec_.text.begin() + static_cast<std::ptrdiff_t>(at), '\n') +
                           1,
                       at - line + 1, static_cast<unsigned char>(spec_.text[at]))});
    }
  }

  void read_identity(const Section& root) {
    for (const char* key : {"name", "versions", "axes", "data"})
      if (root.find(key) == nullptr)
        errors_.add(
            root.place,
            fmt::format("'{}' is missing; a spec needs name, versions, axes and data", key));
    yaml_.text(root, "name", spec_.name);
    yaml_.text(root, "title", spec_.title);
    const bool well_formed =
        !spec_.name.empty() &&
        spec_.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_-") == std::string::npos;
    if (const Entry* name = root.find("name");
        name != nullptr && name->value.IsScalar() && !well_formed)
      errors_.add(name->place,
                  fmt::format("name {} must be of lower-case letters, digits, '_' and '-' "
                              "(it names the folder of the results)",
                              in_quotes(spec_.name)));
    else if (spec_.name.size() > kLongestName)
      errors_.add(
          root.find("name")->place,
          fmt::format("name {} has {} characters; at most {} (it names the folder of the results)",
                      in_quotes(spec_.name),
                      with_commas(static_cast<std::int64_t>(spec_.name.size())), kLongestName));
    if (spec_.title.size() > kLongestTitle)
      errors_.add(
          root.find("title")->place,
          fmt::format("title {} has {} bytes; at most {}", in_quotes(spec_.title),
                      with_commas(static_cast<std::int64_t>(spec_.title.size())), kLongestTitle));
  }

  void read_versions(const Section& root) {
    const std::size_t before = errors_.count();
    if (const auto words = yaml_.words(root, "versions")) {
      if (root.find("versions")->value.size() == 0)
        errors_.add(root.find("versions")->place, "versions lists none; name at least one");
      for (const Word& word : *words) add_versions(word);
    }
    yaml_.text(root, "baseline", spec_.baseline);
    if (const Entry* entry = root.find("baseline"); entry != nullptr && entry->value.IsScalar()) {
      if (find_version(spec_.baseline) == nullptr)
        errors_.add(entry->place, "baseline: " + unknown_version(spec_.baseline));
      else if (errors_.count() == before && !names_version(spec_.baseline))
        errors_.add(
            entry->place,
            fmt::format("baseline '{}' is not among the versions; add it to them", spec_.baseline));
    }
    if (request_.versions.empty()) can_plan_ = false;
  }

  void add_versions(const Word& word) {
    bool matched = false;
    for (const RegisteredVersion& version : versions()) {
      if (is_glob(word.text) ? !glob_match(word.text, version.info.name)
                             : word.text != version.info.name)
        continue;
      matched = true;
      if (!names_version(version.info.name)) request_.versions.push_back(&version);
    }
    if (!matched) errors_.add(word.place, unknown_version(word.text));
  }

  bool names_version(const std::string& name) const {
    return std::any_of(
        request_.versions.begin(), request_.versions.end(),
        [&](const RegisteredVersion* version) { return version->info.name == name; });
  }

  void read_data(const Section& root) {
    std::vector<std::string> known = {"generator", "seed"};
    for (const auto& generator : data::generators())
      for (const std::string& key : generator.keys)
        if (!contains(known, key)) known.push_back(key);
    known.insert(known.end(), kFileKeys.begin(), kFileKeys.end());
    const auto section = yaml_.section(root, "data", known);
    if (!section) return;

    const Entry* generator = section->find("generator");
    const Entry* file = section->find("file");
    if (generator != nullptr && file != nullptr) {
      errors_.add(std::max(generator, file)->key_place,
                  "data has both a generator and a file; keep one of them");
      return;
    }
    if (generator == nullptr && file == nullptr) {
      errors_.add(section->place, "data needs either a generator or a file");
      return;
    }
    file != nullptr ? read_file_source(*section, *file) : read_generator(*section);
  }

  void read_generator(const Section& section) {
    const std::size_t before = errors_.count();
    std::vector<std::string> names;
    for (const auto& info : data::generators()) names.push_back(info.name);
    yaml_.choice(section, "generator", "generator", names, spec_.data.generator);
    for (const auto& info : data::generators()) {
      if (info.name != spec_.data.generator) continue;
      std::vector<std::string> own = {"seed"};
      own.insert(own.end(), info.keys.begin(), info.keys.end());
      for (const Entry& entry : section.entries)
        if (entry.key != "generator" && !contains(own, entry.key))
          errors_.add(entry.key_place,
                      fmt::format("generator '{}' has no key '{}'; its keys are {}", info.name,
                                  entry.key, join(own)));
    }
    yaml_.seed(section, "seed", spec_.data.seed);
    yaml_.whole(section, "centers", 1, spec_.data.centers);
    yaml_.real(section, "sigma", Sign::not_negative, spec_.data.sigma);
    read_range(section);
    if (errors_.count() > before) return;
    try {
      data::generate(spec_.data, 1, 1, 1);  // what only the generator knows about its options
    } catch (const data::DataError& error) {
      errors_.add(section.place, fmt::format("data: {}", error.what()));
    }
  }

  void read_range(const Section& section) {
    const Entry* entry = section.find("range");
    if (entry == nullptr) return;
    if (!entry->value.IsSequence() || entry->value.size() != 2) {
      errors_.add(entry->place, "data.range must be a list of two numbers, as in [0, 1]");
      return;
    }
    spec_.data.low =
        yaml_.real(entry->value[0], "data.range", place_of(entry->value[0]), Sign::any);
    spec_.data.high =
        yaml_.real(entry->value[1], "data.range", place_of(entry->value[1]), Sign::any);
    if (spec_.data.low && spec_.data.high && !(*spec_.data.low < *spec_.data.high))
      errors_.add(entry->place,
                  fmt::format("data.range must go from low to high, not from {} to {}",
                              entry->value[0].Scalar(), entry->value[1].Scalar()));
  }

  void read_file_source(const Section& section, const Entry& file) {
    has_file_ = true;
    const std::size_t before = errors_.count();
    for (const Entry& entry : section.entries)
      if (!contains(kFileKeys, entry.key))
        errors_.add(entry.key_place, fmt::format("a data file has no key '{}'; its keys are {}",
                                                 entry.key, join(kFileKeys)));
    yaml_.text(section, "file", spec_.data_file);
    yaml_.choice(section, "format", "format", data::formats(), spec_.data.format);
    yaml_.flag(section, "header", spec_.data.header);
    yaml_.whole(section, "index_column", 0, spec_.data.index_column);
    yaml_.whole(section, "label_column", std::numeric_limits<int>::min(), spec_.data.label_column);
    if (errors_.count() == before) data_extent_ = read_extent(spec_.data_file, file, spec_.data);
    if (data_extent_) spec_.data_extent = {data_extent_->n, data_extent_->dim};
  }

  struct Extent {
    std::int64_t n = 0;
    int dim = 0;
    Place place;
    std::string name;
  };

  /// Finds and reads the whole of `file`, which `entry` names; leaves its absolute path in
  /// `source`.
  std::optional<Extent> read_extent(const std::string& file, const Entry& entry,
                                    data::Source& source) {
    const fs::path beside = spec_.path.parent_path() / file;
    std::vector<fs::path> places = {beside, file};
    if (const auto before = found_.find(file); before != found_.end())
      places.insert(typed_ ? places.end() : places.begin(), before->second);
    std::error_code ignored;
    const auto place = std::find_if(places.begin(), places.end(), [&](const fs::path& path) {
      return fs::exists(path, ignored);
    });
    if (file.empty() || place == places.end()) {
      const std::string other = beside == fs::path(file) ? "" : fmt::format(" and '{}'", file);
      errors_.add(entry.place, fmt::format("{} {} was not found; looked for '{}'{}", entry.label,
                                           in_quotes(file), beside.string(), other));
      return std::nullopt;
    }
    try {
      // Read under the short path, which is the one that a message about the file should show.
      const fs::path& found = *place;
      source.file = found;
      const data::Dataset rows = data::read_file(source);
      source.file = fs::absolute(found).lexically_normal();
      if (invalid_utf8(source.file.string()) != std::string::npos) {
        errors_.add(entry.place, fmt::format("{} has a path that is not UTF-8: {}; rename it",
                                             in_quotes(file), source.file.string()));
        return std::nullopt;
      }
      return Extent{rows.n(), rows.dim(), entry.place, found.filename().string()};
    } catch (const data::DataError& error) {
      errors_.add(entry.place, fmt::format("{} cannot be used: {}", entry.label, error.what()));
      return std::nullopt;
    }
  }

  void read_axes(const Section& root) {
    request_.axes_place = root.place;
    if (const Entry* entry = root.find("axes")) request_.axes_place = entry->key_place;
    const auto section = yaml_.section(root, "axes", axis_names(), "axis");
    can_check_missing_axes_ = section.has_value();
    if (!section) return;
    for (const Entry& entry : section->entries) {
      Axis& axis = axis_named(entry.key);
      axis.listed = true;
      const std::size_t before = errors_.count();
      if (const auto words = yaml_.words(*section, entry.key)) {
        if (entry.value.size() == 0)
          errors_.add(entry.place,
                      fmt::format("axis '{}' has no values; list at least one", axis.name));
        for (const Word& word : *words) add_value(axis, word);
      }
      axis.broken = errors_.count() > before;
    }
  }

  Axis& axis_named(const std::string& name) {
    return *std::find_if(request_.axes.begin(), request_.axes.end(),
                         [&](const Axis& axis) { return axis.name == name; });
  }

  void add_value(Axis& axis, const Word& word) {
    if (axis.name == "precision") {
      if (const auto precision = parse_precision(word.text))
        axis.values.push_back({static_cast<std::int64_t>(*precision), word.place});
      else
        errors_.add(word.place, unknown_word("precision", word.text, precision_names()));
    } else if (const auto value =
                   read_whole(word.text, axis.name, axis.low, axis.high, word.place, errors_)) {
      axis.values.push_back({*value, word.place});
    }
  }

  void apply_set() {
    const Place place{0, 0, "--set"};
    std::set<std::string> seen;
    for (const std::string& option : overrides_.set) {
      const std::size_t equals = option.find('=');
      if (equals == std::string::npos) {
        errors_.add(place, fmt::format("{} must be axis=value,value", in_quotes(option)));
        continue;
      }
      const std::string name = option.substr(0, equals);
      if (!contains(axis_names(), name)) {
        errors_.add(place, unknown_word("axis", name, axis_names()));
        continue;
      }
      if (!seen.insert(name).second) {
        errors_.add(place, fmt::format("axis '{}' is set twice; write --set {}=value,value once",
                                       name, name));
        continue;
      }
      Axis& axis = axis_named(name);
      axis.values.clear();
      axis.listed = true;
      const std::size_t before = errors_.count();
      const auto texts = split_list(option.substr(equals + 1));
      if (texts.empty())
        errors_.add(place, fmt::format("axis '{}' has no values; list at least one", name));
      for (const std::string& text : texts) add_value(axis, {text, place});
      axis.broken = errors_.count() > before;
    }
  }

  void read_zip(const Section& root) {
    const Entry* entry = root.find("zip");
    if (entry == nullptr) return;
    const char* form = "zip must be a list of lists of axes, as in [[n, k]]";
    const std::size_t before = errors_.count();
    bool lists = entry->value.IsSequence();
    if (lists)
      for (const YAML::Node& group : entry->value) lists = lists && group.IsSequence();
    if (!lists) {
      errors_.add(entry->place, form);
    } else {
      for (const YAML::Node& group : entry->value) read_zip_group(group);
    }
    if (errors_.count() > before) can_plan_ = false;
  }

  void read_zip_group(const YAML::Node& group) {
    const std::size_t before = errors_.count();
    std::vector<std::string> names;
    for (const YAML::Node& item : group) {
      const std::string name = item.IsScalar() ? item.Scalar() : "";
      if (!item.IsScalar())
        errors_.add(place_of(item),
                    fmt::format("zip must list names of axes, not {}", describe(item)));
      else if (!contains(axis_names(), name))
        errors_.add(place_of(item), unknown_word("axis", name, axis_names()));
      else if (!zipped_.insert(name).second)
        errors_.add(place_of(item), fmt::format("axis '{}' is zipped twice", name));
      else if (!axis_named(name).listed)
        errors_.add(place_of(item), fmt::format("zip names '{}', but axes does not list it", name));
      else
        names.push_back(name);
    }
    if (errors_.count() > before) return;
    if (names.size() < 2) {
      errors_.add(place_of(group),
                  "zip needs two axes or more that advance together, as in [[n, k]]");
      return;
    }
    check_zip_lengths(names, place_of(group));
    request_.zips.push_back(names);
  }

  void check_zip_lengths(const std::vector<std::string>& names, Place place) {
    const std::size_t length = axis_named(names.front()).values.size();
    std::vector<std::string> lengths;
    bool equal = true;
    for (const std::string& name : names) {
      const Axis& axis = axis_named(name);
      if (axis.broken) return;  // its values are not all there
      if (axis.values.front().place.option == "--set") place = axis.values.front().place;
      equal = equal && axis.values.size() == length;
      lengths.push_back(fmt::format("{} has {}", name, axis.values.size()));
    }
    if (!equal)
      errors_.add(place, fmt::format("zipped axes need as many values each: {}", join(lengths)));
  }

  /// What only can be said when every axis has its final values.
  void check_axes() {
    if (data_extent_) {
      fill_default("n", data_extent_->n);
      fill_default("dim", data_extent_->dim);
      check_extent("n", data_extent_->n, "points");
      check_extent("dim", data_extent_->dim, "dimensions");
    }
    for (const AxisInfo& axis : kAxes) {
      const bool of_file = has_file_ && axis.name == std::string_view("dim");
      if (axis.default_value == kNoDefault || of_file) continue;
      fill_default(axis.name, axis.default_value != kCores
                                  ? axis.default_value
                                  : std::max(1u, std::thread::hardware_concurrency()));
    }
    if (can_check_missing_axes_) {
      if (!axis_named("n").listed && !has_file_)
        errors_.add(request_.axes_place,
                    "axes need 'n', the numbers of points, as in n: [1e4, 1e5]");
      if (!axis_named("k").listed)
        errors_.add(request_.axes_place,
                    "axes need 'k', the numbers of clusters, as in k: [5, 100]");
    }
    for (const Axis& axis : request_.axes) {
      if (axis.values.empty() || (axis.broken && zipped_.contains(axis.name))) can_plan_ = false;
      if (!zipped_.contains(axis.name)) check_duplicates({axis.name});
    }
    for (const auto& names : request_.zips) check_duplicates(names);
  }

  /// Gives an axis that is left out its value; also one without a good value, so that the others
  /// are still checked against each other. Nothing stands in for n.
  void fill_default(const std::string& name, std::int64_t value) {
    Axis& axis = axis_named(name);
    if (!axis.listed || (axis.values.empty() && name != "n"))
      axis.values = {{value, data_extent_ ? data_extent_->place : request_.axes_place}};
  }

  void check_extent(const std::string& name, std::int64_t available, const char* what) {
    for (const AxisValue& value : axis_named(name).values)
      if (value.number > available)
        errors_.add(value.place, fmt::format("{} = {} is more than the {} {} of {}", name,
                                             with_commas(value.number), with_commas(available),
                                             what, data_extent_->name));
  }

  /// `names`: one axis, or the axes of a zip, whose values together must differ.
  void check_duplicates(const std::vector<std::string>& names) {
    std::size_t length = axis_named(names.front()).values.size();
    for (const std::string& name : names) length = std::min(length, axis_named(name).values.size());
    std::set<std::vector<std::int64_t>> seen;
    for (std::size_t i = 0; i < length; ++i) {
      std::vector<std::int64_t> row;
      std::vector<std::string> texts;
      for (const std::string& name : names) {
        row.push_back(axis_named(name).values[i].number);
        texts.push_back(fmt::format("{} = {}", name, value_text(name, row.back())));
      }
      if (!seen.insert(row).second)
        errors_.add(axis_named(names.back()).values[i].place, join(texts) + " is listed twice");
    }
  }

  void read_exclude(const Section& root) {
    const Entry* entry = root.find("exclude");
    if (entry == nullptr) return;
    const std::size_t before = errors_.count();
    if (!entry->value.IsSequence()) {
      errors_.add(
          entry->place,
          fmt::format(
              "exclude must be a list of maps, as in [{{version: \"cpu_*\", n: \"> 1e6\"}}], "
              "not {}",
              describe(entry->value)));
    } else {
      for (const YAML::Node& node : entry->value) read_exclude_entry(node);
    }
    if (errors_.count() > before) can_plan_ = false;
  }

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
    if (key == "version" || key == "precision") {
      std::vector<std::string> names = precision_names();
      if (key == "version") {
        names.clear();
        for (const RegisteredVersion& version : versions()) names.push_back(version.info.name);
      }
      const bool known = std::any_of(names.begin(), names.end(), [&](const std::string& name) {
        return glob_match(text, name);
      });
      if (!known)
        errors_.add(place, key == "version" ? unknown_version(text)
                                            : unknown_word("precision", text, precision_names()));
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

  void read_solve(const Section& root) {
    const auto section = yaml_.section(
        root, "solve", {"iterations", "tolerance", "min_changes", "init", "init_file", "seed"});
    if (!section) return;
    yaml_.whole(*section, "iterations", 1, spec_.stop.iterations);
    yaml_.real(*section, "tolerance", Sign::not_negative, spec_.stop.tolerance);
    yaml_.whole(*section, "min_changes", 0, spec_.stop.min_changes,
                std::numeric_limits<std::int64_t>::max());
    yaml_.choice(*section, "init", "init", data::init_methods(), spec_.init.method);
    yaml_.seed(*section, "seed", spec_.init.seed);

    const Entry* init = section->find("init");
    const Entry* file = section->find("init_file");
    if (file == nullptr && spec_.init.method == "file")
      errors_.add(init->place, "init: file needs init_file, a file with one row a cluster");
    if (file == nullptr) return;
    yaml_.text(*section, "init_file", spec_.init_file);
    if (spec_.init.method != "file")
      errors_.add(file->key_place,
                  fmt::format("init_file needs init: file, but init is {}", spec_.init.method));
    else if (file->value.IsScalar())
      if (const auto extent = read_extent(spec_.init_file, *file, spec_.init.file))
        check_init(*extent);
  }

  void check_init(const Extent& centroids) {
    for (const AxisValue& k : axis_named("k").values)
      if (k.number != centroids.n)
        errors_.add(k.place,
                    fmt::format("k = {}, but {} has {} rows: init_file needs one row a cluster",
                                k.number, centroids.name, with_commas(centroids.n)));
    for (const AxisValue& dim : axis_named("dim").values)
      if (dim.number != centroids.dim && !axis_named("dim").broken)
        errors_.add(dim.place, fmt::format("dim = {}, but the rows of {} have {} values",
                                           dim.number, centroids.name, with_commas(centroids.dim)));
  }

  void read_measure(const Section& root) {
    const auto section = yaml_.section(root, "measure",
                                       {"launches", "warmup", "repetitions", "max_noise",
                                        "max_seconds", "l2", "timeout", "verify", "throttled"});
    if (!section) return;
    std::string l2 = "warm", throttled = "keep";
    yaml_.whole(*section, "launches", 1, spec_.measure.launches);
    yaml_.whole(*section, "warmup", 0, spec_.measure.warmup);
    yaml_.whole(*section, "repetitions", 1, spec_.measure.repetitions);
    yaml_.real(*section, "max_noise", Sign::positive, spec_.measure.max_noise);
    yaml_.real(*section, "max_seconds", Sign::positive, spec_.measure.max_seconds);
    yaml_.choice(*section, "l2", "state of l2", {"warm", "cold"}, l2);
    yaml_.real(*section, "timeout", Sign::positive, spec_.measure.timeout);
    yaml_.flag(*section, "verify", spec_.measure.verify);
    yaml_.choice(*section, "throttled", "way with throttled samples", {"keep", "retry"}, throttled);
    spec_.measure.l2_cold = l2 == "cold";
    spec_.measure.retry_throttled = throttled == "retry";
  }

  void read_profile(const Section& root) {
    const auto section = yaml_.section(root, "profile", {"nvtx", "counters", "timeline", "cpu"});
    if (!section) return;
    yaml_.flag(*section, "nvtx", spec_.profile.nvtx);
    yaml_.flag(*section, "timeline", spec_.profile.timeline);
    if (const auto words = yaml_.words(*section, "counters"))
      for (const Word& word : *words) add_counter(word);
    choose_words(*section, "cpu", "CPU counter", kCpuWords, spec_.profile.cpu);
  }

  void add_counter(const Word& word) {
    const std::size_t before = errors_.count();
    const auto& presets = profiling::presets();
    // CUPTI's names: unit__counter, then roll-up and sub-metric (CUPTI documentation, Metrics
    // Naming Conventions).
    static const std::regex raw(R"([a-z0-9_]+__[a-z0-9_]+(\.[a-z0-9_]+)*)");
    if (word.text.size() < 200 && std::regex_match(word.text, raw)) {
      if (const auto unknown = profiling::unknown_metric(word.text, device_)) {
        const std::string hint = suggestion(word.text, unknown->candidates);
        errors_.add(word.place,
                    fmt::format("unknown counter {}: {}{}", in_quotes(word.text), unknown->problem,
                                hint.empty() ? "; --list-metrics shows what it has" : hint));
      }
    } else if (!contains(presets, word.text)) {
      const std::string hint = suggestion(word.text, presets);
      errors_.add(word.place, fmt::format("unknown counter {}{}", in_quotes(word.text),
                                          hint.empty() ? "; the presets are " + join(presets) +
                                                             "; --list-metrics shows CUPTI's own"
                                                       : hint));
    }
    if (errors_.count() == before && !contains(spec_.profile.counters, word.text))
      spec_.profile.counters.push_back(word.text);
  }

  void read_figures(const Section& root) {
    choose_words(root, "figures", "figure", kFigures, spec_.figures);
  }

  /// A list of words from `known`, each kept once.
  void choose_words(const Section& section, const std::string& key, const std::string& kind,
                    const std::vector<std::string>& known, std::vector<std::string>& out) {
    const auto words = yaml_.words(section, key);
    if (!words) return;
    for (const Word& word : *words) {
      if (!contains(known, word.text))
        errors_.add(word.place, unknown_word(kind, word.text, known));
      else if (!contains(out, word.text))
        out.push_back(word.text);
    }
  }

  void apply_options() {
    const auto option = [&](const char* name, const std::string& message) {
      errors_.add({0, 0, name}, message);
    };
    if (overrides_.repetitions) {
      spec_.measure.repetitions = *overrides_.repetitions;
      if (*overrides_.repetitions < 1)
        option("--repetitions", fmt::format("must be at least 1, not {}", *overrides_.repetitions));
    }
    if (overrides_.warmup) {
      spec_.measure.warmup = *overrides_.warmup;
      if (*overrides_.warmup < 0)
        option("--warmup", fmt::format("must be at least 0, not {}", *overrides_.warmup));
    }
    if (overrides_.timeout) {
      spec_.measure.timeout = *overrides_.timeout;
      if (!(*overrides_.timeout > 0 && std::isfinite(*overrides_.timeout)))
        option("--timeout",
               fmt::format("must be a finite number above 0, not {}", *overrides_.timeout));
    }
    if (overrides_.seed) spec_.data.seed = spec_.init.seed = spec_.shuffle_seed = *overrides_.seed;
    if (overrides_.shuffle) spec_.shuffle = *overrides_.shuffle;
    if (overrides_.profile) apply_profile(*overrides_.profile);
  }

  void apply_profile(const std::string& list) {
    const Place place{0, 0, "--profile"};
    std::set<std::string> kinds;
    for (const std::string& word : split_list(list)) {
      if (!contains(kProfileKinds, word))
        errors_.add(place, unknown_word("kind", word, kProfileKinds));
      kinds.insert(word);
    }
    if (kinds.empty()) errors_.add(place, "names nothing; choose from " + join(kProfileKinds));
    if (kinds.contains("none") && kinds.size() > 1)
      errors_.add(place, "'none' goes with nothing else");
    const auto wanted = [&](const char* kind) {
      return kinds.contains(kind) || kinds.contains("all");
    };
    Profile& profile = spec_.profile;
    profile.nvtx = wanted("nvtx");
    profile.timeline = wanted("timeline");
    if (!wanted("counters")) profile.counters.clear();
    if (wanted("counters") && profile.counters.empty()) profile.counters = kDefaultCounters;
    if (!wanted("cpu")) profile.cpu.clear();
    if (wanted("cpu") && profile.cpu.empty()) profile.cpu = kCpuCounters;
  }

  void keep_only() {
    if (overrides_.only.empty()) return;
    const Place place{0, 0, "--only"};
    std::vector<std::string> names, globs;
    for (const RegisteredVersion* version : request_.versions) names.push_back(version->info.name);
    for (const std::string& list : overrides_.only)
      for (const std::string& glob : split_list(list)) globs.push_back(glob);
    if (globs.empty()) errors_.add(place, "names no version; this spec has " + join(names));
    for (const std::string& glob : globs) {
      if (std::any_of(names.begin(), names.end(),
                      [&](const auto& name) { return glob_match(glob, name); }))
        continue;
      const std::string hint = suggestion(glob, names);
      errors_.add(place, fmt::format("no version of this spec matches {}{}", in_quotes(glob),
                                     hint.empty() ? "; it has " + join(names) : hint));
    }
    throw_if_wrong();
    std::erase_if(spec_.points, [&](const Point& point) {
      return std::none_of(globs.begin(), globs.end(),
                          [&](const auto& glob) { return glob_match(glob, point.version); });
    });
    if (spec_.points.empty())
      errors_.add(place, "nothing left to run: exclude leaves out every point of these versions");
    throw_if_wrong();
  }

  void keep_filtered() {
    if (overrides_.filter.empty()) return;
    const Place place{0, 0, "--filter"};
    try {
      const Pattern filter(overrides_.filter);
      const std::size_t before = spec_.points.size();
      const std::string example = spec_.points.front().id;
      std::erase_if(spec_.points, [&](const Point& point) { return !filter.found_in(point.id); });
      if (spec_.points.empty())
        errors_.add(place, fmt::format("{} matches none of the {} points; one is {}",
                                       in_quotes(overrides_.filter),
                                       with_commas(static_cast<std::int64_t>(before)), example));
    } catch (const Pattern::Error& error) {
      errors_.add(place, error.what());
    }
  }

  const Overrides& overrides_;
  int device_;
  const FoundFiles& found_;
  bool typed_;
  std::string shown_;
  Errors errors_;
  YamlReader yaml_;
  Spec spec_;
  PlanRequest request_;
  std::optional<Extent> data_extent_;
  std::set<std::string> zipped_;
  bool has_file_ = false;
  bool can_check_missing_axes_ = false;
  bool can_plan_ = true;  // false: errors so far would only lead to more
};

nlohmann::json to_json(const data::Source& source, const std::string& file) {
  const auto or_null = [](const auto& value) {
    return value ? nlohmann::json(*value) : nlohmann::json(nullptr);
  };
  if (!source.generator.empty())
    return {
        {"generator", source.generator},
        {"seed", source.seed},
        {"range", source.low ? nlohmann::json{*source.low, *source.high} : nlohmann::json(nullptr)},
        {"centers", or_null(source.centers)},
        {"sigma", or_null(source.sigma)}};
  return {
      {"file", file},
      {"format", source.format.empty() ? nlohmann::json(nullptr) : nlohmann::json(source.format)},
      {"header", or_null(source.header)},
      {"index_column", or_null(source.index_column)},
      {"label_column", or_null(source.label_column)}};
}

}  // namespace

SpecError::SpecError(std::vector<std::string> all)
    : std::runtime_error(join(all, "\n")), errors(std::move(all)) {}

nlohmann::json Spec::resolved() const {
  nlohmann::json ids = nlohmann::json::array();
  for (const Point& point : points) ids.push_back(point.id);
  return {{"name", name},
          {"title", title},
          {"baseline", baseline.empty() ? nlohmann::json(nullptr) : nlohmann::json(baseline)},
          {"data", to_json(data, data_file)},
          {"solve",
           {{"iterations", stop.iterations},
            {"tolerance", stop.tolerance},
            {"min_changes", stop.min_changes},
            {"init", init.method},
            {"init_file", init_file.empty() ? nlohmann::json(nullptr) : nlohmann::json(init_file)},
            {"seed", init.seed}}},
          {"measure",
           {{"launches", measure.launches},
            {"warmup", measure.warmup},
            {"repetitions", measure.repetitions},
            {"max_noise", measure.max_noise},
            {"max_seconds", measure.max_seconds},
            {"l2", measure.l2_cold ? "cold" : "warm"},
            {"timeout", measure.timeout},
            {"verify", measure.verify},
            {"throttled", measure.retry_throttled ? "retry" : "keep"}}},
          {"profile",
           {{"nvtx", profile.nvtx},
            {"counters", profile.counters},
            {"timeline", profile.timeline},
            {"cpu", profile.cpu}}},
          {"shuffle", shuffle},
          {"shuffle_seed", shuffle_seed},
          {"figures", figures},
          {"points", ids}};
}

FoundFiles Spec::files() const {
  FoundFiles files;
  if (!data_file.empty()) files[data_file] = data.file.string();
  if (!init_file.empty()) files[init_file] = init.file.file.string();
  return files;
}

Spec load_spec(const fs::path& path, const Overrides& overrides, const std::string& typed,
               int device, const FoundFiles& found) {
  return SpecReader(path, overrides, typed, device, found).read();
}

}  // namespace lloyd
