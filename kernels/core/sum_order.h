// The order in which the oracle adds up. It decides the last bits, so the host and the GPU share
// it.
#pragma once

#include <cstdint>

#include "kernels/core/host_device.h"

namespace lloyd {

/// The parts of the points that cluster_sums() adds up. Within a part the points of a cluster are
/// added one after the other, then the parts are added in order. All parts of an empty cluster are
/// 0.
class SumParts {
 public:
  // As many parts as keep the cores busy, but few enough that their sums stay below 64 MiB, and
  // that adding those up costs less than the points. The number depends only on the sizes, so the
  // order of the additions, and with it the last bit, is the same on every machine.
  SumParts(std::int64_t n, int k, int dim) : n_(n) {
    const std::int64_t bytes = k * (dim * std::int64_t{16} + 8);
    const std::int64_t fit = (std::int64_t{64} << 20) / bytes;
    const std::int64_t worthwhile = n / (8 * std::int64_t{k});
    const std::int64_t most = fit < worthwhile ? fit : worthwhile;
    number_ = most < 1 ? 1 : most < kMost ? most : kMost;
  }

  LLOYD_HOST_DEVICE std::int64_t number() const { return number_; }
  /// The first point of a part. That of part number() is n.
  LLOYD_HOST_DEVICE std::int64_t first(std::int64_t part) const { return n_ * part / number_; }

  static constexpr std::int64_t kMost = 64;

 private:
  std::int64_t n_, number_;
};

/// sum() adds so many values at a time, and then their sums.
inline constexpr std::int64_t kSumPiece = 1 << 16;

/// Neumaier's compensated sum (1974).
class CompensatedSum {
 public:
  LLOYD_HOST_DEVICE void add(double x) {
    const double next = total_ + x;
    // What `next` lost of both, exactly and without a branch (Knuth's TwoSum).
    const double added = next - total_;
    lost_ += (total_ - (next - added)) + (x - added);
    total_ = next;
  }
  LLOYD_HOST_DEVICE double value() const { return total_ + lost_; }

 private:
  double total_ = 0, lost_ = 0;
};

}  // namespace lloyd
