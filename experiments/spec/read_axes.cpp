#include <fmt/format.h>

#include <set>
#include <string_view>

#include "experiments/spec/draft.h"
#include "experiments/text/text.h"
#include "kernels/core/axes.h"
#include "kernels/core/cores.h"
#include "kernels/core/limits.h"

namespace lloyd {
namespace {

/// Reads the values of the axes, and which of them advance together.
class AxesReader {
 public:
  explicit AxesReader(Draft& draft)
      : draft_(draft), errors_(draft.errors), yaml_(draft.yaml), request_(draft.request) {}

  void read(const Section& root) {
    read_axes(root);
    apply_set();
    read_zip(root);
    check_axes();
  }

 private:
  void read_axes(const Section& root) {
    request_.axes_place = root.place;
    if (const Entry* entry = root.find("axes")) request_.axes_place = entry->key_place;
    const Entry* axes = root.find("axes");
    if (axes == nullptr) return;
    const auto section = yaml_.section(axes->value, axes->place, "axes", axis_names(), "axis");
    can_check_missing_axes_ = section.has_value();
    if (!section) return;
    for (const Entry& entry : section->entries) {
      Axis& axis = draft_.axis_named(entry.key);
      axis.listed = true;
      const std::size_t before = errors_.count();
      if (const auto words = yaml_.words(entry)) {
        if (words->empty() && errors_.count() == before)
          errors_.add(entry.place,
                      fmt::format("axis '{}' has no values; list at least one", axis.name));
        for (const Word& word : *words) add_value(axis, word);
      }
      axis.broken = errors_.count() > before;
    }
  }

  void add_value(Axis& axis, const Word& word) {
    if (takes_words(axis.name)) {
      const std::vector<std::string> words = draft_.words_of(axis.name);
      if (words.empty()) {
        errors_.add(word.place,
                    fmt::format("axis '{}' needs sources that have names, as in data: [{{name: {}, "
                                "generator: uniform}}]",
                                axis.name, word.text));
        return;
      }
      const auto at = std::ranges::find(words, word.text);
      if (at != words.end())
        axis.values.push_back({at - words.begin(), word.place, word.text});
      else
        errors_.add(word.place, unknown_word(axis.name, word.text, words));
    } else if (const auto value =
                   read_whole(word.text, axis.name, axis.low, axis.high, word.place, errors_)) {
      axis.values.push_back({*value, word.place, std::to_string(*value)});
    }
  }

