// A version that runs a version of one GPU on several: each GPU has a host thread, a part of the
// points and all centroids, and an Exchange with the others, which may be those of other ranks.
// NOTES.md has the reasons.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "kernels/core/device_sums.h"
#include "kernels/core/ranks.h"
#include "kernels/core/version.h"
#include "kernels/fast/lib/exchange.h"
#include "kernels/fast/multi/all_members.h"
#include "kernels/fast/multi/deal.h"
#include "kernels/fast/multi/rank_part.h"
#include "kernels/fast/multi/thread_group.h"

namespace lloyd::fast {

class Shards : public Version {
 public:
  /// Makes the version of one GPU. `exchange`: null where it is alone.
  using Make = std::function<std::unique_ptr<Version>(Exchange* exchange)>;
  /// How arrays are added up over these devices, of which each belongs to a member of `group`, and
  /// over those of all `ranks` (null: of this process alone).
  using MakeSums = std::function<std::unique_ptr<cuda::DeviceSums>(
      std::span<const int> devices, ThreadGroup& group, Ranks* ranks)>;

  /// `tile`: points are dealt in whole tiles. Takes the first Tunables::gpus GPUs of
  /// DeviceLimits::team, fewer where there are fewer tiles. A test may list a GPU twice. With
  /// Context::ranks each rank does so with its part of the points, and rank 0 returns the answer.
  Shards(std::int64_t tile, Make make, MakeSums sums = default_sums);
  ~Shards() override;

  void prepare(const Problem& problem, Context& context) override;
  void run(Context& context) override;
  Solution fetch(Context& context) override;

  /// By NCCL, or through the host where a device is listed twice, also by two ranks. Without NCCL,
  /// ranks go through the host, too, and one process throws Unsupported.
  static std::unique_ptr<cuda::DeviceSums> default_sums(std::span<const int> devices,
                                                        ThreadGroup& group, Ranks* ranks);
  /// Through the host in any case.
  static std::unique_ptr<cuda::DeviceSums> host_sums(std::span<const int> devices,
                                                     ThreadGroup& group, Ranks* ranks);

 private:
  struct Shard;

  /// Calls body(shard, its context) in the thread of each shard, with its device current.
  void in_all(Context& context, const std::function<void(Shard&, Context&)>& body);

  std::int64_t tile_;
  Make make_;
  MakeSums make_sums_;
  bool failed_ = false;
  bool exchanging_ = false;       // so that a failure has to end what waits on a device
  std::optional<RankPart> part_;  // only of several ranks
  std::unique_ptr<ThreadGroup> group_;
  std::optional<AllMembers> all_;
  std::unique_ptr<cuda::DeviceSums> sums_;  // null of one shard that is alone
  std::optional<cuda::Event> begun_;        // only of several shards in this process
  std::vector<std::unique_ptr<Shard>> shards_;
};

}  // namespace lloyd::fast
