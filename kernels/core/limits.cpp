#include "kernels/core/limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace lloyd {
namespace {

// Sizes of clusters and sorted indices have 32 bits in the CUDA versions, and a grid with one
// thread or block per point has at most this many blocks. Only versions with a smaller limit check
// n themselves.
constexpr std::int64_t kMostPointsOnDevice = std::numeric_limits<std::int32_t>::max();

std::string names(const std::vector<Precision>& precisions) {
  std::string text;
  for (const Precision precision : precisions)
    text += fmt::format("{}{}", text.empty() ? "" : ", ", to_string(precision));
  return text;
}

std::optional<std::string> shortfall(std::int64_t needed, std::int64_t allowed, const char* how) {
  if (needed <= allowed) return std::nullopt;
  return fmt::format("needs {} B of shared memory per block, device allows {} B ({})",
                     with_commas(needed), with_commas(allowed), how);
}

}  // namespace

std::optional<std::string> unsupported_reason(const VersionInfo& version, const Problem& problem,
                                              const Tunables& tunables,
                                              const DeviceLimits& device) {
  const std::vector<Precision>& precisions = version.precisions;
  if (std::find(precisions.begin(), precisions.end(), problem.precision) == precisions.end())
    return fmt::format("computes in {} only, not {}", names(precisions),
                       to_string(problem.precision));
  if (problem.spherical && !version.spherical)
    return "does not scale its centroids to length 1, as distance: cosine needs";
  if (problem.batch > 1 && version.batches == Batches::none)
    return fmt::format("takes one problem at a time, not a batch of {}",
                       with_commas(problem.batch));
  const std::int64_t points = problem.n * problem.batch;
  if (version.backend == Backend::cuda && points > kMostPointsOnDevice)
    return fmt::format("counts points in 32 bits: at most {}, not {}",
                       with_commas(kMostPointsOnDevice), with_commas(points));
  if (version.backend == Backend::cuda)
    if (auto reason = gpu_shortfall(tunables.gpus, device)) return reason;
  if (version.unsupported)
    if (auto reason = version.unsupported(problem, tunables, device)) return reason;
  const bool has_blocks = std::find(version.axes.begin(), version.axes.end(),
                                    "threads_per_block") != version.axes.end();
  if (has_blocks && tunables.threads_per_block > device.max_threads_per_block)
    return fmt::format("needs {} threads per block, device allows {}", tunables.threads_per_block,
                       device.max_threads_per_block);
  return std::nullopt;
}

std::string with_commas(std::int64_t value) {
  std::string digits = std::to_string(value);
  const std::ptrdiff_t first = value < 0 ? 1 : 0;
  for (std::ptrdiff_t at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > first; at -= 3)
    digits.insert(static_cast<std::size_t>(at), ",");
  return digits;
}

std::optional<std::string> static_shared_shortfall(std::int64_t bytes_per_block,
                                                   const DeviceLimits& device) {
  return shortfall(bytes_per_block, device.shared_bytes, "static");
}

std::optional<std::string> optin_shared_shortfall(std::int64_t bytes_per_block,
                                                  const DeviceLimits& device) {
  return shortfall(bytes_per_block, device.shared_bytes_optin, "opt-in");
}

std::optional<std::string> gpu_shortfall(int gpus, const DeviceLimits& device) {
  const auto there = static_cast<std::int64_t>(device.team.size());
  if (gpus <= 1 || gpus <= there) return std::nullopt;
  return fmt::format(
      "needs {} GPUs, this machine has {} (GPU {} and those of its model after it that reach each "
      "other's memory)",
      with_commas(gpus), with_commas(std::max<std::int64_t>(there, 1)), device.index);
}

std::optional<std::string> no_change_count(const Stop& stop) {
  if (stop.min_changes <= 0) return std::nullopt;
  return fmt::format("does not count the points that change cluster (min_changes = {})",
                     stop.min_changes);
}

std::optional<std::string> only_a_change_flag(const Stop& stop) {
  if (stop.min_changes <= 1) return std::nullopt;
  return fmt::format(
      "keeps a flag, not a count, of points that change cluster: min_changes can be 0 or 1, not {}",
      stop.min_changes);
}

}  // namespace lloyd
