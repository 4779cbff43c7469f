// The kernels of fast_wgmma for points that come in parts, for stream_wgmma. Sums are always made
// in the kernel of the products, of all points.
#pragma once

#include <cstdint>
#include <memory>

#include "kernels/core/version.h"
#include "kernels/fast/lib/placement.h"
#include "kernels/fast/wgmma/parts_sizes.h"

namespace lloyd::fast {

class WgmmaParts {
 public:
  /// Memory of the caller for placed points: `rows` rows, whole multiples of kPartPoints, of
  /// padded_for_parts(dim) 16-bit values, and 4 bytes for each.
  struct Place {
    void* points;
    float* half_norms;
    std::int64_t rows;
  };

  virtual ~WgmmaParts() = default;

  /// Decides how points are placed. `sample`: a problem with some of the points and all initial
  /// centroids, by which expanded distances are judged; `given`: its points on the device.
  virtual Placement placement(const Problem& sample, const float* given, const Ranges& ranges,
                              CUstream_st* stream) = 0;
  /// Returns the number of the place.
  virtual int add(const Place& place) = 0;
  /// The ranges of more points, as they are given: row-major, in the 16 bits of the precision.
  virtual void see(const void* given, std::int64_t count, Ranges& ranges,
                   CUstream_st* stream) const = 0;
  /// Places points as placement() decided, from row `first` of the place on. Rows behind them are
  /// zeroed up to a multiple of kPartPoints.
  virtual void place(const void* given, std::int64_t count, int place, std::int64_t first,
                     CUstream_st* stream) const = 0;

  /// Begins a solve.
  virtual void begin(float* centroids, CUstream_st* stream) = 0;
  /// Labels the first `count` points of a place and adds them up. `labels`: the previous ones, or
  /// −1; `changes`: counts those that differ, or null.
  virtual void assign(int place, std::int64_t count, std::int32_t* labels, unsigned* changes,
                      CUstream_st* stream) = 0;
  /// Moves the centroids to the means of all points since the last move, on all GPUs.
  /// `largest_move_bits`: as place_centroids() takes it.
  virtual void move(float* centroids, unsigned* largest_move_bits, CUstream_st* stream) = 0;
};

/// `exchange`: with GPUs that have other points of the problem, or null. Throws Unsupported where
/// the kernels were not compiled for the device.
std::unique_ptr<WgmmaParts> make_wgmma_parts(const Problem& problem, const DeviceLimits& device,
                                             Exchange* exchange, CUstream_st* stream);

}  // namespace lloyd::fast
