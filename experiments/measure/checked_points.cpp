#include "experiments/measure/checked_points.h"

#include <algorithm>
#include <numeric>

#include "kernels/core/philox.h"
#include "kernels/core/point_rows.h"

namespace lloyd {

std::vector<std::int64_t> sampled_points(std::int64_t n, std::int64_t count, std::uint64_t seed) {
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(std::min(n, count)));
  if (count >= n) {
    std::iota(numbers.begin(), numbers.end(), 0);
    return numbers;
  }
  const std::int64_t width = n / count, longer = n % count;  // the first parts have one more point
  for (std::int64_t i = 0; i < count; ++i) {
    const data::Words words =
        data::random_words(seed, data::Stream::check, static_cast<std::uint64_t>(i), 0);
    const std::int64_t points = width + (i < longer ? 1 : 0);
    numbers[static_cast<std::size_t>(i)] =
        i * width + std::min(i, longer) +
        static_cast<std::int64_t>(data::unit53(words.word[0], words.word[1]) *
                                  static_cast<double>(points));
  }
  return numbers;
}

CheckedPoints::CheckedPoints(const Problem& problem, std::int64_t sample, std::uint64_t seed)
    : problem_(problem) {
  if (are_all(problem.n, sample)) return;
  numbers_ = sampled_points(problem.n, sample, seed);
  const auto dim = static_cast<std::size_t>(problem.dim);
  gathered_.resize(numbers_.size() * dim);
  std::vector<float> memory;
  for (std::size_t at = 0; at < numbers_.size(); ++at)
    std::ranges::copy(points_of(problem, numbers_[at], 1, memory),
                      gathered_.begin() + static_cast<std::ptrdiff_t>(at * dim));
  problem_.n = sample;
  problem_.points = gathered_;
  problem_.halves = {};
  problem_.rows = nullptr;
  problem_.generator = nullptr;
}

std::span<const std::int32_t> CheckedPoints::labels(std::span<const std::int32_t> all,
                                                    std::vector<std::int32_t>& memory) const {
  if (are_all()) return all;
  memory.clear();
  for (const std::int64_t number : numbers_)
    memory.push_back(all[static_cast<std::size_t>(number)]);
  return memory;
}

}  // namespace lloyd
