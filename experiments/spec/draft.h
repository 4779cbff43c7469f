// What the parts of the spec reader share. read_*.cpp read one part of a spec each, in the order of
// load_spec() (spec.cpp): the data file gives the default n and dim, and --set replaces axes before
// they are checked.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "experiments/spec/plan.h"
#include "experiments/spec/spec.h"
#include "experiments/spec/yaml_reader.h"

namespace lloyd {

/// A file that a spec names, read.
struct FileExtent {
  std::int64_t n = 0;
  int dim = 0;
  Place place;  // where the spec names it
  std::string name;
};

/// Where a source of points stands in the spec.
struct SourceOrigin {
  Place place;
  bool is_file = false;              // be it readable or not
  std::optional<FileExtent> extent;  // of a readable file
};

/// A spec on its way, and all that its parts have to know of each other.
struct Draft {
  Draft(const std::filesystem::path& path, const Overrides& overrides_in,
        const std::string& typed_in, int device_in, const FoundFiles& found_in)
      : overrides(overrides_in),
        found(found_in),
        typed(!typed_in.empty()),
        device(device_in),
        shown(typed_in.empty() ? path.string() : typed_in),
        errors(shown),
        yaml(errors) {
    spec.path = path;
    origins.resize(spec.data.size());
    request.axes = all_axes();
  }
  Draft(const Draft&) = delete;

  const Overrides& overrides;
  const FoundFiles& found;
  bool typed;         // a user typed the path
  int device;         // whose counters a spec may name
  std::string shown;  // the spec in messages
  Errors errors;
  YamlReader yaml;
  Spec spec;
  PlanRequest request;
  std::vector<SourceOrigin> origins;  // of the sources in spec.data, in their order
  Place restarts_place;
  bool can_plan = true;  // false: errors so far would only lead to more

  Axis& axis_named(const std::string& name) {
    return *std::find_if(request.axes.begin(), request.axes.end(),
                         [&](const Axis& axis) { return axis.name == name; });
  }
  /// Whether points come from a source only under its name.
  bool has_names() const { return !spec.data[0].name.empty(); }
  std::vector<std::string> source_names() const {
    std::vector<std::string> names;
    for (const data::NamedSource& source : spec.data)
      if (!source.name.empty()) names.push_back(source.name);
    return names;
  }
  /// The words that an axis takes: axis_words(), or the names of the sources.
  std::vector<std::string> words_of(const std::string& axis) const {
    return axis == "data" ? source_names() : axis_words(axis);
  }
  void throw_if_wrong() const {
    if (errors.count() > 0) throw SpecError(errors.sorted());
  }
};

/// The text of the spec at `path`, which messages call `shown`. Throws SpecError when it is none.
std::string read_spec_text(const std::filesystem::path& path, const std::string& shown);

void read_identity(Draft& draft, const Section& root);  // name and title
void read_versions(Draft& draft, const Section& root);  // versions and baseline
void read_data(Draft& draft, const Section& root);
void read_axes(Draft& draft, const Section& root);  // axes with --set, and zip
void read_exclude(Draft& draft, const Section& root);
void read_solve(Draft& draft, const Section& root);
/// Gives the input axes that the spec does not list the values of their keys.
void fill_input_axes(Draft& draft);
/// What a batch of problems excludes, in other parts of the spec.
void check_batches(Draft& draft);
void read_measure(Draft& draft, const Section& root);
void read_profile(Draft& draft, const Section& root);
void read_figures(Draft& draft, const Section& root);

/// The options of the command line that override what the spec says.
void apply_options(Draft& draft);
/// Leaves the points that --only and --filter choose.
void keep_chosen(Draft& draft);

/// Finds and reads the whole of `file`, which `entry` names; leaves its absolute path in `source`.
/// nullopt after an error.
std::optional<FileExtent> read_extent(Draft& draft, const std::string& file, const Entry& entry,
                                      data::Source& source);

bool is_glob(const std::string& text);
/// The message for a name or glob that no version has.
std::string unknown_version(const std::string& word);

}  // namespace lloyd
