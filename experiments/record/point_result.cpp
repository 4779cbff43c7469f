#include "experiments/record/point_result.h"

#include <algorithm>
#include <set>

#include "experiments/record/run_directory.h"
#include "experiments/text/text.h"
#include "kernels/core/status.h"

namespace lloyd {
namespace {

// Virtual machines often share a host's name. So where points of one host ran on several GPUs, as
// after a run was resumed elsewhere, the GPU is added to their place. Points on the CPU do not say
// which host it was.
void tell_hosts_apart(std::map<std::string, PointResult>& results) {
  std::map<std::string, std::set<std::string>> cards;
  for (const auto& [point, result] : results)
    if (!result.on_node && !result.card.empty()) cards[result.place].insert(result.card);
  for (auto& [point, result] : results)
    if (!result.on_node && cards[result.place].size() > 1)
      result.place += " with " + (result.card.empty() ? "an unknown GPU" : result.card);
}

// Adds a sample. `unit`: the launch or restart that it belongs to.
void add_sample(PointResult& result, const Row& row, const Turn& turn, bool has_restarts) {
  const int unit = has_restarts ? turn.restart : turn.launch;
  result.iteration_ms[unit].push_back(row.at("iteration_ms").get<double>());
  result.noise.push_back(sample_noise(row));
  // Rows of a resumed run may lack what only the summary reads.
  if (const auto iterations = as_int(row.value("iterations", Row())))
    result.iterations.push_back(*iterations);
  if (const Row inertia = row.value("inertia", Row()); inertia.is_number()) {
    result.inertia.push_back(inertia);
    if (has_restarts) {
      double& least = result.restarts.try_emplace(turn.restart, inertia).first->second;
      least = std::min(least, inertia.get<double>());
    }
  }
  result.solve_ms[unit].push_back(row.value("solve_ms", 0.0));
  if (const Row whole = row.value("end_to_end_ms", Row()); whole.is_number())
    result.end_to_end_ms[unit].push_back(whole);
}

void add_row(PointResult& result, const Row& row, bool has_restarts) {
  result.status = row.at("status").get<std::string>();
  result.oversubscribed = row.at("oversubscribed") == true;
  result.on_cpu = row.at("backend") == to_string(Backend::cpu);
  result.place = place_of(row);
  result.on_node = row.value("node", Row()).is_string();
  result.card = first_gpu_of(row);
  if (const auto gpu = row.find("gpu"); gpu != row.end() && gpu->is_string())
    result.gpu = gpu->get<std::string>();
  result.verified &= row.at("verified") == true;
  if (result.status == status::ok)
    add_sample(result, row, turn_of(row), has_restarts);
  else
    result.reason = row.at("reason").get<std::string>();
}

}  // namespace

Interval PointResult::interval_of(const Samples& samples) {
  std::vector<std::vector<double>> launches;
  for (const auto& [unit, of] : samples) launches.push_back(of);
  return launches_interval(launches);
}

std::map<std::string, PointResult> results_of(const Spec& spec,
                                              const std::vector<Row>& measurements) {
  std::map<std::string, PointResult> results;
  for (const Row& row : measurements)
    add_row(results[row.at("point").get<std::string>()], row, spec.restarts > 1);
  tell_hosts_apart(results);
  return results;
}

}  // namespace lloyd
