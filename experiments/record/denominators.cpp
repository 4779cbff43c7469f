#include "experiments/record/denominators.h"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/core/status.h"

namespace lloyd {
namespace {

// Two models of GPUs are two machines, even in one host.
bool comparable(const Denominator& each, const PointResult& result) {
  return each.gpu.empty() || result.gpu.empty() || each.gpu == result.gpu;
}

}  // namespace

Denominators::Denominators(const Spec& spec, const std::map<std::string, PointResult>& results)
    : best_cpu_(spec.baseline == kBestCpu) {
  for (const Point& point : spec.points) {
    const auto found = results.find(point.id);
    if (found == results.end() || found->second.status != status::ok) continue;
    const PointResult& result = found->second;
    if (best_cpu_ ? !result.on_cpu || !result.verified : point.version != spec.baseline) continue;
    const Denominator fresh{point.precision, point.version, result.gpu, result.interval().median};
    std::vector<Denominator>& known = of_[point.inputs()][result.place];
    const auto same = std::ranges::find_if(known, [&](const Denominator& each) {
      return each.precision == fresh.precision && each.gpu == fresh.gpu;
    });
    if (same == known.end())
      known.push_back(fresh);
    else if (fresh.median < same->median)
      *same = fresh;
  }
}

const Denominator* Denominators::of(const Point& point, const PointResult& result) const {
  const auto problem = of_.find(point.inputs());
  if (problem == of_.end() || !problem->second.contains(result.place)) return nullptr;
  const Denominator* any = nullptr;
  const auto precisions = {point.precision, Precision::fp32};
  for (const Denominator& each : problem->second.at(result.place))
    if (comparable(each, result) && any == nullptr) any = &each;
  for (const Precision precision : precisions)
    for (const Denominator& each : problem->second.at(result.place))
      if (each.precision == precision && comparable(each, result)) return &each;
  return any;
}

std::string Denominators::elsewhere(const Point& point) const {
  std::string places;
  const auto problem = of_.find(point.inputs());
  if (problem == of_.end()) return places;
  for (const auto& [place, known] : problem->second)
    places += fmt::format("{}{}{}", places.empty() ? "" : ", ", place,
                          known[0].gpu.empty() ? "" : " (" + known[0].gpu + ")");
  return places;
}

}  // namespace lloyd
