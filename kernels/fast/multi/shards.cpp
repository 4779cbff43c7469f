#include "kernels/fast/multi/shards.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <set>
#include <stdexcept>
#include <utility>

#include "kernels/core/cuda.h"
#include "kernels/core/nccl.h"
#include "kernels/core/point_rows.h"
#include "kernels/core/stream.h"
#include "kernels/fast/multi/host_sums.h"

namespace lloyd::fast {
namespace {

// Exchanges after which the host waits for the device. A kernel is loaded at its first launch, and
// loading may wait until the device is idle. It must not wait for an exchange, which waits for
// another GPU, whose host may wait for the same lock. (CUDA programming guide, lazy loading:
// concurrent execution.) All kernels of a loop are launched within so many iterations.
constexpr int kCautious = 5;

class GroupExchange : public Exchange {
 public:
  GroupExchange(AllMembers& all, cuda::DeviceSums& sums, int member)
      : all_(all), sums_(sums), member_(member) {}

  void add_up(std::span<const Terms> arrays, cudaStream_t stream) override {
    sums_.add_up(member_, arrays, stream);
    if (++exchanges_ <= kCautious) LLOYD_CUDA_CHECK(cudaStreamSynchronize(stream));
  }
  void sum(std::span<double> values) override { all_.sum(member_, values); }
  void largest(std::span<double> values) override { all_.largest(member_, values); }

