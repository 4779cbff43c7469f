// Where a version puts points and centroids before the loop: dimensions far from the origin are
// centred. Every version whose distance is ‖x‖² − 2x·c + ‖c‖² iterates in these coordinates, and so
// do those with the direct distance that sum or keep centroids in fp32.
//
// Why      Far from the origin that distance is the small difference of large numbers, and the
//          rounding error hides it.
// Exact    Only dimensions whose values have one sign and are within a factor of 5/3 of each other
//          are centred. There x − m is exact. All others keep their bits.
// Back     m + mean is computed in float64. An unchanged coordinate is returned as it was given.
// Never    In a spherical problem: its centroids are scaled about the origin.
// Refused  Points that need a centre but have none (require_labels()).
// More     NOTES.md: the proof.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "kernels/core/cuda.h"
#include "kernels/core/version.h"
#include "kernels/fast/lib/exchange.h"

namespace lloyd::fast {

/// The smallest and the largest value of each dimension, of points that may come in parts.
class Ranges {
 public:
  Ranges(int dim, cudaStream_t stream);
  /// Of row-major points on the device, of float, __half or __nv_bfloat16.
  template <typename T>
  void add(const T* points, std::int64_t n, cudaStream_t stream);
  /// Of the points on all GPUs.
  void combine(Exchange& exchange, cudaStream_t stream);
  std::vector<std::pair<float, float>> all(cudaStream_t stream) const;

 private:
  cuda::Buffer<int> low_, high_;
};

/// placed = (given − centre) · scale, with a centre for each dimension that is 0 for most data. All
/// problems of a batch are placed alike.
class Placement {
 public:
  /// Leaves everything where it is.
  Placement() = default;

  /// For the points and the initial centroids of `problem`, whose spans must outlive this.
  /// `points`: n × dim on the device, as they were given. T: the format that the version keeps
  /// (float, __half or __nv_bfloat16). `exchange`: with GPUs that have other points, which are
  /// placed alike; or null.
  template <typename T>
  static Placement of(const Problem& problem, const float* points, cudaStream_t stream,
                      Exchange* exchange = nullptr) {
    Ranges ranges(problem.dim, stream);
    ranges.add(points, problem.n * problem.batch, stream);
    if (exchange != nullptr) ranges.combine(*exchange, stream);
    return of<T>(problem, ranges, stream);
  }
  /// The same for points whose ranges are known.
  template <typename T>
  static Placement of(const Problem& problem, const Ranges& ranges, cudaStream_t stream);

  /// The largest coordinate of points and initial centroids, as it is placed.
  float largest() const { return largest_ * scale_; }
  const std::vector<float>& centre() const { return centre_; }  // dim
  float scale() const { return scale_; }
  /// The initial centroids as they are placed: batch × k × dim, row-major.
  std::vector<float> centroids() const;
  void upload_centroids(const cuda::Buffer<float>& to, cudaStream_t stream) const;

  /// `factor`: a power of two, so that scaling is exact.
  void scale_by(float factor) { scale_ *= factor; }

  /// Throws Unsupported, with the numbers, where the expanded distance in fp32 does not find the
  /// nearest initial centroid, although all are placed. `points`: as they were given; `centroids`:
  /// as upload_centroids() left them. A label may lose on average what the inertia may lose:
  /// inertia_tolerance(). (Simulated, the inertia of 12 iterations lost a fifth of what labels lost
  /// here.)
  void require_labels(const Problem& problem, const float* points,
                      const cuda::Buffer<float>& centroids, cudaStream_t stream,
                      Exchange* exchange = nullptr) const;

  /// Places fp32 points that stay where they were uploaded, row-major: `values` coordinates.
  void centre(float* points, std::int64_t values, cudaStream_t stream) const;
  void centre(cuda::Buffer<float>& points, cudaStream_t stream) const {
    centre(points.data(), static_cast<std::int64_t>(points.size()), stream);
  }

  /// Centroids of the loop, row-major, in the coordinates of the problem.
  std::vector<double> restored(std::span<const float> centroids) const;
  std::vector<double> restored(const cuda::Buffer<float>& centroids, const Context& context) const;

 private:
  /// `round`: to the format that the version keeps.
  static Placement of(const Problem& problem, const Ranges& ranges, cudaStream_t stream,
                      float (*round)(float));

  // Both on `count` coordinates of centroids from number `first` on.
  void place(std::size_t first, std::size_t count, float* placed) const;
  void restore(const float* centroids, std::size_t first, std::size_t count, double* to) const;

  std::span<const float> given_;  // the initial centroids
  std::vector<float> centre_;
  float scale_ = 1, largest_ = 0;
  double reach_ = 0;  // of the corner of all ranges that is farthest from the origin, unscaled
  bool is_centred_ = false;
};

}  // namespace lloyd::fast
