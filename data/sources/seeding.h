// k-means++ and k-means||: which points become the initial centroids.
//
// The definition fixes every bit, so that any number of threads, any CPU and any GPU choose the
// same points for the same seed:
//
// * Distance. D(x) is the smallest Σ (x_j − c_j)² over the centres c so far: in float64, in the
//   order of the dimensions, each operation rounded on its own. Points are float32, so D neither
//   overflows nor underflows, and it is 0 only for a point that equals a centre. Before the first
//   centre, D is 1. Centres are numbered in the order in which they are chosen. The nearest centre
//   is the one of the lowest number on a tie.
// * Mass. m(x) = w(x) · D(x), rounded once, with the weight w (1 for points).
// * Fixed point. 2^e is the smallest power of two above the largest mass. The integer mass of x is
//   m(x) · 2^(52 − e), rounded to the nearest integer, ties to even. Integers have the same sum in
//   any order. Rounding changes the probability of a point by at most 2^-52.
// * Draw. r is the first 64 bits of the next counter of Stream::init_draw. With the sum S of all
//   integer masses and t = ⌊r · S / 2^64⌋, the draw chooses the first row whose integer mass and
//   those of the rows before it exceed t together. If S = 0, which means that every point equals a
//   centre, it chooses row ⌊r · n / 2^64⌋.
//
// k-means++ (Arthur & Vassilvitskii 2007) draws k times. The first draw is uniform, as D is 1.
//
// k-means|| (Bahmani et al. 2012) draws one row, and then has five rounds. A round chooses each row
// with probability 2k · D / S · 2^(52 − e): the row is chosen if u · (S · 2^(e − 52)) < 2k · D, in
// float64 from left to right, with u from the row's counter in Stream::init_round. The chosen rows
// of a round become centres together. If there are at most k of them in the end, k-means++ draws
// the rest. Otherwise k-means++ chooses k of them: the weight of a candidate is the number of
// points that are nearest to it.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "kernels/core/random_values.h"

namespace lloyd::data {

constexpr int kFractionBits = 52;
/// The rows whose integer masses are summed together: at most 2^11 · 2^52, which is below 2^64.
constexpr std::int64_t kRowsPerSum = 1 << 11;

/// `mass` · `scale`, rounded to an integer. The product is exact, as `scale` is a power of two, and
/// at most 2^52. So adding 2^52 rounds it to an integer, which is in the last bits of the sum.
LLOYD_HOST_DEVICE static inline std::uint64_t fixed_point(double mass, double scale) {
  const double rounded = add(multiply(mass, scale), 0x1p52);
  std::uint64_t bits;
  std::memcpy(&bits, &rounded, sizeof bits);
  return bits - 0x4330000000000000u;  // the bits of 2^52
}

/// Whether k-means|| chooses a row of squared distance `squared` in `round`.
LLOYD_HOST_DEVICE static inline bool chosen_in_round(std::uint64_t seed, std::uint32_t round,
                                                     std::int64_t row, double squared, double total,
                                                     double oversampling) {
  const Words words =
      random_words(seed, Stream::init_round, static_cast<std::uint64_t>(row), round);
  const double unit = unit53(words.word[0], words.word[1]);
  return multiply(unit, total) < multiply(oversampling, squared);
}

/// The sum of integer masses as a float64.
static inline double total_mass(unsigned __int128 integers, int exponent) {
  return std::ldexp(static_cast<double>(integers), exponent - kFractionBits);
}

/// A sequence of random numbers, independent for each seed.
class Draws {
 public:
  LLOYD_HOST_DEVICE explicit Draws(std::uint64_t seed) : seed_(seed) {}

  /// ⌊r · count / 2^64⌋ for the next 64 random bits r. `count` must be below 2^127.
  LLOYD_HOST_DEVICE unsigned __int128 below(unsigned __int128 count) {
    const Words words = random_words(seed_, Stream::init_draw, next_++, 0);
    const unsigned __int128 r = std::uint64_t{words.word[0]} << 32 | words.word[1];
    return r * static_cast<std::uint64_t>(count >> 64) +
           (r * static_cast<std::uint64_t>(count) >> 64);
  }

 private:
  std::uint64_t seed_;
  std::uint64_t next_ = 0;
};

/// The squared distance of each row to its nearest centre, and the number of that centre: the part
/// of the work that grows with the points.
class Nearest {
 public:
  virtual ~Nearest() = default;
  /// Makes rows centres.
  virtual void add(std::span<const std::int64_t> rows) = 0;
  /// Draws `count` rows. Each except the last becomes a centre before the next is drawn.
  virtual std::vector<std::int64_t> draw(std::int64_t count, Draws& draws) = 0;
  /// The rows that a round of k-means|| chooses, in order. Needs a centre.
  virtual std::vector<std::int64_t> choose(std::uint64_t seed, std::uint32_t round,
                                           double oversampling) = 0;
  /// How many rows are nearest to each of the `centers` centres.
  virtual std::vector<std::int64_t> counts(std::int64_t centers) = 0;
};

/// `points` are n × dim; `weights` are n, or empty if all are 1. Both are copied. `threads` is for
/// the CPU; 0: available_cores().
using MakeNearest = std::unique_ptr<Nearest>(std::span<const float> points, std::int64_t n, int dim,
                                             std::span<const double> weights, int threads);
MakeNearest make_cpu_nearest;
MakeNearest make_cuda_nearest;  // on the current device; only in builds with CUDA

/// The rows of the k initial centroids. The same row may occur more than once only if there are
/// fewer than k distinct points.
std::vector<std::int64_t> plus_plus(std::span<const float> points, std::int64_t n, int dim, int k,
                                    std::uint64_t seed, int threads,
                                    MakeNearest& make = make_cpu_nearest);
std::vector<std::int64_t> parallel_seeding(std::span<const float> points, std::int64_t n, int dim,
                                           int k, std::uint64_t seed, int threads,
                                           MakeNearest& make = make_cpu_nearest);

}  // namespace lloyd::data
