#include "experiments/spec/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>
#include <unordered_set>

#include "experiments/text/text.h"
#include "kernels/core/axes.h"
#include "kernels/core/limits.h"

namespace lloyd {
namespace {

// A product beyond this is a slip of the pen (10 values on each of 6 axes), and would only fill the
// memory.
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
constexpr std::uint64_t kMostPoints = 300;  // or a fuzzer would spend its time on long plans
#else
constexpr std::uint64_t kMostPoints = 1'000'000;
#endif
constexpr int kBytesPerValue = 4;  // the harness hands out float

using Coordinate = std::pair<const Axis*, const AxisValue*>;
using Coordinates = std::vector<Coordinate>;

const AxisValue* find(const Coordinates& coordinates, std::string_view axis) {
  for (const auto& [known, value] : coordinates)
    if (known->name == axis) return value;
  return nullptr;
}

bool uses(const VersionInfo& info, const std::string& axis) {
  const auto known =
      std::find_if(kAxes.begin(), kAxes.end(), [&](const AxisInfo& a) { return a.name == axis; });
  if (known->gpu) return info.backend == Backend::cuda && !info.external;
  return known->tunable == nullptr || contains(info.axes, axis);
}

/// The axes that advance together, each group at the place of its first axis.
std::vector<std::vector<const Axis*>> groups_of(const PlanRequest& request) {
  std::vector<std::vector<const Axis*>> groups;
  std::set<std::string> placed;
  for (const Axis& axis : request.axes) {
    if (placed.contains(axis.name)) continue;
    std::vector<const Axis*> group;
    const auto zip = std::find_if(request.zips.begin(), request.zips.end(),
                                  [&](const auto& names) { return contains(names, axis.name); });
    for (const Axis& member : request.axes) {
      const bool together = zip != request.zips.end() &&
                            std::find(zip->begin(), zip->end(), member.name) != zip->end();
      if (!together && &member != &axis) continue;
      group.push_back(&member);
      placed.insert(member.name);
    }
    groups.push_back(std::move(group));
  }
  return groups;
}

/// What a group contributes to a version: its rows, without the axes that the version does not use
/// and without the repetitions that leaving them out makes.
std::vector<Coordinates> project(const std::vector<const Axis*>& group, const VersionInfo& info) {
  std::vector<Coordinates> rows;
  std::set<std::vector<std::int64_t>> seen;
  std::size_t length = 0;
  for (const Axis* axis : group) length = std::max(length, axis->values.size());
  for (std::size_t i = 0; i < length; ++i) {
    Coordinates row;
    std::vector<std::int64_t> numbers;
    for (const Axis* axis : group) {
      if (!uses(info, axis->name)) continue;
      row.emplace_back(axis, &value_in_row(*axis, i));
      numbers.push_back(row.back().second->number);
    }
    if (seen.insert(numbers).second) rows.push_back(std::move(row));
  }
  return rows;
}

bool holds(const ExcludeTest& test, std::int64_t number) {
  if (test.comparison == "==") return number == test.number;
  if (test.comparison == "!=") return number != test.number;
  if (test.comparison == "<") return number < test.number;
  if (test.comparison == "<=") return number <= test.number;
  if (test.comparison == ">") return number > test.number;
  return number >= test.number;
}

bool excluded(const ExcludeEntry& entry, const VersionInfo& info, const Coordinates& coordinates) {
  return std::all_of(entry.conditions.begin(), entry.conditions.end(), [&](const auto& condition) {
    const AxisValue* value =
        condition.key == "version" ? nullptr : find(coordinates, condition.key);
    if (condition.key != "version" && value == nullptr)
      return false;  // the version has no such axis
    return std::any_of(condition.tests.begin(), condition.tests.end(),
                       [&](const ExcludeTest& test) {
                         if (condition.key == "version") return glob_match(test.glob, info.name);
                         if (!test.glob.empty()) return glob_match(test.glob, value->text);
                         return holds(test, value->number);
                       });
  });
}

Point make_point(const PlanRequest& request, const VersionInfo& info,
                 const Coordinates& coordinates) {
  const auto number = [&](const char* axis) -> std::optional<std::int64_t> {
    const AxisValue* value = find(coordinates, axis);
    return value == nullptr ? std::nullopt : std::optional(value->number);
  };
  Point point;
  point.version = info.name;
  point.n = find(coordinates, "n")->number;
  point.k = static_cast<int>(*number("k"));
  point.dim = static_cast<int>(*number("dim"));
  point.batch = static_cast<int>(*number("batch"));
  point.precision = static_cast<Precision>(*number("precision"));
  for (const PointTunable& axis : kPointTunables) point.*axis.value = number(axis.name);
  const auto seed = [&](const char* axis) {
    return static_cast<std::uint64_t>(find(coordinates, axis)->number);
  };
  point.init = find(coordinates, "init")->text;
  if (point.init != "file") point.init_seed = seed("init_seed");
  if (const AxisValue* memory = find(coordinates, "host_memory")) point.host_memory = memory->text;
  const AxisValue* source = find(coordinates, "data");
  point.data = source->text;
  if (request.sources.at(static_cast<std::size_t>(source->number)).generated)
    point.data_seed = seed("data_seed");
  point.id = info.name;
  for (const Axis& axis : request.axes) {
    const AxisValue* value = find(coordinates, axis.name);
    const bool without_seed = (axis.name == "init_seed" && !point.init_seed) ||
                              (axis.name == "data_seed" && !point.data_seed);
    if (value == nullptr || without_seed) continue;
    // A table of single problems does not speak of batches.
    if (axis.name == "batch" && axis.values.size() == 1 && value->number == 1) continue;
    // A source that has a name is always told.
    if (axis.name == "data" ? point.data.empty() : axis.quiet && !axis.listed) continue;
    point.id += fmt::format("/{}:{}", axis.name, value->text);
  }
  return point;
}

/// Replaces the values of axes that the spec does not list by those of the point's source.
void take_own_values(const PlanRequest& request, Coordinates& coordinates) {
  const std::size_t at = static_cast<std::size_t>(find(coordinates, "data")->number);
  for (auto& [axis, value] : coordinates)
    if (const auto own = request.sources.at(at).values.find(axis->name);
        !axis->listed && own != request.sources[at].values.end())
      value = &own->second;
}

/// An option of the command line is to blame where it gave either value; else the spec's
/// `preferred` place.
const Place& blame(const Place& preferred, const Place& other) {
  return preferred.option.empty() && !other.option.empty() ? other : preferred;
}

/// Tells each fault once for each value that carries it, however many points share it.
class PointChecks {
 public:
  PointChecks(const PlanRequest& request, Errors& errors) : request_(request), errors_(errors) {}

