// The update of the versions whose assignment is a matrix product: labels in, new centroids out,
// the same bits for the same labels.
//
//   sort     A stable counting sort puts the points' indices in order of label. Rows stay in place.
//   sums     Warps add up runs of rows in that order, in registers.
//   finish   The sums of each cluster are added in their order, and its centroid is moved.
//
// Where points are few, one kernel does all of that (at_once.cuh). Elsewhere, with at least 32
// points per cluster, only points that changed cluster are sorted and added up after the first
// iterations: once for the cluster they came to and once, negatively, for the one they left. The
// sums are then kept from one iteration to the next, in fp64: a sum of fp32 values that comes and
// goes leaves nothing there.
// For centroids in fp64 all sums are made in twice its digits (twice.cuh).
// No float is added atomically, so nothing depends on the GPU's scheduling.
// Floor: one read of the points, or of the labels twice. NOTES.md has what was tried.
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/core/cuda.h"
#include "kernels/fast/lib/exchange.h"
#include "kernels/fast/lib/move_bits.h"
#include "kernels/fast/update/row_loads.h"
#include "kernels/fast/update/sort.h"
#include "kernels/fast/update/team_sizes.h"

namespace lloyd::fast {

/// The first iterations add up all points: half of them change cluster in the second.
constexpr int kUnsettled = 3;

/// Adds to *changes the number of labels that differ from `previous`, which becomes `labels`.
void count_changes(const std::int32_t* labels, std::int32_t* previous, std::int64_t n,
                   unsigned* changes, cudaStream_t stream);

/// The memory and launches of an update of k centroids of `dim` dimensions from n < 2^31 points of
/// Value (float, __half or __nv_bfloat16). Rows are `stride` values apart; what lies between dim
/// and stride is never used, and where stride is a multiple of 16 bytes, rows are read 16 bytes at
/// a time. Takes 4 bytes a point, 12 where sums are kept, and more where k is too large to count in
/// shared memory. Real: the type of the centroids, float or double.
template <typename Value, typename Real = float>
class Update {
 public:
  Update() = default;
  /// `exchange`: with GPUs that have other points, whose sums and sizes count, too; or null, as it
  /// must be for centroids in fp64.
  Update(std::int64_t n, int k, int dim, std::int64_t stride, const DeviceLimits& device,
         cudaStream_t stream, Exchange* exchange = nullptr);

  /// Replaces `centroids` (k × dim) by the means of the points with their label; those of empty
  /// clusters keep their bits. `largest_move_bits`, where not null, becomes the larger of itself
  /// and the largest squared move. `iteration`: how often this was called since the solve began.
  /// `labels` are at a multiple of 16 bytes.
  void run(int iteration, const Value* points, const std::int32_t* labels, Real* centroids,
           MoveBits<Real>* largest_move_bits, cudaStream_t stream);

 private:
  template <typename Sum>
  void sum_and_finish(bool anew, const Value* points, Real* centroids,
                      MoveBits<Real>* largest_move_bits, cudaStream_t stream);
  template <typename Sum, int kValues>
  void sum(unsigned entries, const Value* points, Sum* partials, cudaStream_t stream);
  template <typename Sum, bool kShared>
  void finish(bool anew, unsigned entries, const Sum* partials,
              std::conditional_t<kShared, double, Real>* target, MoveBits<Real>* largest_move_bits,
              cudaStream_t stream);

  Exchange* exchange_ = nullptr;
  std::int64_t n_ = 0, stride_ = 0;
  unsigned runs_ = 0;  // at most
  int k_ = 0, dim_ = 0;
  RowLoads loads_;
  int pitch_ = 4;         // values between two partial sums
  TeamSizes one_kernel_;  // no span: as three steps, with what stands below
  bool keeps_ = false, overlap_ = false;
  LabelSort sort_;
  cuda::Buffer<std::int32_t> previous_;  // the labels before, where sums are kept
  cuda::Buffer<float> partials_;         // of any type of sum
  cuda::Buffer<double> kept_;            // the clusters' sums, or twice as many for Twice
  cuda::Buffer<unsigned> sizes_;         // and how many points they have
  cuda::Buffer<double> shared_;          // sums, then sizes: they are added up over all GPUs
};

}  // namespace lloyd::fast
