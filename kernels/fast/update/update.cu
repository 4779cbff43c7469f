#include <algorithm>

#include "kernels/fast/lib/dependent_launch.cuh"
#include "kernels/fast/update/at_once.cuh"
#include "kernels/fast/update/finish.cuh"
#include "kernels/fast/update/sums.cuh"
#include "kernels/fast/update/update.h"

namespace lloyd::fast {
namespace {
namespace update {

// The types of sums: of the first iterations, and where they are kept.
template <typename Real>
using FirstSum = std::conditional_t<std::is_same_v<Real, double>, Twice, float>;
template <typename Real>
using KeptSum = std::conditional_t<std::is_same_v<Real, double>, Twice, double>;

// Points a cluster from which on sums are kept: reading and writing the sums must cost less than
// reading all points.
constexpr int kFewestKept = 32;

__global__ void count_changes(const std::int32_t* __restrict__ labels,
                              std::int32_t* __restrict__ previous, std::int64_t n,
                              unsigned* changes) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const std::int32_t label = i < n ? labels[i] : 0;
  const bool changed = i < n && previous[i] != label;
  if (changed) previous[i] = label;
  const unsigned votes = __ballot_sync(0xffffffffu, changed);
  if (threadIdx.x % 32 == 0 && votes != 0) atomicAdd(changes, static_cast<unsigned>(__popc(votes)));
}

}  // namespace update
}  // namespace

using namespace update;

void count_changes(const std::int32_t* labels, std::int32_t* previous, std::int64_t n,
                   unsigned* changes, cudaStream_t stream) {
  constexpr int kBlock = 256;
  update::count_changes<<<cuda::blocks_for(n, kBlock), kBlock, 0, stream>>>(labels, previous, n,
                                                                            changes);
  LLOYD_CUDA_CHECK_LAUNCH();
}

template <typename Value, typename Real>
Update<Value, Real>::Update(std::int64_t n, int k, int dim, std::int64_t stride,
                            const DeviceLimits& device, cudaStream_t stream, Exchange* exchange)
    : exchange_(exchange),
      n_(n),
      stride_(stride),
      k_(k),
      dim_(dim),
      loads_(RowLoads::of<Value>(dim, stride)),
      overlap_(can_overlap(device)) {
  pitch_ = (loads_.padded() + 3) / 4 * 4;
  if (std::is_same_v<Real, float> && exchange == nullptr)
    one_kernel_ = sizes_at_once<Value, NothingMore>(n, k, loads_, device);
  if (one_kernel_.span > 0) return;
  std::int64_t run = kShortestRun;
  while (run < kLongRun && n > run * kWantedRuns) run *= 2;
  run = std::max<std::int64_t>(run, (n + kMostRuns - 1) / kMostRuns);
  runs_ = static_cast<unsigned>((n + run - 1) / run);
  keeps_ = LabelSort::can_count(k, device) && n / k >= kFewestKept;
  sort_ = LabelSort(n, k, keeps_, device, stream);
  const auto clusters = static_cast<std::size_t>(k), pitch = static_cast<std::size_t>(pitch_);
  // A run that meets the end of a cluster begins a new sum.
  const std::size_t sums = (std::size_t{runs_} + clusters) * pitch;
  const std::size_t bytes = keeps_ ? sizeof(KeptSum<Real>) : sizeof(FirstSum<Real>);
  partials_ = cuda::Buffer<float>(sums * bytes / sizeof(float));
  if (exchange != nullptr) shared_ = cuda::Buffer<double>(clusters * (pitch + 1));
  partials_.zero(stream);  // finish() reads, and does not use, what pads rows to four coordinates
  if (!keeps_) return;
  previous_ = cuda::Buffer<std::int32_t>(static_cast<std::size_t>(n));
  kept_ = cuda::Buffer<double>(clusters * pitch * sizeof(KeptSum<Real>) / sizeof(double));
  sizes_ = cuda::Buffer<unsigned>(clusters);
}

