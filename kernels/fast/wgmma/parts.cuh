// The implementation of parts.h, which shares the kernels of fast_wgmma.cu.
#pragma once

#include <cmath>
#include <memory>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

#include "kernels/fast/wgmma/engine.cuh"
#include "kernels/fast/wgmma/kept_sums.cuh"
#include "kernels/fast/wgmma/parts.h"
#include "kernels/fast/wgmma/place.cuh"

namespace lloyd::fast {
namespace {

// Scales by a power of two, which is exact, what would be subnormal or overflow.
template <typename T>
void lift(Placement& placement) {
  const float largest = placement.largest();
  const int exponent = largest > 0 ? std::ilogb(largest) : 0;
  constexpr bool kIsHalf = std::is_same_v<T, __half>;
  if (kIsHalf && exponent < -4) placement.scale_by(std::ldexp(1.0f, 8 - exponent));
  if (!kIsHalf && std::abs(exponent) > 30) placement.scale_by(std::ldexp(1.0f, -exponent));
}

// Adds the sums of a part to those of all parts, in fp64. `last`: leaves these in `sums`.
__global__ void __launch_bounds__(kBlock)
    fold_sums(float* sums, double* totals, std::int64_t count, bool last) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kBlock + threadIdx.x;
  if (i >= count) return;
  const double total = totals[i] + sums[i];
  totals[i] = last ? 0 : total;
  sums[i] = last ? static_cast<float>(total) : 0;
}

template <typename T>
class Parts : public WgmmaParts {
 public:
  Parts(const Problem& problem, const DeviceLimits& device, Exchange* exchange, cudaStream_t stream)
      : problem_(problem), exchange_(exchange), engine_(problem, device) {
    if (!engine_.can_add_up()) throw Unsupported("needs code for sm_90a, which this build lacks");
    if (engine_.padded() != padded_for_parts(problem.dim))
      throw std::logic_error("parts.h pads points otherwise than the engine");
    centroid_tiles_ = (problem.k + engine_.columns() - 1) / engine_.columns();
    tiles_ = cuda::Buffer<char>(
        static_cast<std::size_t>(centroid_tiles_) *
        static_cast<std::size_t>(tile_bytes(engine_.padded(), engine_.columns())));
    kept_ = KeptSums<T>(static_cast<std::size_t>(problem.k), padded(), exchange);
    centre_ = cuda::Buffer<float>(static_cast<std::size_t>(problem.dim));
    kept_.begin(stream);
  }

  Placement placement(const Problem& sample, const float* given, const Ranges& ranges,
                      cudaStream_t stream) override {
    Placement placement = Placement::of<T>(problem_, ranges, stream);
    lift<T>(placement);
    const cuda::Buffer<float> centroids(problem_.centroids.size());
    placement.upload_centroids(centroids, stream);
    placement.require_labels(sample, given, centroids, stream, exchange_);
    centre_.upload(placement.centre(), stream);
    LLOYD_CUDA_CHECK(cudaStreamSynchronize(stream));
    scale_ = placement.scale();
    return placement;
  }

  int add(const Place& place) override {
    Engine<T> engine = engine_;
    engine.prepare(static_cast<const T*>(place.points), place.rows);
    places_.emplace_back(place, engine);
    return static_cast<int>(places_.size()) - 1;
  }

  void see(const void* given, std::int64_t count, Ranges& ranges,
           cudaStream_t stream) const override {
    ranges.add(static_cast<const T*>(given), count, stream);
  }

  void place(const void* given, std::int64_t count, int place, std::int64_t first,
             cudaStream_t stream) const override {
    const Place& to = places_[static_cast<std::size_t>(place)].first;
    const std::int64_t rows = Engine<T>::point_rows(count);
    place_points<<<cuda::blocks_for(rows * 32, kBlock), kBlock, 0, stream>>>(
        static_cast<const T*>(given), count, problem_.dim, centre_.data(), scale_, rows, rows,
        engine_.padded(), static_cast<T*>(to.points) + first * engine_.padded(),
        to.half_norms + first);
    LLOYD_CUDA_CHECK_LAUNCH();
  }

