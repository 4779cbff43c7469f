#include "kernels/fast/auto/several_gpus.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "kernels/core/gpu_exchange.h"

namespace lloyd::fast {
namespace {

struct ForSeveral {
  const char* version;
  SumsBy sums;
  int parts;  // in which a sum travels, each of 8 bytes
};
constexpr auto kForSeveral = std::to_array<ForSeveral>({
    {"multi_grid", SumsBy::peers, 2},
    {"multi_screen", SumsBy::nccl, 1},
    {"multi_wgmma", SumsBy::nccl, 1},
});

// `alone`: what the version for one GPU should take. `few_ms`: the same for few points.
Estimate on_several(const ForSeveral& version, const Estimate& alone, double few_ms,
                    const Problem& problem, int gpus) {
  const double megabytes = 8e-6 * problem.k * (version.parts * problem.dim + 1);
  const double in_full = std::min(few_ms, alone.iteration_ms);
  const double rest = in_full + (alone.iteration_ms - in_full) / gpus;
  Estimate several = alone;
  several.nearest.version = version.version;
  several.nearest.gpus = gpus;
  several.iteration_ms = rest + exchange_ms(version.sums, megabytes, gpus, rest);
  return several;
}

}  // namespace

double exchange_ms(SumsBy sums, double megabytes, int gpus, double rest_ms) {
  // Half a value and the number of its exchange travel together (multi/peer_link.cuh): one way over
  // the link, and twice the bytes.
  if (sums == SumsBy::peers)
    return (kPeerFlagUs / 2 + (gpus - 1) * 2 * megabytes / kPeerGbS * 1e3) / 1e3;
  constexpr double kUsPerMb =
      (kAllReduceLargeUs - kAllReduceSmallUs) / (kAllReduceLargeMb - kAllReduceSmallMb);
  constexpr double kLatencyUs = kAllReduceSmallUs - kUsPerMb * kAllReduceSmallMb;
  // Each doubling beyond two GPUs costs half of the latency again; a ring moves 2 (G − 1) / G.
  const double us =
      kLatencyUs * (1 + std::log2(gpus)) / 2 + kUsPerMb * megabytes * 2 * (gpus - 1) / gpus;
  return std::max(us, rest_ms < kHiddenLaunchMs ? kAllReduceLaunchedUs : 0) / 1e3;
}

std::vector<Estimate> ranked_on(int gpus, std::span<const Measured> table, const Problem& problem) {
  std::vector<Estimate> all = ranked(table, problem);
  if (gpus <= 1 || all.empty()) return all;
  Problem few = problem;
  few.n = std::min(problem.n, std::ranges::min(table, {}, &Measured::n).n);
  const std::vector<Estimate> of_few = ranked(table, few);
  for (const ForSeveral& version : kForSeveral) {
    const std::string_view parent = find_version(version.version)->info.parent;
    const auto is_parent = [&](const Estimate& e) { return e.nearest.version == parent; };
    const auto alone = std::ranges::find_if(all, is_parent);
    if (alone == all.end()) continue;
    const double few_ms = std::ranges::find_if(of_few, is_parent)->iteration_ms;
    all.push_back(on_several(version, *alone, few_ms, problem, gpus));
  }
  sort_by_time(all, problem);
  return all;
}

}  // namespace lloyd::fast
