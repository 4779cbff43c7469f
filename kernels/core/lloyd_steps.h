// The steps of an iteration on the CPU: the distance and the division. Each CPU version has its own
// loops around them, and flores divides on the CPU.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <type_traits>
#include <vector>

#include "kernels/core/share.h"
#include "kernels/core/version.h"

namespace lloyd::cpu {

/// ‖x − c‖². Dim = 0 means `dim` dimensions.
template <int Dim, typename T>
inline T squared_distance(const T* x, const T* c, int dim) {
  T distance = 0;
  for (int t = 0; t < (Dim > 0 ? Dim : dim); ++t) {
    const T difference = x[t] - c[t];
    distance += difference * difference;
  }
  return distance;
}

/// The nearest of k centroids, the lowest index on ties.
template <int Dim, typename T>
inline std::int32_t nearest(const T* x, const T* centroids, int k, int dim) {
  std::int32_t label = 0;
  T best = std::numeric_limits<T>::infinity();
  for (int j = 0; j < k; ++j) {
    const T distance = squared_distance<Dim>(
        x, centroids + static_cast<std::size_t>(j) * (Dim > 0 ? Dim : dim), dim);
    // Written as selections: GCC 12 kept a branch in cpu_sequential only, whose mispredictions cost
    // up to 48% at dim 20.
    const bool nearer = distance < best;
    best = nearer ? distance : best;
    label = nearer ? j : label;
  }
  return label;
}

/// The Euclidean length of a vector, computed in float64.
template <typename T>
double length(const T* values, std::size_t dim) {
  double squares = 0;
  for (std::size_t t = 0; t < dim; ++t)
    squares += static_cast<double>(values[t]) * static_cast<double>(values[t]);
  return std::sqrt(squares);
}

/// Scales a vector to length 1. Returns false, and changes nothing, if its length is 0.
template <typename T>
bool scale_to_unit_length(T* values, std::size_t dim) {
  const double by = length(values, dim);
  if (by == 0) return false;
  for (std::size_t t = 0; t < dim; ++t) values[t] = static_cast<T>(values[t] / by);
  return true;
}

/// Moves centroid j to the mean of its points, if it has any; `spherical` scales it to length 1.
/// Returns the squared Euclidean length of the move.
template <typename T>
double move_centroid(std::vector<T>& centroids, const std::vector<T>& sums,
                     const std::vector<std::int64_t>& counts, int dim, std::size_t j,
                     bool spherical = false) {
  double move = 0;
  const auto d = static_cast<std::size_t>(dim);
  const T divisor =
      spherical ? static_cast<T>(length(sums.data() + j * d, d)) : static_cast<T>(counts[j]);
  if (divisor == 0) return move;
  for (std::size_t c = j * d; c < (j + 1) * d; ++c) {
    const T mean = sums[c] / divisor;
    const double step = static_cast<double>(mean) - static_cast<double>(centroids[c]);
    move += step * step;
    centroids[c] = mean;
  }
  return move;
}

/// Calls move_centroid() for all centroids. Returns the length of the largest move.
template <typename T>
double move_centroids(std::vector<T>& centroids, const std::vector<T>& sums,
                      const std::vector<std::int64_t>& counts, int dim, bool spherical = false) {
  double largest = 0;
  for (std::size_t j = 0; j < counts.size(); ++j)
    largest = std::max(largest, move_centroid(centroids, sums, counts, dim, j, spherical));
  return std::sqrt(largest);
}

/// The problem's points and centroids in T, and the state that every CPU version iterates on. For
/// fp32 the points are the harness's own, without a copy.
template <typename T>
struct State {
  std::span<const T> points;
  std::vector<T> widened;
  std::vector<T> initial, centroids, sums;
  std::vector<std::int64_t> counts;
  std::vector<std::int32_t> labels;
  int iterations = 0;

  explicit State(const Problem& problem)
      : initial(problem.centroids.begin(), problem.centroids.end()),
        centroids(initial),
        sums(initial.size()),
        counts(static_cast<std::size_t>(problem.k)),
        labels(static_cast<std::size_t>(problem.n)) {
    if constexpr (std::is_same_v<T, float>) {
      points = problem.points;
    } else {
      widened.assign(problem.points.begin(), problem.points.end());
      points = widened;
    }
  }

  Solution solution() const {
    return {labels, std::vector<double>(centroids.begin(), centroids.end()), iterations};
  }
};

}  // namespace lloyd::cpu
