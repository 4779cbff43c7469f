// Lloyd's loop on the device, for a version whose host launches the kernels of each iteration: the
// buffers that all of them have, the iteration, the stopping rules and the answer. A version fills
// in prepare(), begin(), step() and fetch_labels(). Where other GPUs have other points of the same
// problem, it adds up sums and sizes of clusters over all GPUs in step(), through exchange_.
#pragma once

#include <cstdint>
#include <span>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include "kernels/core/cuda.h"
#include "kernels/core/transfer.h"
#include "kernels/core/version.h"
#include "kernels/fast/lib/exchange.h"
#include "kernels/fast/lib/move_bits.h"
#include "kernels/fast/lib/placement.h"

namespace lloyd::fast {

/// What an iteration tells the stopping rules.
template <typename Real>
struct FlagsOf {
  unsigned changes;             // points that changed cluster
  MoveBits<Real> largest_move;  // bits of the largest squared move
  unsigned blocks_done;         // for a kernel whose last block goes on alone: 0 between kernels
};
using Flags = FlagsOf<float>;

/// Real: the type of the centroids, float or double. A loop with double places nothing.
template <typename Real>
class DeviceLoopOf : public Version {
 public:
  /// `exchange`: with the other GPUs, of which each has such a loop; null where there are none.
  explicit DeviceLoopOf(Exchange* exchange = nullptr) : exchange_(exchange) {}

  void run(Context& context) final;
  Solution fetch(Context& context) final;

 protected:
  // ---- What a version calls in prepare(), in this order. ----

  /// Keeps the problem, allocates what stands below.
  void allocate(const Problem& problem);
  /// Uploads the points of the problem as they are given, in the phase "transfer".
  cuda::Buffer<float> upload_points(Context& context) const;
  /// Uploads the initial centroids.
  void upload_initial(std::span<const float> centroids, Context& context);
  /// Decides how points and centroids are placed, and uploads the initial centroids. `given`: as
  /// upload_points() returned them. T: the format in which the version keeps its points. Expanded:
  /// throws Unsupported where rounding would decide the labels.
  template <typename T>
  void place(const cuda::Buffer<float>& given, Distance distance, Context& context) {
    if constexpr (std::is_same_v<Real, float>) {
      placement_ = Placement::of<T>(problem_, given.data(), context.stream, exchange_);
      placement_.upload_centroids(initial_, context.stream);
      if (distance == Distance::expanded)
        placement_.require_labels(problem_, given.data(), initial_, context.stream, exchange_);
    } else {
      throw std::logic_error("a loop with double places nothing");
    }
  }
  /// All of that for points that stay as they come, in fp32 and row-major: returns them, placed.
  cuda::Buffer<float> upload_placed(Distance distance, Context& context);

  // ---- What a version fills in. ----

  /// Before the first iteration: no point has a label yet. centroids_ holds the initial ones.
  virtual void begin(Context& context) = 0;
  /// One iteration, from centroids_ to centroids_, with flags_ where a stopping rule reads them.
  virtual void step(Context& context) = 0;
  /// Called after begin() where no rule can stop the loop: queues all iterations, in the phase
  /// "solve". Returns false where the version has no kernel for that; then step() is called.
  virtual bool queue_all_iterations(Context& /*context*/) { return false; }
  /// Part of the phase "converge": counts in flags_ the points that changed cluster, where step()
  /// does not. Called only where the rule asks.
  virtual void count_changes(Context& /*context*/) {}
  /// cuda::download_labels() of the last iteration's labels.
  virtual std::vector<std::int32_t> fetch_labels(Context& context) = 0;
  /// The centroids in the coordinates of the problem, row-major.
  virtual std::vector<double> fetch_centroids(Context& context);

  // ---- What a version asks in them. ----

  bool has_tolerance() const { return problem_.stop.tolerance > 0; }
  bool has_min_changes() const { return problem_.stop.min_changes > 0; }
  bool has_rule() const { return has_tolerance() || has_min_changes(); }
  /// Whether this iteration may be the last, so that its labels are part of the answer.
  bool wants_labels() const { return has_rule() || iterations_ + 1 == problem_.stop.iterations; }
  /// Where kernels count the points that changed cluster; null where no rule asks.
  unsigned* changes() const { return has_min_changes() ? &flags_.data()->changes : nullptr; }
  /// Where kernels keep the largest squared move; null where no rule asks.
  MoveBits<Real>* largest_move() const {
    return has_tolerance() ? &flags_.data()->largest_move : nullptr;
  }
  /// The same for a kernel that moves centroids to means: null in a spherical problem, where
  /// scale_means() moves them further.
  MoveBits<Real>* largest_move_to_mean() const {
    return problem_.spherical ? nullptr : largest_move();
  }
  /// A version that can solve spherical problems calls these two in step(), before and after it
  /// moves centroids to means. The first makes all centroids NaN; those that still are afterwards
  /// are of clusters without points. The second scales the others to length 1, and takes these
  /// back. In other problems both do nothing.
  void forget_centroids(Context& context);
  void scale_means(Context& context);
  /// Before the first iteration, where changes are counted: every label is −1.
  template <typename Label>
  void forget(const cuda::Buffer<Label>& labels, Context& context) const {
    if (!has_min_changes()) return;
    LLOYD_CUDA_CHECK(cudaMemsetAsync(labels.data(), 0xff, labels.bytes(), context.stream));
  }
  Exchange* exchange_;  // null: this GPU has all points
  Problem problem_;
  Placement placement_;
  cuda::Buffer<Real> initial_, centroids_;  // placed
  cuda::Buffer<Real> before_;               // the step; only of a spherical problem
  cuda::Buffer<FlagsOf<Real>> flags_;       // zero before each iteration, where there is a rule
  int iterations_ = 0;                      // done

 private:
  bool may_stop(Context& context);
};

using DeviceLoop = DeviceLoopOf<float>;

}  // namespace lloyd::fast