  void check(const Point& point, const Coordinates& coordinates) {
    const AxisValue* n = find(coordinates, "n");
    const AxisValue* k = find(coordinates, "k");
    const AxisValue* dim = find(coordinates, "dim");
    check_extent("n", *n, "points", coordinates);
    check_extent("dim", *dim, "dimensions", coordinates);
    if (point.k > point.n && more_clusters_.insert(k).second)
      errors_.add(
          blame(k->place, n->place),
          fmt::format(
              "k = {} exceeds n = {}: a cluster needs a point of its own; leave the pair out with "
              "exclude: [{{k: {}, n: \"< {}\"}}], or pair the values with zip: [[n, k]]",
              point.k, point.n, point.k, point.k));
    if (point.n >
            std::numeric_limits<std::int64_t>::max() / kBytesPerValue / point.dim / point.batch &&
        overflows_.insert(n).second)
      errors_.add(
          blame(n->place, dim->place),
          fmt::format(
              "n = {} points of dim = {}{} overflow: {} bytes per value make more than 2^63 bytes",
              with_commas(point.n), with_commas(point.dim),
              point.batch > 1 ? fmt::format(" in batches of {}", with_commas(point.batch)) : "",
              kBytesPerValue));
    if (point.batch > 1) check_batch(point, *find(coordinates, "batch"));
  }

 private:
  /// Each problem of a batch has points and initial centroids of its own, drawn with its own seeds.
  void check_batch(const Point& point, const AxisValue& batch) {
    if (!point.data_seed && batches_of_file_.insert(&batch).second)
      errors_.add(batch.place, fmt::format("batch = {} needs a generator, which draws each "
                                           "problem's points: a file has the points of one problem",
                                           batch.text));
    if (!point.init_seed && batches_from_file_.insert(&batch).second)
      errors_.add(batch.place, fmt::format("batch = {} needs initial centroids that are drawn from "
                                           "a seed, but init is file",
                                           batch.text));
  }

