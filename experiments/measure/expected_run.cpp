#include "experiments/measure/expected_run.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

namespace lloyd {
namespace {

int disturbed_runs(const Problem& problem) {
  const double work = static_cast<double>(problem.n) * problem.k * problem.dim *
                      std::max(1, problem.stop.iterations);
  return work <= 1e9 ? 5 : work <= 1e13 ? 3 : 2;
}

std::vector<double> inertias_of(const ReferenceRun& run) {
  std::vector<double> inertias;
  for (const ReferenceStep& step : run.steps) inertias.push_back(step.inertia);
  inertias.push_back(run.inertia);
  return inertias;
}

double relative_difference(double value, double expected) {
  if (value == expected) return 0;
  const double difference = std::abs(value - expected) / expected;
  return std::isfinite(difference) ? difference : std::numeric_limits<double>::max();
}

Spread no_spread(const ExpectedRun& expected) {
  Spread spread;
  spread.inertia.assign(expected.inertias.size(), 0);
  spread.fewest = spread.most = expected.iterations;
  return spread;
}

// Widens the spread to the differences of one more run.
void widen(Spread& spread, const ReferenceRun& run, const ExpectedRun& expected) {
  const std::vector<double> inertias = inertias_of(run);
  for (std::size_t t = 0; t < spread.inertia.size(); ++t)
    spread.inertia[t] = std::max(
        spread.inertia[t],
        relative_difference(inertias[std::min(t, inertias.size() - 1)], expected.inertias[t]));
  spread.centroids =
      std::max(spread.centroids, std::min(std::numeric_limits<double>::max(),
                                          centroid_distance(run.centroids, expected.centroids,
                                                            expected.counts, expected.inertia)));
  spread.changes = std::max(spread.changes, std::abs(run.next_changes - expected.next_changes));
  spread.fewest = std::min(spread.fewest, run.iterations);
  spread.most = std::max(spread.most, run.iterations);
}

nlohmann::json spread_json(const std::optional<Spread>& spread) {
  if (!spread) return nullptr;
  return {{"inertia", spread->inertia},
          {"centroids", spread->centroids},
          {"changes", spread->changes},
          {"fewest", spread->fewest},
          {"most", spread->most}};
}

std::optional<Spread> spread_from(const nlohmann::json& j) {
  if (j.is_null()) return std::nullopt;
  return Spread{j.at("inertia"), j.at("centroids"), j.at("changes"), j.at("fewest"), j.at("most")};
}

}  // namespace

ExpectedRun expected_run(Reference& reference, const Problem& problem, Distance distance,
                         std::optional<ExpectedRun> known) {
  if (known && known->spread(distance)) return *std::move(known);
  const ReferenceRun plain = reference_solve(reference, problem);
  ExpectedRun expected = known ? *std::move(known) : ExpectedRun{};
  expected.initial_inertia = plain.initial_inertia;
  expected.inertia = plain.inertia;
  expected.iterations = plain.iterations;
  expected.next_changes = plain.next_changes;
  expected.inertias = inertias_of(plain);
  expected.centroids = plain.centroids;
  expected.counts = plain.counts;
  Spread spread = no_spread(expected);
  for (int number = 1; number <= disturbed_runs(problem); ++number)
    widen(spread,
          disturbed_solve(reference, problem, distance, static_cast<std::uint64_t>(number), plain),
          expected);
  expected.spread(distance) = std::move(spread);
  if (expected.centroids.size() > ExpectedRun::kMostCells) {
    expected.centroids.clear();
    expected.counts.clear();
  }
  return expected;
}

Spread plain_sums_spread(Reference& reference, const Problem& problem,
                         const ExpectedRun& expected) {
  Spread spread = no_spread(expected);
  widen(spread, plain_sums_solve(reference, problem), expected);
  // The difference of one run can be 0 by chance where it changes its sign.
  std::partial_sum(spread.inertia.begin(), spread.inertia.end(), spread.inertia.begin(),
                   [](double a, double b) { return std::max(a, b); });
  return spread;
}

double centroid_distance(std::span<const double> a, std::span<const double> b,
                         std::span<const std::int64_t> counts, double inertia) {
  if (counts.empty()) return 0;
  const std::size_t dim = a.size() / counts.size();
  double squares = 0;
  for (std::size_t c = 0; c < a.size(); ++c) {
    const auto count = static_cast<double>(std::max<std::int64_t>(1, counts[c / dim]));
    squares += count * (a[c] - b[c]) * (a[c] - b[c]);
  }
  if (squares == 0) return 0;
  const double distance = std::sqrt(squares / inertia);
  return std::isnan(distance) ? std::numeric_limits<double>::infinity() : distance;
}

nlohmann::json to_json(const ExpectedRun& run) {
  return {{"initial_inertia", run.initial_inertia},
          {"inertia", run.inertia},
          {"iterations", run.iterations},
          {"next_changes", run.next_changes},
          {"inertias", run.inertias},
          {"centroids", run.centroids},
          {"counts", run.counts},
          {"direct", spread_json(run.direct)},
          {"expanded", spread_json(run.expanded)}};
}

ExpectedRun expected_run_from_json(const nlohmann::json& j) {
  return {j.at("initial_inertia"),
          j.at("inertia"),
          j.at("iterations"),
          j.at("next_changes"),
          j.at("inertias"),
          j.at("centroids"),
          j.at("counts"),
          spread_from(j.at("direct")),
          spread_from(j.at("expanded")),
          std::nullopt};
}

}  // namespace lloyd
