// Initial centroids.
//
// The number of threads changes nothing: all sums are in double over fixed chunks of rows, the
// chunks' results are added in order, and all random numbers are functions of a counter.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <unordered_map>

#include "data/sources/dataset.h"
#include "data/sources/parallel.h"
#include "data/sources/text.h"
#include "kernels/core/philox.h"

namespace lloyd::data {
namespace {

constexpr std::int64_t kChunkRows = 1 << 13;

/// n points of `dim` values, with weights (empty: all 1).
struct Rows {
  std::span<const float> values;
  std::int64_t n;
  int dim;
  std::span<const double> weights = {};

  std::span<const float> operator[](std::int64_t row) const {
    return values.subspan(static_cast<std::size_t>(row * dim), static_cast<std::size_t>(dim));
  }
  double weight(std::int64_t row) const {
    return weights.empty() ? 1 : weights[static_cast<std::size_t>(row)];
  }
};

/// A sequence of random numbers, independent for each seed and stream.
class Draws {
 public:
  Draws(std::uint64_t seed, Stream stream) : seed_(seed), stream_(stream) {}

  /// Uniform in [0, 1).
  double unit() {
    const Words words = random_words(seed_, stream_, next_++, 0);
    return unit53(words.word[0], words.word[1]);
  }

  /// Uniform in 0 … count − 1, up to a relative error of count / 2^64.
  std::int64_t below(std::int64_t count) {
    const Words words = random_words(seed_, stream_, next_++, 0);
    const auto bits =
        static_cast<unsigned __int128>(std::uint64_t{words.word[0]} << 32 | words.word[1]);
    return static_cast<std::int64_t>(bits * static_cast<std::uint64_t>(count) >> 64);
  }

 private:
  std::uint64_t seed_;
  Stream stream_;
  std::uint64_t next_ = 0;
};

/// For every row: the squared distance to the nearest centre so far, and the index of that centre.
class Nearest {
 public:
  Nearest(const Rows& rows, int threads)
      : rows_(rows),
        threads_(threads),
        squared_(static_cast<std::size_t>(rows.n), 1.0),
        center_(static_cast<std::size_t>(rows.n), -1),
        sums_(static_cast<std::size_t>((rows.n + kChunkRows - 1) / kChunkRows)) {
    add({});
  }

  /// Adds centres (contiguous rows). Before the first centre, every distance is 1.
  void add(std::span<const float> centers) {
    const std::int64_t added = static_cast<std::int64_t>(centers.size()) / rows_.dim;
    parallel_rows(rows_.n, kChunkRows, threads_,
                  [&](std::int64_t begin, std::int64_t end, std::int64_t chunk) {
                    double sum = 0;
                    for (std::int64_t row = begin; row < end; ++row) {
                      consider(row, centers, added);
                      sum += rows_.weight(row) * squared_[static_cast<std::size_t>(row)];
                    }
                    sums_[static_cast<std::size_t>(chunk)] = sum;
                  });
    centers_ += added;
  }

  /// Σ weight × squared distance.
  double total() const { return std::accumulate(sums_.begin(), sums_.end(), 0.0); }

  /// Draws a row with probability weight × squared distance / total(), by inversion of `unit` in
  /// [0, 1). Requires total() > 0.
  std::int64_t draw(double unit) const {
    double left = unit * total();
    std::size_t chunk = 0;
    while (chunk + 1 < sums_.size() && !(left < sums_[chunk])) left -= sums_[chunk++];
    std::int64_t row = static_cast<std::int64_t>(chunk) * kChunkRows;
    const std::int64_t end = std::min(rows_.n, row + kChunkRows);
    std::int64_t last = -1;
    for (; row < end; ++row) {
      const double mass = rows_.weight(row) * squared_[static_cast<std::size_t>(row)];
      if (mass > 0) last = row;
      if (left < mass) return row;
      left -= mass;
    }
    // Rounding left a remainder. Take the last row that can be drawn, here or in an earlier chunk.
    for (row = std::int64_t(chunk) * kChunkRows - 1; last < 0; --row) {
      if (rows_.weight(row) * squared_[static_cast<std::size_t>(row)] > 0) last = row;
    }
    return last;
  }

  double squared(std::int64_t row) const { return squared_[static_cast<std::size_t>(row)]; }
  std::int64_t center(std::int64_t row) const { return center_[static_cast<std::size_t>(row)]; }

 private:
  void consider(std::int64_t row, std::span<const float> centers, std::int64_t added) {
    const float* const point = rows_.values.data() + row * rows_.dim;
    double& least = squared_[static_cast<std::size_t>(row)];
    std::int32_t& nearest = center_[static_cast<std::size_t>(row)];
    for (std::int64_t c = 0; c < added; ++c) {
      const float* const center = centers.data() + c * rows_.dim;
      double sum = 0;
      for (int j = 0; j < rows_.dim; ++j) {
        const double difference = double{point[j]} - double{center[j]};
        sum += difference * difference;
      }
      if (nearest < 0 || sum < least) {
        least = sum;
        nearest = static_cast<std::int32_t>(centers_ + c);
      }
    }
  }