  /// A spec with a single source is told of a file that is too small before there are points
  /// (read_axes.cpp).
  void check_extent(const char* axis, const AxisValue& value, const char* what,
                    const Coordinates& coordinates) {
    const AxisValue& data = *find(coordinates, "data");
    const PlanSource& source = request_.sources.at(static_cast<std::size_t>(data.number));
    const auto own = source.values.find(axis);
    if (data.text.empty() || own == source.values.end() || source.generated) return;
    if (value.number <= own->second.number || !too_many_.insert({&value, &data}).second) return;
    errors_.add(blame(value.place, data.place),
                fmt::format("{} = {} is more than the {} {} of data source {}; leave the pair out "
                            "with exclude: [{{data: {}, {}: \"> {}\"}}]",
                            axis, with_commas(value.number), with_commas(own->second.number), what,
                            data.text, data.text, axis, own->second.number));
  }

  const PlanRequest& request_;
  Errors& errors_;
  std::set<const AxisValue*> more_clusters_, overflows_, batches_of_file_, batches_from_file_;
  std::set<std::pair<const AxisValue*, const AxisValue*>> too_many_;
};

/// Calls `visit` with one row of each group, in order, the last group fastest.
template <typename Visit>
void for_each_combination(const std::vector<std::vector<Coordinates>>& groups, Visit visit) {
  std::vector<std::size_t> at(groups.size(), 0);
  for (;;) {
    Coordinates coordinates;
    for (std::size_t g = 0; g < groups.size(); ++g)
      coordinates.insert(coordinates.end(), groups[g][at[g]].begin(), groups[g][at[g]].end());
    visit(coordinates);
    std::size_t g = groups.size();
    while (g > 0 && ++at[g - 1] == groups[g - 1].size()) at[--g] = 0;
    if (g == 0) return;
  }
}

}  // namespace

const AxisValue& value_in_row(const Axis& axis, std::size_t row) {
  return axis.values[axis.values.size() == 1 ? 0 : row];
}

std::vector<Point> make_plan(const PlanRequest& request, Errors& errors) {
  const auto groups = groups_of(request);
  std::vector<std::vector<std::vector<Coordinates>>> projected;  // version × group × row
  double product_total = 0;                                      // a double cannot wrap around
  for (const RegisteredVersion* version : request.versions) {
    double product = 1;
    auto& of_version = projected.emplace_back();
    for (const auto& group : groups) {
      of_version.push_back(project(group, version->info));
      product *= static_cast<double>(of_version.back().size());
    }
    product_total += product;
  }
  if (product_total > static_cast<double>(kMostPoints)) {
    errors.add(
        request.axes_place,
        fmt::format("the axes make {:.3g} points; a plan holds at most {}: list fewer values, "
                    "or let axes advance together with zip",
                    product_total, with_commas(kMostPoints)));
    return {};
  }

  std::vector<Point> points;
  std::unordered_set<std::string> ids;  // a point without a seed appears once for each seed
  PointChecks checks(request, errors);
  for (std::size_t v = 0; v < request.versions.size(); ++v) {
    const VersionInfo& info = request.versions[v]->info;
    for_each_combination(projected[v], [&](Coordinates coordinates) {
      take_own_values(request, coordinates);
      for (const ExcludeEntry& entry : request.exclude)
        if (excluded(entry, info, coordinates)) return;
      Point point = make_point(request, info, coordinates);
      if (!ids.insert(point.id).second) return;
      points.push_back(std::move(point));
      checks.check(points.back(), coordinates);
    });
  }
  return points;
}

std::vector<std::string> unread_axes(const PlanRequest& request) {
  std::vector<std::string> unread;
  for (const Axis& axis : request.axes)
    if (axis.listed && std::ranges::none_of(request.versions, [&](const RegisteredVersion* each) {
          return uses(each->info, axis.name);
        }))
      unread.push_back(axis.name);
  return unread;
}

}  // namespace lloyd
