// Divides a sweep into parts that can run on different machines.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/spec/spec.h"

namespace lloyd {

std::string to_string(const Shard& shard);
/// Reads "2/3". nullopt if it is not a part from 1 to the number of parts.
std::optional<Shard> parse_shard(std::string_view text);

/// The number of problems (Point::inputs()). Ratios are formed within a problem, so its points,
/// those of the baseline among them, stay together in up to so many parts. In weak scaling all
/// sizes of a problem are one, because they are compared with each other.
std::size_t problems_of(const Spec& spec);
/// Why a sweep has no more parts than points: "the sweep has 3 points".
std::string why_no_more_parts(const Spec& spec);

/// The part (from 1 to `count`) of each point. Decided by the plan alone, so that every machine
/// divides a sweep in the same way: the most expensive problem first, each to the part that has
/// least to do so far. With more parts than problems, points are dealt one by one.
std::vector<int> divide(const Spec& spec, int count);

/// Leaves only the points of a part in `spec`. Throws SpecError if there are fewer points than
/// parts.
void keep_shard(Spec& spec, const Shard& shard);

}  // namespace lloyd
