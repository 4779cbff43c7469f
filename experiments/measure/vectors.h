// Small arithmetic on centroids, which are stored as k × dim coordinates.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>

namespace lloyd {

using Centroids = std::span<const double>;

inline Centroids row(Centroids centroids, std::size_t j, std::size_t dim) {
  return centroids.subspan(j * dim, dim);
}

inline double norm(Centroids values) {
  double squares = 0;
  for (const double x : values) squares += x * x;
  return std::sqrt(squares);
}

inline double distance_between(Centroids a, Centroids b) {
  double squares = 0;
  for (std::size_t t = 0; t < a.size(); ++t) squares += (a[t] - b[t]) * (a[t] - b[t]);
  return std::sqrt(squares);
}

/// The largest distance between a centroid in `a` and the same centroid in `b`.
inline double largest_distance(Centroids a, Centroids b, std::size_t dim) {
  double largest = 0;
  for (std::size_t at = 0; at < a.size(); at += dim)
    largest = std::max(largest, distance_between(a.subspan(at, dim), b.subspan(at, dim)));
  return largest;
}

}  // namespace lloyd
