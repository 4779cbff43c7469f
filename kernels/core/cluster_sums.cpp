// The sums of clusters on the host: how their additions, whose order sum_order.h decides, are
// shared out among threads.
#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <vector>

#include "kernels/core/clones.h"
#include "kernels/core/point_rows.h"
#include "kernels/core/reference.h"
#include "kernels/core/sum_order.h"
#include "kernels/core/with_dim.h"

namespace lloyd {
namespace {

// Adds `width` coordinates of `count` points to the sums of their clusters (k × width) and to those
// of absolute values. Returns the first point whose label is outside [0, k), or −1. `stride`: from
// one point to the next. kDim: as with_dim() gives it. In two dimensions a loop over coordinates
// takes longer than their addition.
template <int kDim>
LLOYD_CLONES std::int64_t add_points(const float* points, std::int64_t stride,
                                     const std::int32_t* labels, std::int64_t count, int width,
                                     int k, double* __restrict sums, double* __restrict absolute) {
  constexpr int kLine = 64 / sizeof(float), kAhead = 8;
  const int columns = kDim > 0 ? kDim : width;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int32_t label = labels[i];
    if (label < 0 || label >= k) return i;
    const float* const x = points + i * stride;
    // Hardware does not recognize some columns of rows as a stream.
    if (stride > columns)
      for (int t = 0; t < columns; t += kLine) __builtin_prefetch(x + kAhead * stride + t);
    const std::int64_t row = std::int64_t{label} * columns;
    for (int t = 0; t < columns; ++t) {
      sums[row + t] += x[t];
      absolute[row + t] += std::abs(static_cast<double>(x[t]));
    }
  }
  return -1;
}

/// How the sums are shared out among threads: by the parts that decide the order (sum_order.h) and,
/// where large sums leave fewer parts than threads, also by dimensions, which changes no order.
class Tasks {
 public:
  Tasks(std::int64_t parts, int dim) : dim_(dim) {
    constexpr std::int64_t kLanes = 8;  // coordinates: a vector of their sums
    const std::int64_t wanted = std::max<std::int64_t>(1, omp_get_max_threads() / parts),
                       width = (dim + wanted - 1) / wanted;
    width_ = std::min<std::int64_t>(dim, (width + kLanes - 1) / kLanes * kLanes);
    slices_ = (dim + width_ - 1) / width_;
    number_ = parts * slices_;
  }

  struct Task {
    std::int64_t part;
    int from, width;  // dimensions
  };
  Task operator[](std::int64_t task) const {
    const auto from = static_cast<int>(task % slices_ * width_);
    return {task / slices_, from, std::min(static_cast<int>(width_), dim_ - from)};
  }
  std::int64_t number() const { return number_; }

 private:
  int dim_;
  std::int64_t width_, slices_, number_;
};

// What a task adds up. No other thread writes to its memory, so that no cache line is contended.
struct Partial {
  std::vector<double> sums, absolute;  // k × width
  std::vector<std::int64_t> counts;    // only where `from` is 0
  std::int64_t stray = -1;             // a point whose label is outside [0, k)
};

Partial add_up(const Problem& problem, std::span<const std::int32_t> labels, std::int64_t first,
               std::int64_t last, int from, int width) {
  // Points that are not in memory are read and converted a few at a time, and only those columns
  // that are added. So few stay in the core's nearest cache.
  constexpr std::int64_t kReadAtOnce = 1 << 12;
  const auto k = static_cast<std::size_t>(problem.k), cells = k * static_cast<std::size_t>(width);
  Partial mine{std::vector<double>(cells), std::vector<double>(cells)};
  if (from == 0) mine.counts.resize(k);
  const std::int64_t most = 1 + kReadAtOnce / width;
  std::vector<float> read;
  for (std::int64_t at = first; at < last; at += most) {
    const std::int64_t count = std::min(most, last - at), begin = at * problem.dim + from;
    const std::int32_t* const own = labels.data() + at;
    const float* points = problem.points.data() + begin;
    std::int64_t stride = problem.dim;
    if (problem.rows != nullptr) {
      read.resize(static_cast<std::size_t>(count * width));
      problem.rows->read_columns(begin, stride, width, read);
      points = read.data();
      stride = width;
    }
    std::int64_t bad = -1;
    with_dim(problem.dim, [&](auto dim) {
      bad = add_points<dim.value>(points, stride, own, count, width, problem.k, mine.sums.data(),
                                  mine.absolute.data());
    });
    if (bad >= 0) {
      mine.stray = at + bad;
      break;
    }
    if (from == 0)
      for (std::int64_t i = 0; i < count; ++i) ++mine.counts[static_cast<std::size_t>(own[i])];
  }
  return mine;
}

}  // namespace

ClusterSums cluster_sums(const Problem& problem, std::span<const std::int32_t> labels) {
  const auto dim = static_cast<std::size_t>(problem.dim), k = static_cast<std::size_t>(problem.k);
  const SumParts parts(problem.n, problem.k, problem.dim);
  const Tasks tasks(parts.number(), problem.dim);
  std::vector<Partial> partial(static_cast<std::size_t>(tasks.number()));
#pragma omp parallel for schedule(dynamic, 1)
  for (std::int64_t t = 0; t < tasks.number(); ++t) {
    const auto [part, from, width] = tasks[t];
    partial[static_cast<std::size_t>(t)] =
        add_up(problem, labels, parts.first(part), parts.first(part + 1), from, width);
  }
  for (const Partial& each : partial)
    if (each.stray >= 0)
      throw std::out_of_range(fmt::format("point {} has label {}, which is not in [0, {})",
                                          each.stray, labels[static_cast<std::size_t>(each.stray)],
                                          problem.k));
  ClusterSums total{std::vector<double>(k * dim), std::vector<double>(k * dim),
                    std::vector<std::int64_t>(k)};
#pragma omp parallel for schedule(static)
  for (std::size_t j = 0; j < k; ++j)
    for (std::int64_t t = 0; t < tasks.number(); ++t) {
      const Partial& each = partial[static_cast<std::size_t>(t)];
      const auto width = static_cast<std::size_t>(tasks[t].width);
      const std::size_t to = j * dim + static_cast<std::size_t>(tasks[t].from);
      for (std::size_t c = 0; c < width; ++c) {
        total.sums[to + c] += each.sums[j * width + c];
        total.absolute_sums[to + c] += each.absolute[j * width + c];
      }
      if (!each.counts.empty()) total.counts[j] += each.counts[j];
    }
  return total;
}

}  // namespace lloyd
