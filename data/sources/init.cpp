// Initial centroids. The number of threads changes nothing; seeding.h says why.
#include <fmt/format.h>

#include <unordered_map>

#include "data/sources/dataset.h"
#include "data/sources/seeding.h"
#include "data/sources/text.h"
#include "kernels/core/cores.h"

namespace lloyd::data {
namespace {

/// The first k rows of a random permutation by Fisher and Yates, so that fewer centroids are a
/// prefix of more. `moved` stores only the positions that the permutation has changed.
std::vector<std::int64_t> random_rows(std::int64_t n, int k, std::uint64_t seed) {
  Draws draws(seed);
  std::unordered_map<std::int64_t, std::int64_t> moved;
  const auto at = [&](std::int64_t position) {
    const auto found = moved.find(position);
    return found == moved.end() ? position : found->second;
  };
  std::vector<std::int64_t> rows;
  for (std::int64_t i = 0; i < k; ++i) {
    const std::int64_t position = i + static_cast<std::int64_t>(draws.below(n - i));
    rows.push_back(at(position));
    moved[position] = at(i);
  }
  return rows;
}

/// The function of a method that measures distances; null for others.
auto seeding(const std::string& method) -> decltype(&plus_plus) {
  if (method == "kmeans++") return plus_plus;
  if (method == "kmeans||") return parallel_seeding;
  return nullptr;
}

std::vector<std::int64_t> chosen_rows(const Init& init, std::span<const float> points,
                                      std::int64_t n, int dim, int k, int threads,
                                      MakeNearest& make) {
  if (init.method == "random_points") return random_rows(n, k, init.seed);
  if (const auto choose = seeding(init.method))
    return choose(points, n, dim, k, init.seed, threads, make);
  throw DataError(fmt::format("unknown init '{}'; the methods are {}", init.method,
                              fmt::join(init_methods(), ", ")));
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

bool measures_distances(const std::string& method) { return seeding(method) != nullptr; }

int init_threads(const std::string& method) {
  return method == "random_points" ? 1 : available_cores();
}

namespace {

void check_count(std::int64_t n, int k) {
  if (k >= 1 && k <= n) return;
  throw DataError(fmt::format("k = {} initial centroids cannot be drawn from n = {} points",
                              grouped(k), grouped(n)));
}

}  // namespace

std::vector<float> initial_centroids(const Init& init, std::span<const float> points,
                                     std::int64_t n, int dim, int k, int threads,
                                     MakeNearest& make) {
  check_count(n, k);
  if (init.method == "file") return from_file(init.file, dim, k, threads);
  std::vector<float> centroids;
  for (const std::int64_t row : chosen_rows(init, points, n, dim, k, threads, make)) {
    const auto values =
        points.subspan(static_cast<std::size_t>(row * dim), static_cast<std::size_t>(dim));
    centroids.insert(centroids.end(), values.begin(), values.end());
  }
  return centroids;
}

std::vector<float> initial_centroids(const Init& init, const PointRows& points, std::int64_t n,
                                     int dim, int k) {
  check_count(n, k);
  if (init.method == "file") return from_file(init.file, dim, k, 0);
  if (init.method != "random_points")
    throw DataError(fmt::format("init '{}' needs all points in memory", init.method));
  const auto width = static_cast<std::size_t>(dim);
  std::vector<float> centroids(static_cast<std::size_t>(k) * width);
  std::span<float> rest = centroids;
  for (const std::int64_t row : random_rows(n, k, init.seed)) {
    points.read(row * dim, rest.first(width));
    rest = rest.subspan(width);
  }
  return centroids;
}

}  // namespace lloyd::data
