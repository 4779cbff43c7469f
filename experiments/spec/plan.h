// What a spec says about its points, read and checked, and how it becomes a plan.
#pragma once

#include <cstdint>
#include <string>
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

/// Collects the errors of a spec, so that all are told in one go.
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

struct AxisValue {
  std::int64_t number = 0;  // of axis `precision`: the enumerator
  Place place;
};

struct Axis {
  std::string name;
  std::int64_t low = 1, high = 0;  // the range that a value must keep
  std::vector<AxisValue> values;
  bool listed = false;  // given in the spec or by --set
  bool broken = false;  // some values were in error and are left out
};

/// Every axis, without values, in the order of kAxes.
std::vector<Axis> all_axes();
std::vector<std::string> axis_names();
/// A value of the axis as a user writes it.
std::string value_text(const std::string& axis, std::int64_t number);

/// One value of an `exclude` entry: a glob (version, precision) or a comparison (every other axis).
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

struct PlanRequest {
  std::vector<const RegisteredVersion*> versions;  // in the spec's order, each once
  std::vector<Axis> axes;                          // all of them, each with values
  std::vector<std::vector<std::string>> zips;      // names of axes; same numbers of values
  std::vector<ExcludeEntry> exclude;
  Place axes_place;
};

/// For each version in turn, the cross product of the axes that it uses (the last axis varies
/// fastest; zipped axes advance together, at the place of the first of them), without what is
/// excluded. Adds to `errors`, each with its place, points with k > n, points whose n × dim × 4
/// bytes overflow 64 bits, and a product too large to be meant.
std::vector<Point> make_plan(const PlanRequest& request, Errors& errors);

}  // namespace lloyd