  void begin(float* centroids, cudaStream_t stream) override {
    kept_.begin(stream);
    assigned_ = 0;
    place_centroids_from(nullptr, centroids, nullptr, stream);
  }

  void assign(int place, std::int64_t count, std::int32_t* labels, unsigned* changes,
              cudaStream_t stream) override {
    const auto& [from, engine] = places_[static_cast<std::size_t>(place)];
    // One part alone is added up as fast_wgmma does it.
    if (assigned_ == 1)
      LLOYD_CUDA_CHECK(cudaMemsetAsync(kept_.kept(), 0, cells() * sizeof(double), stream));
    if (assigned_ > 0) fold(false, stream);
    ++assigned_;
    const int tiles = static_cast<int>((count + kTilePoints - 1) / kTilePoints);
    engine.assign({.points = from.points,
                   .half_norms = from.half_norms,
                   .centroids = tiles_.data(),
                   .n = count,
                   .point_tiles = tiles,
                   .centroid_tiles = centroid_tiles_,
                   .k = problem_.k,
                   .labels = labels,
                   .changes = changes,
                   .sums = kept_.sums(),
                   .tallies = kept_.tallies(),
                   .all = true,
                   .tiles_each = tiles},
                  stream);
  }

  void move(float* centroids, unsigned* largest_move_bits, cudaStream_t stream) override {
    if (assigned_ > 1) fold(true, stream);
    assigned_ = 0;
    place_centroids_from(kept_.sums(), centroids, largest_move_bits, stream);
  }

 private:
  std::size_t padded() const { return static_cast<std::size_t>(engine_.padded()); }
  std::size_t cells() const { return static_cast<std::size_t>(problem_.k) * padded(); }

  void fold(bool last, cudaStream_t stream) {
    const auto count = static_cast<std::int64_t>(cells());
    fold_sums<<<cuda::blocks_for(count, kBlock), kBlock, 0, stream>>>(kept_.sums(), kept_.kept(),
                                                                      count, last);
    LLOYD_CUDA_CHECK_LAUNCH();
  }

  // `sums`: null to lay out the centroids as they are.
  void place_centroids_from(float* sums, float* centroids, unsigned* largest_move_bits,
                            cudaStream_t stream) {
    const int rows = centroid_tiles_ * engine_.columns();
    // place_centroids() keeps the sums where those of all parts were: these are zeroed before the
    // next use.
    Sums<T> of_parts{
        .sums = sums, .kept = kept_.kept(), .tallies = kept_.tallies(), .all = true, .renew = true};
    if (sums != nullptr) of_parts = kept_.of_all(of_parts, stream);
    place_centroids<T, false>
        <<<cuda::blocks_for(std::int64_t{rows} * 32, kBlock), kBlock, 0, stream>>>(
            centroids, of_parts, problem_.k, problem_.dim, engine_.padded(), engine_.held(),
            engine_.columns(), tiles_.data(), rows, largest_move_bits, scale_);
    LLOYD_CUDA_CHECK_LAUNCH();
  }

  Problem problem_;
  Exchange* exchange_;
  Engine<T> engine_;  // of which every place has a copy
  std::vector<std::pair<Place, Engine<T>>> places_;
  int centroid_tiles_ = 0;
  float scale_ = 1;
  int assigned_ = 0;  // parts since the last move
  cuda::Buffer<char> tiles_;
  cuda::Buffer<float> centre_;
  KeptSums<T> kept_;  // in sums() the part's, in kept() those of all parts
};

}  // namespace

std::unique_ptr<WgmmaParts> make_wgmma_parts(const Problem& problem, const DeviceLimits& device,
                                             Exchange* exchange, cudaStream_t stream) {
  if (problem.precision == Precision::fp16)
    return std::make_unique<Parts<__half>>(problem, device, exchange, stream);
  return std::make_unique<Parts<__nv_bfloat16>>(problem, device, exchange, stream);
}

}  // namespace lloyd::fast
