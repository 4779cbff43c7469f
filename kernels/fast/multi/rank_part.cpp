#include "kernels/fast/multi/rank_part.h"

#include <cstddef>
#include <span>
#include <stdexcept>

namespace lloyd::fast {
namespace {

template <typename T>
std::span<T> of_range(std::span<T> points, const PointRange& range, int dim) {
  const auto width = static_cast<std::size_t>(dim);
  return points.subspan(static_cast<std::size_t>(range.first) * width,
                        static_cast<std::size_t>(range.count) * width);
}

// Returns the points of this rank. `memory`: of those that come from rank 0.
template <typename T>
std::span<const T> scattered(std::span<const T> all, std::vector<std::byte>& memory, int dim,
                             std::span<const PointRange> ranges, Ranks& ranks) {
  const PointRange& own = ranges[static_cast<std::size_t>(ranks.rank())];
  if (ranks.rank() > 0) {
    const auto count = static_cast<std::size_t>(own.count * dim);
    memory = ranks.take_memory(count * sizeof(T));
    const std::span<T> points(reinterpret_cast<T*>(memory.data()), count);
    ranks.receive(std::as_writable_bytes(points), 0);
    return points;
  }
  for (int to = 1; to < ranks.size(); ++to)
    ranks.send(std::as_bytes(of_range(all, ranges[static_cast<std::size_t>(to)], dim)), to);
  return of_range(all, own, dim);
}

}  // namespace

RankPart::RankPart(const Problem& whole, Ranks& ranks, std::int64_t tile)
    : ranks_(ranks), ranges_(deal(whole.n, ranks.size(), tile)), problem_(whole) {
  if (std::ssize(ranges_) < ranks.size())
    throw std::logic_error("fewer tiles than ranks");  // too_few_tiles() says so before
  problem_.n = ranges_[static_cast<std::size_t>(ranks.rank())].count;
  problem_.generator = nullptr;  // it draws all points
  bool in_halves = !whole.halves.empty();
  ranks.broadcast(std::as_writable_bytes(std::span(&in_halves, 1)));
  if (in_halves) problem_.halves = scattered(whole.halves, memory_, whole.dim, ranges_, ranks);
  if (!in_halves || ranks.rank() == 0)
    problem_.points = in_halves ? of_range(whole.points, ranges_.front(), whole.dim)
                                : scattered(whole.points, memory_, whole.dim, ranges_, ranks);
  centroids_.assign(whole.centroids.begin(), whole.centroids.end());
  centroids_.resize(static_cast<std::size_t>(whole.k) * static_cast<std::size_t>(whole.dim));
  ranks.broadcast(std::as_writable_bytes(std::span(centroids_)));
  problem_.centroids = centroids_;
}

LabelBuffer RankPart::label_buffer() const {
  const PointRange& last = ranges_.back();
  const std::int64_t count = ranks_.rank() == 0 ? last.first + last.count : problem_.n;
  return {static_cast<std::size_t>(count), problem_.k};
}

void RankPart::collect(LabelBuffer& labels) const {
  if (ranks_.rank() > 0) return ranks_.send(labels.memory(), 0);
  for (int from = 1; from < ranks_.size(); ++from) {
    const PointRange& range = ranges_[static_cast<std::size_t>(from)];
    LabelBuffer part =
        labels.part(static_cast<std::size_t>(range.first), static_cast<std::size_t>(range.count));
    ranks_.receive(part.memory(), from);
  }
}

void RankPart::require_same(const Solution& solution) const {
  std::vector<double> first = solution.centroids;
  first.push_back(solution.iterations);
  const std::vector<double> own = first;
  ranks_.broadcast(std::as_writable_bytes(std::span(first)));
  if (own != first) throw std::logic_error("the ranks moved the centroids to different places");
}

}  // namespace lloyd::fast
