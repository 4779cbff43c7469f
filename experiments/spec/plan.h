// How what a spec says about its points becomes a plan.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "experiments/spec/axis.h"
#include "experiments/spec/errors.h"
#include "experiments/spec/spec.h"
#include "kernels/core/version.h"

namespace lloyd {

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
  std::vector<std::vector<std::string>> zips;      // names of axes; as many values each, or one
  std::vector<ExcludeEntry> exclude;
  std::vector<PlanSource> sources;  // in the order of Spec::data; axis data numbers them
  Place axes_place;
};

/// The value of a zipped axis in a row of its group. A single value is in all rows.
const AxisValue& value_in_row(const Axis& axis, std::size_t row);

/// For each version in turn, the cross product of the axes that it uses (the last axis varies
/// fastest; zipped axes advance together, at the place of the first of them), without what is
/// excluded. Adds to `errors`, each with its place, points with k > n, points whose n × dim × 4
/// bytes overflow 64 bits, and a product too large to be meant.
std::vector<Point> make_plan(const PlanRequest& request, Errors& errors);

/// The axes that are listed although none of the versions reads them. They multiply nothing.
std::vector<std::string> unread_axes(const PlanRequest& request);

}  // namespace lloyd
