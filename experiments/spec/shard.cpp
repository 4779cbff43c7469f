#include "experiments/spec/shard.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "experiments/text/text.h"

namespace lloyd {
namespace {

// Multiply-adds per second, by orders of magnitude: one core, and a GPU. The versions of a problem
// stay together, so it matters only how the rates compare with each other and with kPointSeconds.
constexpr double kCpuRate = 1e9, kGpuRate = 1e12;
// What a point takes beside its solves: its worker, its data, its rows.
constexpr double kPointSeconds = 0.5;

double solve_operations(const Spec& spec, const Point& point) {
  return static_cast<double>(point.n) * point.k * point.dim * spec.stop.iterations;
}

/// Does not depend on `threads`, whose default is the number of cores there are.
double estimated_seconds(const Spec& spec, const Point& point) {
  const bool on_gpu = find_version(point.version)->info.backend == Backend::cuda;
  const double solves =
      static_cast<double>(spec.turns()) * (spec.measure.warmup + spec.measure.repetitions);
  const double seconds = solves * solve_operations(spec, point) / (on_gpu ? kGpuRate : kCpuRate);
  return kPointSeconds +
         std::min(seconds, static_cast<double>(spec.turns()) * spec.measure.timeout);
}

std::string problem_of(const Spec& spec, Point point) {
  if (spec.weak_scaling) point.n = 0;
  return point.inputs();
}

/// Points with the same text stay together: those of a problem, unless there are more parts than
/// problems.
std::string piece_of(const Spec& spec, const Point& point, bool each_alone) {
  return each_alone ? point.id : problem_of(spec, point);
}

struct Cost {
  std::string piece;
  double seconds = 0;
};

/// Of each piece, the most expensive first.
std::vector<Cost> costs_of(const Spec& spec, bool each_alone) {
  std::vector<Cost> costs;
  std::map<std::string, std::size_t> places;
  for (const Point& point : spec.points) {
    const auto [at, fresh] = places.emplace(piece_of(spec, point, each_alone), costs.size());
    // The float64 reference is solved once for all versions, unless only a sample is verified.
    const bool whole = spec.measure.verify && spec.measure.verify_sample == 0;
    if (fresh) costs.push_back({at->first, whole ? solve_operations(spec, point) / kCpuRate : 0});
    costs[at->second].seconds += estimated_seconds(spec, point);
  }
  std::ranges::stable_sort(costs, std::greater{}, &Cost::seconds);
  return costs;
}

}  // namespace

std::string to_string(const Shard& shard) { return fmt::format("{}/{}", shard.index, shard.count); }

std::optional<Shard> parse_shard(std::string_view text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const auto index = parse_whole(std::string(text.substr(0, slash))).as_int64();
  const auto count = parse_whole(std::string(text.substr(slash + 1))).as_int64();
  constexpr int kMostParts = 1'000'000;  // the most points of a plan
  if (!index || !count || *index < 1 || *count < *index || *count > kMostParts) return std::nullopt;
  return Shard{static_cast<int>(*index), static_cast<int>(*count)};
}

std::size_t problems_of(const Spec& spec) {
  std::set<std::string> problems;
  for (const Point& point : spec.points) problems.insert(problem_of(spec, point));
  return problems.size();
}

std::string why_no_more_parts(const Spec& spec) {
  return fmt::format("the sweep has {}", counted(spec.points.size(), "point"));
}

std::vector<int> divide(const Spec& spec, int count) {
  const bool each_alone = static_cast<std::size_t>(count) > problems_of(spec);
  std::vector<double> load(static_cast<std::size_t>(count), 0);
  std::map<std::string, int> part;
  for (const Cost& cost : costs_of(spec, each_alone)) {
    const auto least = std::ranges::min_element(load);
    *least += cost.seconds;
    part[cost.piece] = static_cast<int>(least - load.begin()) + 1;
  }
  std::vector<int> parts;
  for (const Point& point : spec.points)
    parts.push_back(part.at(piece_of(spec, point, each_alone)));
  return parts;
}

void keep_shard(Spec& spec, const Shard& shard) {
  if (static_cast<std::size_t>(shard.count) > spec.points.size())
    throw SpecError(
        {fmt::format("--shard: {} parts, but {}", shard.count, why_no_more_parts(spec))});
  const std::vector<int> parts = divide(spec, shard.count);
  std::vector<Point> kept;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    spec.sweep.push_back(spec.points[i].id);
    if (parts[i] == shard.index) kept.push_back(spec.points[i]);
  }
  spec.points = std::move(kept);
  spec.shard = shard;
}

}  // namespace lloyd