 private:
  AllMembers& all_;
  cuda::DeviceSums& sums_;
  int member_;
  int exchanges_ = 0;
};

}  // namespace

struct Shards::Shard {
  int member = 0, device = 0;
  PointRange range{};
  Problem problem;
  std::optional<PartOfRows> rows;      // of the problem, if its points are not in memory
  std::unique_ptr<Exchange> exchange;  // null of one shard that is alone
  // Of all but the first, which works in the stream of the harness:
  std::optional<cuda::Stream> stream;
  std::optional<cuda::Event> ended;
  std::unique_ptr<Version> version;
  Solution solution;
};

namespace {

// The part of `problem` with these points.
Problem part_of(const Problem& problem, const PointRange& range) {
  Problem part = problem;
  const auto dim = static_cast<std::size_t>(problem.dim);
  const std::size_t first = static_cast<std::size_t>(range.first) * dim,
                    values = static_cast<std::size_t>(range.count) * dim;
  part.n = range.count;
  if (!problem.points.empty()) part.points = problem.points.subspan(first, values);
  if (!problem.halves.empty()) part.halves = problem.halves.subspan(first, values);
  if (range.count < problem.n) part.generator = nullptr;  // it draws all of them
  return part;
}

}  // namespace

Shards::Shards(std::int64_t tile, Make make, MakeSums sums)
    : tile_(tile), make_(std::move(make)), make_sums_(std::move(sums)) {}

Shards::~Shards() = default;

void Shards::prepare(const Problem& whole, Context& context) {
  Ranks* const ranks = context.ranks;
  part_.reset();
  if (ranks != nullptr) {
    const auto phase = context.phase("transfer");
    part_.emplace(whole, *ranks, tile_);
  }
  const Problem& problem = part_ ? part_->problem() : whole;
  const std::vector<PointRange> ranges = deal(problem.n, context.tunables.gpus, tile_);
  const std::vector<int>& team = context.device.team;
  if (ranges.size() > std::max<std::size_t>(team.size(), 1))
    throw std::logic_error("more GPUs than the machine has");  // limits.h says so before
  const auto members = static_cast<int>(ranges.size());
  std::vector<int> devices(ranges.size(), context.device.index);
  if (members > 1) std::copy_n(team.begin(), ranges.size(), devices.begin());
  shards_.clear();
  group_ = std::make_unique<ThreadGroup>(members, [this] {
    if (exchanging_ && sums_) sums_->abandon();
  });
  all_.emplace(*group_, ranks);
  failed_ = exchanging_ = false;
  sums_ = nullptr;
  begun_.reset();
  const bool alone = members == 1 && ranks == nullptr;
  if (!alone) sums_ = make_sums_(devices, *group_, ranks);
  if (members > 1) begun_.emplace();
  for (int member = 0; member < members; ++member) {
    const auto at = static_cast<std::size_t>(member);
    auto shard = std::make_unique<Shard>();
    shard->member = member;
    shard->device = devices[at];
    shard->range = ranges[at];
    shard->problem = part_of(problem, ranges[at]);
    if (problem.rows != nullptr)
      shard->problem.rows =
          &shard->rows.emplace(*problem.rows, ranges[at].first * std::int64_t{problem.dim});
    if (!alone) shard->exchange = std::make_unique<GroupExchange>(*all_, *sums_, member);
    shard->version = make_(shard->exchange.get());
    shards_.push_back(std::move(shard));
  }
  in_all(context, [](Shard& shard, Context& own) {
    if (shard.member > 0) {
      shard.stream.emplace();
      shard.ended.emplace();
      own.stream = *shard.stream;
    }
    shard.version->prepare(shard.problem, own);
    if (shard.member > 0) LLOYD_CUDA_CHECK(cudaStreamSynchronize(own.stream));
  });
}

// All streams begin after what is queued in the harness's, and what it queues next begins after
// all have ended: its events take the time of the slowest GPU.
void Shards::run(Context& context) {
  if (begun_) begun_->record(context.stream);
  exchanging_ = true;
  in_all(context, [&](Shard& shard, Context& own) {
    if (shard.member > 0) begun_->hold(own.stream);
    shard.version->run(own);
    if (shard.member > 0) shard.ended->record(own.stream);
  });
  exchanging_ = false;
  for (const auto& shard : shards_)
    if (shard->member > 0) shard->ended->hold(context.stream);
}

Solution Shards::fetch(Context& context) {
  LabelBuffer* labels = context.label_buffer;
  std::optional<LabelBuffer> collected;  // where ranks need memory that nobody lends
  if (part_ && labels == nullptr) labels = &collected.emplace(part_->label_buffer());
  in_all(context, [&](Shard& shard, Context& own) {
    std::optional<LabelBuffer> part;
    if (labels != nullptr) {
      part.emplace(labels->part(static_cast<std::size_t>(shard.range.first),
                                static_cast<std::size_t>(shard.range.count)));
      own.label_buffer = &*part;
    }
    shard.solution = shard.version->fetch(own);
    if (part && !part->is_filled)
      throw std::logic_error("a shard did not fill the memory lent for labels");
  });
  Solution solution = std::move(shards_.front()->solution);
  for (std::size_t s = 1; s < shards_.size(); ++s) {
    const Solution& next = shards_[s]->solution;
    if (next.iterations != solution.iterations || next.centroids != solution.centroids)
      throw std::logic_error("the GPUs moved the centroids to different places");
    solution.labels.insert(solution.labels.end(), next.labels.begin(), next.labels.end());
  }
  if (part_) {
    const auto phase = context.phase("transfer");
    part_->require_same(solution);
    part_->collect(*labels);
  }
  if (collected) solution.labels = collected->widened();
  if (context.label_buffer != nullptr) context.label_buffer->is_filled = true;
  return solution;
}

void Shards::in_all(Context& context, const std::function<void(Shard&, Context&)>& body) {
  if (failed_) throw std::runtime_error("an earlier failure ended the exchange between the GPUs");
  try {
    group_->run([&](int member) {
      Shard& shard = *shards_[static_cast<std::size_t>(member)];
      LLOYD_CUDA_CHECK(cudaSetDevice(shard.device));
      Context own = context;
      own.device.index = shard.device;
      own.label_buffer = nullptr;
      if (member > 0) {
        own.observers.clear();  // phases are the first shard's
        own.stream = shard.stream ? static_cast<cudaStream_t>(*shard.stream) : nullptr;
        own.trial_memory = nullptr;
        own.centroid_buffer = nullptr;  // the answer has the first shard's centroids
      }
      body(shard, own);
    });
  } catch (...) {
    failed_ = true;
    throw;
  }
}

std::unique_ptr<cuda::DeviceSums> Shards::default_sums(std::span<const int> devices,
                                                       ThreadGroup& group, Ranks* ranks) {
  const bool once =  // NCCL takes each device once
      ranks != nullptr ? cuda::nccl_reaches(devices, *ranks)
                       : std::set<int>(devices.begin(), devices.end()).size() == devices.size();
  return once ? cuda::nccl_sums(devices, ranks) : host_sums(devices, group, ranks);
}

std::unique_ptr<cuda::DeviceSums> Shards::host_sums(std::span<const int>, ThreadGroup& group,
                                                    Ranks* ranks) {
  return std::make_unique<HostSums>(group, ranks);
}

}  // namespace lloyd::fast