  const Rows& rows_;
  int threads_;
  std::vector<double> squared_;
  std::vector<std::int32_t> center_;
  std::vector<double> sums_;  // per chunk
  std::int64_t centers_ = 0;
};

void append(std::vector<float>& centers, std::span<const float> row) {
  centers.insert(centers.end(), row.begin(), row.end());
}

/// The first k rows of a random permutation by Fisher and Yates, so that fewer centroids are a
/// prefix of more. `moved` stores only the positions that the permutation has changed.
std::vector<float> random_points(const Rows& rows, int k, std::uint64_t seed) {
  Draws draws(seed, Stream::init_draw);
  std::unordered_map<std::int64_t, std::int64_t> moved;
  const auto at = [&](std::int64_t position) {
    const auto found = moved.find(position);
    return found == moved.end() ? position : found->second;
  };
  std::vector<float> centers;
  for (std::int64_t i = 0; i < k; ++i) {
    const std::int64_t position = i + draws.below(rows.n - i);
    const std::int64_t row = at(position);
    moved[position] = at(i);
    append(centers, rows[row]);
  }
  return centers;
}

/// Extends the centres to k by kmeans++: each new centre is a row drawn with probability
/// proportional to weight × squared distance to its nearest centre so far. Once all rows coincide
/// with a centre, rows are drawn uniformly.
void plus_plus(const Rows& rows, std::vector<float>& centers, int k, Draws& draws,
               Nearest& nearest) {
  while (static_cast<std::int64_t>(centers.size()) < std::int64_t{k} * rows.dim) {
    const double unit = draws.unit();
    const std::int64_t row = nearest.total() > 0
                                 ? nearest.draw(unit)
                                 : static_cast<std::int64_t>(unit * static_cast<double>(rows.n));
    append(centers, rows[row]);
    nearest.add(rows[row]);
  }
}

std::vector<float> parallel_seeding(const Rows& rows, int k, std::uint64_t seed, int threads) {
  static constexpr int kRounds = 5;
  const double oversampling = 2.0 * k;
  Draws draws(seed, Stream::init_draw);
  Nearest nearest(rows, threads);
  std::vector<float> candidates;
  append(candidates, rows[draws.below(rows.n)]);
  nearest.add(candidates);

  for (std::uint32_t round = 0; round < kRounds; ++round) {
    const double total = nearest.total();
    std::vector<std::vector<float>> chosen(
        static_cast<std::size_t>((rows.n + kChunkRows - 1) / kChunkRows));
    parallel_rows(
        rows.n, kChunkRows, threads, [&](std::int64_t begin, std::int64_t end, std::int64_t chunk) {
          for (std::int64_t row = begin; row < end; ++row) {
            const Words words =
                random_words(seed, Stream::init_round, static_cast<std::uint64_t>(row), round);
            if (unit53(words.word[0], words.word[1]) * total <
                oversampling * nearest.squared(row)) {
              append(chosen[static_cast<std::size_t>(chunk)], rows[row]);
            }
          }
        });
    std::vector<float> added;
    for (const std::vector<float>& some : chosen) append(added, some);
    nearest.add(added);
    append(candidates, added);
  }

  const std::int64_t count = static_cast<std::int64_t>(candidates.size()) / rows.dim;
  if (count <= k) {  // keep all candidates; kmeans++ draws the rest
    plus_plus(rows, candidates, k, draws, nearest);
    return candidates;
  }
  std::vector<double> weights(static_cast<std::size_t>(count), 0.0);
  for (std::int64_t row = 0; row < rows.n; ++row) {
    weights[static_cast<std::size_t>(nearest.center(row))] += 1;
  }
  const Rows weighted{candidates, count, rows.dim, weights};
  Nearest among(weighted, threads);
  std::vector<float> centers;
  plus_plus(weighted, centers, k, draws, among);
  return centers;
}

std::vector<float> from_file(const Source& source, int dim, int k, int threads) {
  const Dataset data = read_file(source, threads);
  if (data.n() != k || data.dim() != dim) {
    throw DataError(fmt::format(
        "{}: has {} × {} values; initial centroids for k = {} and dim = {} must be {} × {}",
        source.file.string(), grouped(data.n()), grouped(data.dim()), k, dim, grouped(k),
        grouped(dim)));
  }
  return {data.values().begin(), data.values().end()};
}

}  // namespace

const std::vector<std::string>& init_methods() {
  static const std::vector<std::string> all = {"random_points", "kmeans++", "kmeans||", "file"};
  return all;
}

std::vector<float> initial_centroids(const Init& init, std::span<const float> points,
                                     std::int64_t n, int dim, int k, int threads) {
  if (k < 1 || k > n) {
    throw DataError(fmt::format("k = {} initial centroids cannot be drawn from n = {} points",
                                grouped(k), grouped(n)));
  }
  const Rows rows{points, n, dim};
  if (init.method == "random_points") return random_points(rows, k, init.seed);
  if (init.method == "kmeans++") {
    Draws draws(init.seed, Stream::init_draw);
    Nearest nearest(rows, threads);
    std::vector<float> centers;
    plus_plus(rows, centers, k, draws, nearest);
    return centers;
  }
  if (init.method == "kmeans||") return parallel_seeding(rows, k, init.seed, threads);
  if (init.method == "file") return from_file(init.file, dim, k, threads);
  throw DataError(fmt::format("unknown init '{}'; the methods are {}", init.method,
                              fmt::join(init_methods(), ", ")));
}

}  // namespace lloyd::data
