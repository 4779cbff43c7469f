// The axes as a spec lists them: names, words and values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/spec/errors.h"

namespace lloyd {

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

}  // namespace lloyd
