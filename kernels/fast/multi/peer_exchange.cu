#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <string>

#include "kernels/core/device_guard.h"
#include "kernels/core/version.h"
#include "kernels/fast/multi/peer_exchange.h"
#include "kernels/fast/multi/peer_link.cuh"

namespace lloyd::fast {
namespace {

using cuda::Terms;

constexpr int kBlock = 256;
// The most blocks that all members on one device launch together. Blocks wait for those of other
// members, so all must be resident.
constexpr int kMostBlocks = 64;
constexpr int kMostArrays = 8;
static_assert(kMostBlocks >= kMostShards);

/// Arrays one after another, in units of 8 bytes: a value, or two of 4 bytes.
struct Arrays {
  struct Array {
    void* data;
    std::int64_t values;
    std::int64_t end;  // in units, from the first array on
    Terms::Type type;
  } of[kMostArrays];
  int count;
};

template <typename T>
constexpr int kPerUnit = static_cast<int>(sizeof(std::uint64_t) / sizeof(T));

/// The values of unit i of an array.
template <typename T>
__device__ std::uint64_t load_unit(const T* values, std::int64_t count, std::int64_t i) {
  T pair[kPerUnit<T>] = {};
  for (int of = 0; of < kPerUnit<T>; ++of)
    if (i * kPerUnit<T> + of < count) pair[of] = values[i * kPerUnit<T> + of];
  std::uint64_t unit;
  memcpy(&unit, pair, sizeof unit);
  return unit;
}

template <typename T>
__device__ void store_sum(T* values, std::int64_t count, std::int64_t i,
                          const std::uint64_t (&units)[kMostShards], int shards) {
  struct Unit {
    T of[kPerUnit<T>];
    __device__ Unit operator+(const Unit& other) const {
      Unit sum;
      for (int i = 0; i < kPerUnit<T>; ++i) sum.of[i] = of[i] + other.of[i];
      return sum;
    }
  };
  const Unit sum = sum_of_units<Unit>(units, shards);
  for (int of = 0; of < kPerUnit<T>; ++of)
    if (i * kPerUnit<T> + of < count) values[i * kPerUnit<T> + of] = sum.of[of];
}

template <typename Body>
__device__ void with_values(const Arrays::Array& array, Body&& body) {
  switch (array.type) {
    case Terms::Type::int64:
      return body(static_cast<unsigned long long*>(array.data));
    case Terms::Type::uint32:
      return body(static_cast<unsigned*>(array.data));
    case Terms::Type::fp32:
      return body(static_cast<float*>(array.data));
    case Terms::Type::fp64:
      return body(static_cast<double*>(array.data));
  }
}

/// Calls body(array, unit of the array) for unit i of all.
template <typename Body>
__device__ void with_unit(const Arrays& arrays, std::int64_t i, Body&& body) {
  int a = 0;
  while (i >= arrays.of[a].end) ++a;
  body(arrays.of[a], a == 0 ? i : i - arrays.of[a - 1].end);
}

/// Units first to end − 1, which fit an inbox. Each thread sends all of its units before it waits
/// for one.
__global__ void __launch_bounds__(kBlock)
    add_up_over_link(const __grid_constant__ Arrays arrays, std::int64_t first, std::int64_t end,
                     const __grid_constant__ PeerLink link, unsigned number) {
  const std::int64_t start = first + static_cast<std::int64_t>(blockIdx.x) * kBlock + threadIdx.x;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kBlock;
  for (std::int64_t i = start; i < end; i += step)
    with_unit(arrays, i, [&](const Arrays::Array& array, std::int64_t unit) {
      with_values(array, [&](const auto* values) {
        link.send(i - first, load_unit(values, array.values, unit), number);
      });
    });
  for (std::int64_t i = start; i < end; i += step) {
    std::uint64_t units[kMostShards];
    if (!link.receive(i - first, number, units)) return;
    with_unit(arrays, i, [&](const Arrays::Array& array, std::int64_t unit) {
      with_values(array,
                  [&](auto* values) { store_sum(values, array.values, unit, units, link.shards); });
    });
  }
}

void let_access(int device, int other) {
  int can = 0;
  LLOYD_CUDA_CHECK(cudaDeviceCanAccessPeer(&can, device, other));
  if (can == 0)
    throw Unsupported("GPU " + std::to_string(device) + " cannot reach the memory of GPU " +
                      std::to_string(other));
  const cuda::DeviceGuard on(device);
  const cudaError_t code = cudaDeviceEnablePeerAccess(other, 0);
  if (code == cudaErrorPeerAccessAlreadyEnabled)
    cudaGetLastError();  // clears it
  else
    LLOYD_CUDA_CHECK(code);
}

unsigned* allocate_flag() {
  void* flag = nullptr;
  LLOYD_CUDA_CHECK(
      cudaHostAlloc(&flag, sizeof(unsigned), cudaHostAllocPortable | cudaHostAllocMapped));
  *static_cast<unsigned*>(flag) = 0;
  return static_cast<unsigned*>(flag);
}

}  // namespace

struct PeerExchange::Member {
  int device;
  cuda::Buffer<ulonglong2> inbox;
  unsigned exchanges = 0;  // begun; only the member's own thread touches it
};

PeerExchange::PeerExchange(std::span<const int> devices, std::int64_t capacity)
    : capacity_(capacity), failed_(allocate_flag(), cudaFreeHost) {
  if (devices.size() > kMostShards)
    throw Unsupported("adds up over at most " + std::to_string(kMostShards) + " GPUs, not " +
                      std::to_string(devices.size()));
  for (const int device : devices) {
    for (const int other : devices)
      if (other != device) let_access(device, other);
    const cuda::DeviceGuard on(device);
    // No exchange has the number 0.
    cuda::Buffer<ulonglong2> inbox(2 * devices.size() * static_cast<std::size_t>(capacity));
    inbox.zero(nullptr);
    LLOYD_CUDA_CHECK(cudaStreamSynchronize(nullptr));
    // Loads the kernel. Later that could have to wait for a kernel that waits for this one.
    cudaFuncAttributes attributes;
    LLOYD_CUDA_CHECK(cudaFuncGetAttributes(&attributes, add_up_over_link));
    members_.push_back({device, std::move(inbox)});
  }
}

PeerExchange::~PeerExchange() = default;  // here Member is complete

int PeerExchange::sharers(int member) const {
  const int device = members_[static_cast<std::size_t>(member)].device;
  return static_cast<int>(std::count_if(members_.begin(), members_.end(), [&](const Member& other) {
    return other.device == device;
  }));
}

PeerLink PeerExchange::link(int member) const {
  PeerLink link{.shard = member,
                .shards = static_cast<int>(members_.size()),
                .capacity = capacity_,
                .inboxes = {},
                .failed = failed_.get()};
  for (std::size_t i = 0; i < members_.size(); ++i) link.inboxes[i] = members_[i].inbox.data();
  return link;
}

unsigned PeerExchange::next(int member) {
  check();
  return ++members_[static_cast<std::size_t>(member)].exchanges;
}

void PeerExchange::add_up(int member, std::span<const Terms> terms, cudaStream_t stream) {
  if (terms.size() > kMostArrays)
    throw std::logic_error("an exchange takes at most " + std::to_string(kMostArrays) + " arrays");
  Arrays arrays{};
  std::int64_t units = 0;
  for (const Terms& term : terms) {
    units += static_cast<std::int64_t>((term.bytes() + 7) / 8);
    arrays.of[arrays.count++] = {term.data, static_cast<std::int64_t>(term.count), units,
                                 term.type};
  }
  const PeerLink to = link(member);
  const auto most = static_cast<unsigned>(kMostBlocks / sharers(member));
  for (std::int64_t first = 0; first < units; first += capacity_) {
    const std::int64_t end = std::min(first + capacity_, units);
    const unsigned blocks = std::min(cuda::blocks_for(end - first, kBlock), most);
    add_up_over_link<<<blocks, kBlock, 0, stream>>>(arrays, first, end, to, next(member));
    LLOYD_CUDA_CHECK_LAUNCH();
  }
}

void PeerExchange::abandon() noexcept {
  std::atomic_ref(*failed_).store(1, std::memory_order_relaxed);
}

void PeerExchange::check() const {
  if (std::atomic_ref(*failed_).load(std::memory_order_relaxed) != 0)
    throw std::runtime_error(
        "GPUs that solve a problem together lost each other: one of them "
        "failed, or kept the others waiting for more than 10 s");
}

}  // namespace lloyd::fast