template <typename Value, typename Real>
void Update<Value, Real>::run(int iteration, const Value* points, const std::int32_t* labels,
                              Real* centroids, MoveBits<Real>* largest_move_bits,
                              cudaStream_t stream) {
  if constexpr (std::is_same_v<Real, float>)
    if (one_kernel_.span > 0)
      return launch_at_once(one_kernel_, loads_, points, stride_, labels, n_, k_, dim_, centroids,
                            largest_move_bits, NothingMore{}, stream);
  if (!keeps_ || iteration + 1 < kUnsettled) {
    // fp32 is faster, and exact enough where the next iteration starts anew.
    sort_.all(labels, nullptr, stream);
    sum_and_finish<FirstSum<Real>>(true, points, centroids, largest_move_bits, stream);
  } else if (iteration < kUnsettled) {
    sort_.all(labels, previous_.data(), stream);
    sum_and_finish<KeptSum<Real>>(true, points, centroids, largest_move_bits, stream);
  } else {
    sort_.changes(labels, previous_.data(), sizes_.data(), stream);
    sum_and_finish<KeptSum<Real>>(false, points, centroids, largest_move_bits, stream);
  }
  if (exchange_ == nullptr) return;
  if constexpr (std::is_same_v<Real, float>) {
    const Terms all(shared_);
    exchange_->add_up({&all, 1}, stream);
    move_to_means<<<cuda::blocks_for(std::int64_t{k_} * 32, kMoveBlock), kMoveBlock, 0, stream>>>(
        shared_.data(), pitch_, k_, dim_, centroids, largest_move_bits);
    LLOYD_CUDA_CHECK_LAUNCH();
  }
}

// `anew`: of all points.
template <typename Value, typename Real>
template <typename Sum>
void Update<Value, Real>::sum_and_finish(bool anew, const Value* points, Real* centroids,
                                         MoveBits<Real>* largest_move_bits, cudaStream_t stream) {
  auto* partials = reinterpret_cast<Sum*>(partials_.data());
  const unsigned entries = anew ? static_cast<unsigned>(n_) : 0;
  switch (loads_.values) {
    case 8:
      sum<Sum, 8>(entries, points, partials, stream);
      break;
    case 4:
      sum<Sum, 4>(entries, points, partials, stream);
      break;
    case 2:
      sum<Sum, 2>(entries, points, partials, stream);
      break;
    default:
      sum<Sum, 1>(entries, points, partials, stream);
  }
  if constexpr (std::is_same_v<Real, float>)
    if (exchange_ != nullptr)
      return finish<Sum, true>(anew, entries, partials, shared_.data(), nullptr, stream);
  finish<Sum, false>(anew, entries, partials, centroids, largest_move_bits, stream);
}

template <typename Value, typename Real>
template <typename Sum, int kValues>
void Update<Value, Real>::sum(unsigned entries, const Value* points, Sum* partials,
                              cudaStream_t stream) {
  if constexpr (kValues * sizeof(Value) <= 16) {
    const dim3 grid(cuda::blocks_for(std::int64_t{runs_} * 32, kSumBlock),
                    static_cast<unsigned>((loads_.vectors + 31) / 32));
    launch(overlap_, sum_rows<Value, kValues, Sum>, grid, kSumBlock, 0, stream, points, stride_,
           loads_.vectors, loads_.group, sort_.order(), sort_.starts(), k_, entries, runs_,
           partials, pitch_);
  }
}

template <typename Value, typename Real>
template <typename Sum, bool kShared>
void Update<Value, Real>::finish(bool anew, unsigned entries, const Sum* partials,
                                 std::conditional_t<kShared, double, Real>* target,
                                 MoveBits<Real>* largest_move_bits, cudaStream_t stream) {
  int columns = 1;  // of four coordinates
  while (4 * columns < dim_ && columns < 32) columns *= 2;
  const int shares = kFinishBlock / columns;
  int slices = 1, clusters = 1;
  if (largest_move_bits == nullptr) {
    slices = (dim_ + 4 * columns - 1) / (4 * columns);
    clusters = static_cast<int>(std::min<std::int64_t>(
        shares, std::max<std::int64_t>(1, std::int64_t{k_} * slices / kFinishBlocks)));
  }
  const dim3 grid(static_cast<unsigned>((k_ + clusters - 1) / clusters),
                  static_cast<unsigned>(slices));
  const dim3 block(static_cast<unsigned>(columns), static_cast<unsigned>(shares));
  const Kept<Sum> kept{reinterpret_cast<Four<Sum>*>(kept_.data()), sizes_.data(), anew};
  launch(overlap_, update::finish<Sum, kShared>, grid, block, 0, stream,
         reinterpret_cast<const Four<Sum>*>(partials), pitch_ / 4, sort_.starts(), entries, runs_,
         k_, dim_, clusters, kept, target, sort_.totals(), largest_move_bits);
}

template class Update<float>;
template class Update<float, double>;
template class Update<__half>;
template class Update<__nv_bfloat16>;

}  // namespace lloyd::fast
