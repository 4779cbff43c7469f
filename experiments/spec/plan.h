// What a spec says about its points, read and checked, and how it becomes a plan.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/spec/spec.h"
#include "kernels/core/version.h"

namespace lloyd {

/// Where something was written: a line and column of the spec (from 1), or an option of the command
/// line.
struct Place {
  int line = 0;
  int column = 0;
  std::string option;  // "--set"; then line and column mean nothing
};

/// Collects the errors of a spec, so that all are reported together.
class Errors {
 public:
  explicit Errors(std::string file) : file_(std::move(file)) {}
  void add(const Place& place, const std::string& message);
  std::size_t count() const { return errors_.size(); }
  /// In the order of the file, then those of the command line; each once.
  std::vector<std::string> sorted() const;

 private:
  struct Error {
    Place place;
    std::string message;
  };
  std::string file_;
  std::vector<Error> errors_;
};

struct AxisInfo;  // kernels/core/axes.h

struct AxisValue {
  std::int64_t number = 0;  // of an axis of words: the word's place among them
  Place place;
  std::string text;  // as point ids have it
};

struct Axis {
  std::string name;
  std::int64_t low = 1, high = 0;  // the range that a value must keep
  bool quiet = false;              // in ids only if listed
  std::vector<AxisValue> values;
  bool listed = false;  // given in the spec or by --set
  bool broken = false;  // some values were in error and are left out
};

/// Every axis, without values, in the order of kAxes.
std::vector<Axis> all_axes();
std::vector<std::string> axis_names();
/// The text of the axis, and where its values come from if a spec does not list it.
std::string axis_meaning(const AxisInfo& axis);
/// Whether the values of the axis are words instead of numbers.
bool takes_words(std::string_view axis);
/// The words that the axis takes. Empty if it takes numbers, or if the words are the spec's own.
std::vector<std::string> axis_words(std::string_view axis);
/// A value of the axis as a user writes it.
std::string value_text(std::string_view axis, std::int64_t number);

/// One value of an `exclude` entry: a glob (version, axes of words) or a comparison (other axes).
struct ExcludeTest {
  std::string glob;
  std::string comparison;  // "==", "!=", "<", "<=", ">", ">="
  std::int64_t number = 0;
};
struct ExcludeCondition {
  std::string key;                 // "version" or an axis
  std::vector<ExcludeTest> tests;  // any of
};
struct ExcludeEntry {
  std::vector<ExcludeCondition> conditions;  // all of
};

/// A source of points: what it says about the axes that the spec does not list.
struct PlanSource {
  bool generated = true;                    // a file has no seed
  std::map<std::string, AxisValue> values;  // by axis: of a file n and dim, of a generator its seed
};

struct PlanRequest {
  std::vector<const RegisteredVersion*> versions;  // in the spec's order, each once
  std::vector<Axis> axes;                          // all of them, each with values
  std::vector<std::vector<std::string>> zips;      // names of axes; same numbers of values
  std::vector<ExcludeEntry> exclude;
  std::vector<PlanSource> sources;  // in the order of Spec::data; axis data numbers them
  Place axes_place;
};

/// For each version in turn, the cross product of the axes that it uses (the last axis varies
/// fastest; zipped axes advance together, at the place of the first of them), without what is
/// excluded. Adds to `errors`, each with its place, points with k > n, points whose n × dim × 4
/// bytes overflow 64 bits, and a product too large to be meant.
std::vector<Point> make_plan(const PlanRequest& request, Errors& errors);

/// The axes that are listed although none of the versions reads them. They multiply nothing.
std::vector<std::string> unread_axes(const PlanRequest& request);

}  // namespace lloyd
