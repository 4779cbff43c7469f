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
  std::optional<FileExtent> data_extent;
  bool has_file = false;  // the data are a file, be it readable or not
  Place restarts_place;
  bool can_plan = true;  // false: errors so far would only lead to more

  Axis& axis_named(const std::string& name) {
    return *std::find_if(request.axes.begin(), request.axes.end(),
                         [&](const Axis& axis) { return axis.name == name; });
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

inline bool contains(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}
bool is_glob(const std::string& text);
/// The message for a name or glob that no version has.
std::string unknown_version(const std::string& word);

}  // namespace lloyd
