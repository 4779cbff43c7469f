// Where a version puts points and centroids before the loop: dimensions far from the origin are
// centred. Every version whose distance is ‖x‖² − 2x·c + ‖c‖² iterates in these coordinates, and so
// do those with the direct distance that sum or keep centroids in fp32.
//
// Why      Far from the origin that distance is the small difference of large numbers: its rounding
//          error is relative to (‖x‖ + ‖c‖)². Labels of 1e5 + N(0, 1) in fp32 are noise (n =
//          20,000, k = 64, dim 16: the inertia ends 25% too high), and an fp32 mean near 1e5 is a
//          multiple of 2^-7. With the origin in the middle of the points, both errors are relative
//          to their spread.
// Exact    A dimension is centred only if all its values have one sign and are within a factor of
//          5/3 of each other. The centre m is a value in the middle of that range, in the format of
//          the points, so m and every x are within a factor of 2 of each other. Then x − m is
//          exact: in fp32 by Sterbenz's lemma (Higham 2002, theorem 2.5), in fp16 and bf16 because
//          x and m are multiples of one power of two and their difference has fewer bits than they
//          have. So the labels and means of the centred points are those of the points themselves.
//          Every other dimension stays as it is, to the bit. Its values reach at most 5 times half
//          their range; a centre would round away what lies near zero. Initial centroids may be
//          anywhere. c − m is rounded to fp32 where it has to be, by at most 2^-24 |c − m|, which
//          is no more than rounding does to a distance from c.
// Back     A Solution has doubles: m + mean is computed in float64 and keeps what was gained. A
//          coordinate that did not change (of an empty cluster) is handed back as it was given.
//          Moves of centroids, which `tolerance` limits, are the same in both coordinates.
// Refused  Some points need a centre and have none: tight groups far from each other, or one zero
//          among values near 1e5. require_labels() tries the distance on a sample of the points,
//          and throws Unsupported where rounding decides the labels.
#pragma once

#include <span>
#include <vector>

#include "kernels/core/cuda.h"
#include "kernels/core/version.h"

namespace lloyd::fast {

/// placed = (given − centre) · scale, with a centre for each dimension that is 0 for most data.
class Placement {
 public:
  /// Leaves everything where it is.
  Placement() = default;

  /// For the points and the initial centroids of `problem`, whose spans must outlive this.
  /// `points`: n × dim on the device, as they were given. T: the format that the version keeps
  /// (float, __half or __nv_bfloat16).
  template <typename T>
  static Placement of(const Problem& problem, const float* points, cudaStream_t stream);

  /// The largest coordinate of points and initial centroids, as it is placed.
  float largest() const { return largest_ * scale_; }
  const std::vector<float>& centre() const { return centre_; }  // dim
  float scale() const { return scale_; }
  /// The initial centroids as they are placed.
  const std::vector<float>& centroids() const { return centroids_; }

  /// `factor`: a power of two, so that scaling is exact.
  void scale_by(float factor);

  /// Throws Unsupported, with the numbers, where the expanded distance in fp32 does not find the
  /// nearest initial centroid, although all are placed. `points`: as they were given. A label may
  /// lose on average what the harness lets the inertia of the precision lose: 1%, or 5% in 16 bits.
  /// (Simulated, the inertia of 12 iterations lost a fifth of what labels lost here.)
  void require_labels(const Problem& problem, const float* points, cudaStream_t stream) const;

  /// Places fp32 points that stay where they were uploaded, row-major.
  void centre(cuda::Buffer<float>& points, cudaStream_t stream) const;

  /// Centroids of the loop in the coordinates of the problem.
  std::vector<double> restored(std::span<const float> centroids) const;

 private:
  /// `round`: to the format that the version keeps.
  static Placement of(const Problem& problem, const float* points, cudaStream_t stream,
                      float (*round)(float));

  std::span<const float> given_;  // the initial centroids
  std::vector<float> centre_, centroids_;
  float scale_ = 1, largest_ = 0;
  double reach_ = 0;  // of the corner of all ranges that is farthest from the origin, unscaled
  bool is_centred_ = false;
};

}  // namespace lloyd::fast
