#include "experiments/measure/floor.h"

#include <algorithm>

namespace lloyd {
namespace {

std::optional<double> rate_of(const FloorRates& rates, Precision precision) {
  switch (precision) {
#define LLOYD_PRECISION(name, bits) \
  case Precision::name:             \
    return rates.name;
#include "kernels/core/precisions.inc"
  }
  return std::nullopt;
}

// The nearest level that `bytes` fit into.
const MemoryLevel& level_of(const FloorRates& rates, double bytes) {
  for (const MemoryLevel& level : rates.levels)
    if (bytes <= level.bytes) return level;
  return rates.levels.back();
}

double coordinate_bytes(Precision precision) {
  return precision == Precision::fp16 || precision == Precision::bf16 ? 2 : 4;
}

}  // namespace

IterationWork iteration_work(const Problem& problem) {
  const double coordinate = coordinate_bytes(problem.precision);
  const auto batch = static_cast<double>(problem.batch), dim = static_cast<double>(problem.dim);
  const double n = batch * static_cast<double>(problem.n),
               k = batch * problem.k;  // of all problems
  const double label = label_bytes(problem.k);
  const double labels = problem.stop.min_changes > 0
                            ? 2 * label * n
                            : label * n / std::max(1, problem.stop.iterations);
  IterationWork work;
  work.point_bytes = n * dim * coordinate;
  work.resident_bytes = (n + k) * dim * coordinate;
  work.bytes = work.resident_bytes + k * dim * coordinate + labels;
  work.flops = 2 * n * problem.k * dim;
  return work;
}

std::optional<double> floor_ms(const Problem& problem, const FloorRates& rates, int devices,
                               std::string& why_not) {
  const IterationWork work = iteration_work(problem);
  const MemoryLevel& level = level_of(rates, work.resident_bytes / devices);
  const std::optional<double> rate = rate_of(rates, problem.precision);
  if (!level.bandwidth || !rate) {
    why_not = !rate ? "the ceilings have no rate of " + std::string(to_string(problem.precision))
                    : "the ceilings have no bandwidth of " + level.name;
    return std::nullopt;
  }
  const double crossing = std::max(work.point_bytes / devices - rates.capacity, 0.0);
  if (crossing > 0 && !rates.upload) {
    why_not = "the ceilings have no link_h2d";
    return std::nullopt;
  }
  const double link = crossing > 0 ? crossing / *rates.upload : 0;
  return std::max({work.bytes / *level.bandwidth / devices, work.flops / *rate / devices, link}) *
         1e3;
}

std::optional<double> end_to_end_floor_ms(const Problem& problem, const FloorRates& rates,
                                          int devices, double iteration_floor_ms,
                                          std::string& why_not) {
  if (!rates.upload || !rates.download) {
    why_not = "the ceilings have no link_h2d or link_d2h";
    return std::nullopt;
  }
  const double n = static_cast<double>(problem.n) * problem.batch;
  const double label = label_bytes(problem.k);
  const double up = n * problem.dim * coordinate_bytes(problem.precision) / *rates.upload / devices;
  const double down = n * label / *rates.download / devices;
  const int iterations = problem.stop.iterations;
  if (iterations < 2) return std::max({up * 1e3, down * 1e3, iteration_floor_ms});
  return (up + down) * 1e3 + (iterations - 2) * iteration_floor_ms;
}

}  // namespace lloyd
