#include "kernels/fast_cpu/tree/tree.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace lloyd::fast_cpu {
namespace {

template <int D>
struct Entry {
  float x[D];
  std::int32_t index;
};

/// Puts points into the order of the tree. The result depends on the points only, not on which
/// thread takes which half.
template <int D>
class Splitter {
 public:
  explicit Splitter(Entry<D>* entries) : entries_(entries) {}

  /// `leaves`: a power of two; the points are those of that many leaves or fewer.
  void split(std::int64_t first, std::int64_t last, std::int64_t leaves) {
    while (leaves > 1 && last - first <= leaves / 2 * kLeaf) leaves /= 2;
    if (leaves == 1) return;
    const std::int64_t middle = first + leaves / 2 * kLeaf;
    const int t = widest(first, last);
    std::nth_element(entries_ + first, entries_ + middle, entries_ + last,
                     [t](const Entry<D>& a, const Entry<D>& b) { return a.x[t] < b.x[t]; });
    const bool is_worth_a_task = last - first > 16'384;
#pragma omp task if (is_worth_a_task)
    split(first, middle, leaves / 2);
    split(middle, last, leaves / 2);
  }

 private:
  int widest(std::int64_t first, std::int64_t last) const {
    float low[D], high[D];
    std::copy_n(entries_[first].x, D, low);
    std::copy_n(entries_[first].x, D, high);
    for (std::int64_t i = first + 1; i < last; ++i)
      for (int t = 0; t < D; ++t) {
        low[t] = std::min(low[t], entries_[i].x[t]);
        high[t] = std::max(high[t], entries_[i].x[t]);
      }
    int best = 0;
    for (int t = 1; t < D; ++t)
      if (high[t] - low[t] > high[best] - low[best]) best = t;
    return best;
  }

  Entry<D>* entries_;
};

/// Sorts the points into `leaves` (leaf count × dim × kLeaf) and their indices into `order`.
template <int D>
void sort_into_leaves(const Problem& problem, const std::vector<float>& centre, int threads,
                      float* leaves, std::int32_t* order) {
  const std::int64_t n = problem.n, leaf_count = (n + kLeaf - 1) / kLeaf;
  const auto entries = untouched<Entry<D>>(n);
  Splitter<D> splitter(entries.get());
#pragma omp parallel num_threads(threads)
  {
#pragma omp for schedule(static)
    for (std::int64_t i = 0; i < n; ++i) {
      for (int t = 0; t < D; ++t) entries[i].x[t] = problem.points[i * D + t] - centre[t];
      entries[i].index = static_cast<std::int32_t>(i);
    }
#pragma omp single
    splitter.split(
        0, n, static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(leaf_count))));
#pragma omp for schedule(static)
    for (std::int64_t leaf = 0; leaf < leaf_count; ++leaf)
      for (std::int64_t p = 0; p < kLeaf; ++p) {
        const std::int64_t i = leaf * kLeaf + p;
        for (int t = 0; t < D; ++t)
          leaves[(leaf * D + t) * kLeaf + p] = i < n ? entries[i].x[t] : 0;
        if (i < n) order[i] = entries[i].index;
      }
  }
}

}  // namespace

Tree::Tree(const Problem& problem, const std::vector<float>& centre, int threads)
    : n_(problem.n), dim_(problem.dim), order_(untouched<std::int32_t>(problem.n)) {
  std::int64_t nodes = (n_ + kLeaf - 1) / kLeaf;
  points_ = untouched<float>(nodes * dim_ * kLeaf);
  with_tree_dim(dim_, [&](auto dim) {
    sort_into_leaves<dim.value>(problem, centre, threads, points_.get(), order_.get());
  });

  for (;; nodes = (nodes + kFan - 1) / kFan) {
    const int level = level_count();
    const std::int64_t blocks = (nodes + kFan - 1) / kFan;
    levels_.push_back({nodes, untouched<float>(blocks * 2 * dim_ * kFan),
                       untouched<double>(blocks * kFan * dim_)});
#pragma omp parallel for num_threads(threads) schedule(static)
    for (std::int64_t block = 0; block < blocks; ++block) fill_block(level, block);
    if (nodes <= kFan) break;
  }
}

void Tree::fill_block(int level, std::int64_t block) {
  float* low = levels_[level].boxes.get() + block * 2 * dim_ * kFan;
  float* high = low + dim_ * kFan;
  double* sums = levels_[level].sums.get() + block * kFan * dim_;
  std::fill_n(low, kFan * 2 * dim_, 0.0f);
  std::fill_n(sums, kFan * dim_, 0.0);
  for (int node = 0; node < nodes_in_block(level, block); ++node)
    for (int t = 0; t < dim_; ++t) {
      const std::int64_t number = block * kFan + node;
      float least = std::numeric_limits<float>::infinity(), most = -least;
      double sum = 0;
      if (level == 0) {
        const float* values = leaf(number) + t * kLeaf;
        for (int p = 0; p < points_in(0, number); ++p) {
          least = std::min(least, values[p]);
          most = std::max(most, values[p]);
          sum += values[p];
        }
      } else {
        const float* below = boxes(level - 1, number);
        for (int child = 0; child < nodes_in_block(level - 1, number); ++child) {
          least = std::min(least, below[t * kFan + child]);
          most = std::max(most, below[(dim_ + t) * kFan + child]);
          sum += this->sums(level - 1, number)[child * dim_ + t];
        }
      }
      low[t * kFan + node] = least;
      high[t * kFan + node] = most;
      sums[node * dim_ + t] = sum;
    }
}

}  // namespace lloyd::fast_cpu