  void apply_set() {
    const Place place{0, 0, "--set"};
    std::set<std::string> seen;
    for (const std::string& option : draft_.overrides.set) {
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
      Axis& axis = draft_.axis_named(name);
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
    const std::size_t before = errors_.count();
    const YAML::Node& value = entry->value;
    std::size_t groups = 0;
    if (value.IsSequence())
      for (const YAML::Node& item : value) groups += item.IsSequence();
    if (value.IsSequence() && value.size() > 0 && groups == 0) {  // [n, k]: a list of one
      read_zip_group(value);
    } else if (value.IsSequence() && groups == value.size()) {
      for (const YAML::Node& group : value) read_zip_group(group);
    } else {
      errors_.add(entry->place,
                  "zip must be a list of axes, as in [n, k], or a list of such lists");
    }
    if (errors_.count() > before) draft_.can_plan = false;
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
      else if (!draft_.axis_named(name).listed)
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
    std::set<std::size_t> several;  // a single value goes with all values of the others
    std::vector<std::string> lengths;
    for (const std::string& name : names) {
      const Axis& axis = draft_.axis_named(name);
      if (axis.broken) return;  // its values are not all there
      if (axis.values.front().place.option == "--set") place = axis.values.front().place;
      if (axis.values.size() != 1) several.insert(axis.values.size());
      lengths.push_back(fmt::format("{} has {}", name, axis.values.size()));
    }
    if (several.size() > 1)
      errors_.add(place, fmt::format("zipped axes need the same number of values, or one: {}",
                                     join(lengths)));
  }

  /// What only can be said when every axis has its final values.
  void check_axes() {
    const std::vector<const SourceOrigin*> sources = fill_sources();
    const auto is_file = [](const SourceOrigin* source) { return source->is_file; };
    const bool all_files = std::ranges::all_of(sources, is_file);
    // Values that stand in for those of each source (take_own_values() in plan.cpp).
    if (const std::optional<FileExtent>& extent = sources[0]->extent; all_files && extent) {
      fill_default("n", extent->n, extent->place);
      fill_default("dim", extent->dim, extent->place);
      if (!draft_.has_names()) {
        check_extent("n", extent->n, "points", extent->name);
        check_extent("dim", extent->dim, "dimensions", extent->name);
      }
    }
    for (const AxisInfo& axis : kAxes) {
      const bool of_file = all_files && axis.name == std::string_view("dim");
      if (axis.default_value == kNoDefault || axis.default_value == kDefaultOfKey || of_file)
        continue;
      fill_default(axis.name, defaults_to_cores(axis) ? available_cores() : axis.default_value,
                   request_.axes_place);
    }
    if (can_check_missing_axes_) {
      if (!draft_.axis_named("n").listed && !all_files)
        errors_.add(request_.axes_place,
                    "axes need 'n', the numbers of points, as in n: [1e4, 1e5]");
      if (!draft_.axis_named("k").listed)
        errors_.add(request_.axes_place,
                    "axes need 'k', the numbers of clusters, as in k: [5, 100]");
    }
    for (const Axis& axis : request_.axes) {
      if ((axis.values.empty() && (!axis.quiet || axis.listed)) ||
          (axis.broken && zipped_.contains(axis.name)))
        draft_.can_plan = false;
      if (!zipped_.contains(axis.name)) check_duplicates({axis.name});
    }
    for (const auto& names : request_.zips) check_duplicates(names);
  }

  /// Gives an axis that is left out its value; also one without a good value, so that the others
  /// are still checked against each other. Nothing stands in for n.
  void fill_default(const std::string& name, std::int64_t value, const Place& place) {
    Axis& axis = draft_.axis_named(name);
    if (!axis.listed || (axis.values.empty() && name != "n"))
      axis.values = {{value, place, value_text(name, value)}};
  }

  /// Gives axis `data` all sources if the spec does not choose, and each source its own size.
  /// Returns the sources that have points.
  std::vector<const SourceOrigin*> fill_sources() {
    Axis& axis = draft_.axis_named("data");
    for (std::size_t i = 0; i < draft_.spec.data.size(); ++i) {
      const data::NamedSource& named = draft_.spec.data[i];
      const SourceOrigin& origin = draft_.origins[i];
      PlanSource& source = request_.sources.emplace_back();
      source.generated = !origin.is_file;
      if (const std::optional<FileExtent>& extent = origin.extent)
        source.values = {{"n", {extent->n, extent->place, std::to_string(extent->n)}},
                         {"dim", {extent->dim, extent->place, std::to_string(extent->dim)}}};
      if (!axis.listed)
        axis.values.push_back({static_cast<std::int64_t>(i), origin.place, named.name});
    }
    std::vector<const SourceOrigin*> used;
    for (const AxisValue& value : axis.values)
      used.push_back(&draft_.origins.at(static_cast<std::size_t>(value.number)));
    if (used.empty()) used.push_back(&draft_.origins[0]);  // the axis is in error
    return used;
  }

  void check_extent(const std::string& name, std::int64_t available, const char* what,
                    const std::string& file) {
    for (const AxisValue& value : draft_.axis_named(name).values)
      if (value.number > available)
        errors_.add(value.place,
                    fmt::format("{} = {} is more than the {} {} of {}", name,
                                with_commas(value.number), with_commas(available), what, file));
  }

  /// `names`: one axis, or the axes of a zip, whose values together must differ.
  void check_duplicates(const std::vector<std::string>& names) {
    std::size_t length = 1;
    for (const std::string& name : names) {
      const std::size_t size = draft_.axis_named(name).values.size();
      if (size == 0) return;
      if (size > 1) length = length > 1 ? std::min(length, size) : size;
    }
    std::set<std::vector<std::int64_t>> seen;
    for (std::size_t i = 0; i < length; ++i) {
      std::vector<std::int64_t> row;
      std::vector<std::string> texts;
      Place place;
      for (const std::string& name : names) {
        const Axis& axis = draft_.axis_named(name);
        const AxisValue& value = value_in_row(axis, i);
        row.push_back(value.number);
        texts.push_back(fmt::format("{} = {}", name, value.text));
        if (axis.values.size() > 1) place = value.place;
      }
      if (!seen.insert(row).second) errors_.add(place, join(texts) + " is listed twice");
    }
  }

  Draft& draft_;
  Errors& errors_;
  YamlReader& yaml_;
  PlanRequest& request_;
  std::set<std::string> zipped_;
  bool can_check_missing_axes_ = false;
};

}  // namespace

void read_axes(Draft& draft, const Section& root) { AxesReader(draft).read(root); }

}  // namespace lloyd
