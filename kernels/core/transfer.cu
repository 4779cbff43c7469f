#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstring>
#include <stdexcept>
#include <vector>

#include "kernels/core/staging.h"
#include "kernels/core/transfer.h"

namespace lloyd::cuda {
namespace {

constexpr int kBlock = 256;

/// An array on the host whose chunks go to the device.
struct Source {
  explicit Source(const void* array)
      : first(static_cast<const char*>(array)), pinned(is_pinned(array)) {}

  /// Queues the copy of a chunk.
  void send(Staging::Slot& slot, void* to) const {
    const void* from = first + slot.first;
    if (!pinned) from = std::memcpy(slot.pinned, from, slot.bytes);
    LLOYD_CUDA_CHECK(cudaMemcpyAsync(to, from, slot.bytes, cudaMemcpyHostToDevice, slot.stream));
  }

  const char* first;
  bool pinned;
};

// `first`: the number of the first of these values of row-major points.
__global__ void into_columns(const float* values, std::int64_t count, std::int64_t first,
                             std::int64_t n, int dim, float* columns) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kBlock + threadIdx.x;
  if (i < count) columns[(first + i) % dim * n + (first + i) / dim] = values[i];
}

template <typename Half>
__global__ void widen(const Half* halves, std::int64_t count, float* values) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kBlock + threadIdx.x;
  if (i < count) values[i] = static_cast<float>(halves[i]);
}

template <typename Half>
void upload_halves(std::span<const std::uint16_t> halves, float* to, cudaStream_t stream) {
  const Source source(halves.data());
  const auto begin = [&](Staging::Slot& slot) {
    Half* chunk = slot.device_chunk<Half>();
    source.send(slot, chunk);
    const auto count = static_cast<std::int64_t>(slot.bytes / sizeof(Half));
    widen<<<blocks_for(count, kBlock), kBlock, 0, slot.stream>>>(chunk, count,
                                                                 to + slot.first / sizeof(Half));
    LLOYD_CUDA_CHECK_LAUNCH();
  };
  Staging::of_current_device().run(halves.size_bytes(), {begin, nullptr}, stream);
}

template <typename From, typename To>
__global__ void convert(const From* from, std::int64_t count, To* to) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kBlock + threadIdx.x;
  if (i < count) to[i] = static_cast<To>(from[i]);
}

// To: the width of `to`.
template <typename To, typename From>
void fill(const Buffer<From>& labels, std::span<std::byte> to, cudaStream_t stream) {
  const bool pinned = is_pinned(to.data());
  const auto begin = [&](Staging::Slot& slot) {
    const From* chunk = labels.data() + slot.first / sizeof(To);
    const void* from = chunk;
    if constexpr (sizeof(From) != sizeof(To)) {
      To* converted = slot.device_chunk<To>();
      const auto count = static_cast<std::int64_t>(slot.bytes / sizeof(To));
      convert<<<blocks_for(count, kBlock), kBlock, 0, slot.stream>>>(chunk, count, converted);
      LLOYD_CUDA_CHECK_LAUNCH();
      from = converted;
    }
    void* target = pinned ? to.data() + slot.first : slot.pinned;
    LLOYD_CUDA_CHECK(
        cudaMemcpyAsync(target, from, slot.bytes, cudaMemcpyDeviceToHost, slot.stream));
  };
  const auto end = [&](Staging::Slot& slot) {
    if (!pinned) std::memcpy(to.data() + slot.first, slot.pinned, slot.bytes);
  };
  Staging::of_current_device().run(to.size(), {begin, end}, stream);
}

}  // namespace

void prepare_transfers() { Staging::of_current_device(); }

void upload(const void* from, std::size_t bytes, void* to, cudaStream_t stream) {
  if (bytes == 0) return;
  if (is_pinned(from)) {
    LLOYD_CUDA_CHECK(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream));
    LLOYD_CUDA_CHECK(cudaStreamSynchronize(stream));
    return;
  }
  const Source source(from);
  const auto begin = [&](Staging::Slot& slot) {
    source.send(slot, static_cast<char*>(to) + slot.first);
  };
  Staging::of_current_device().run(bytes, {begin, nullptr}, stream);
}

void upload(const Write& write, std::size_t bytes, void* to, cudaStream_t stream) {
  const auto begin = [&](Staging::Slot& slot) {
    write(slot.pinned, slot.first, slot.bytes);
    LLOYD_CUDA_CHECK(cudaMemcpyAsync(static_cast<char*>(to) + slot.first, slot.pinned, slot.bytes,
                                     cudaMemcpyHostToDevice, slot.stream));
  };
  Staging::of_current_device().run(bytes, {begin, nullptr}, stream);
}

void upload_columns(std::span<const float> points, std::int64_t n, int dim, float* columns,
                    cudaStream_t stream) {
  const Source source(points.data());
  const auto begin = [&](Staging::Slot& slot) {
    auto* chunk = slot.device_chunk<float>();
    source.send(slot, chunk);
    const auto count = static_cast<std::int64_t>(slot.bytes / sizeof(float));
    into_columns<<<blocks_for(count, kBlock), kBlock, 0, slot.stream>>>(
        chunk, count, static_cast<std::int64_t>(slot.first / sizeof(float)), n, dim, columns);
    LLOYD_CUDA_CHECK_LAUNCH();
  };
  Staging::of_current_device().run(points.size_bytes(), {begin, nullptr}, stream);
}

void upload_points(const Problem& problem, float* to, cudaStream_t stream) {
  if (problem.halves.empty())
    upload(problem.points.data(), problem.points.size_bytes(), to, stream);
  else if (problem.precision == Precision::fp16)
    upload_halves<__half>(problem.halves, to, stream);
  else
    upload_halves<__nv_bfloat16>(problem.halves, to, stream);
}

void download(const void* from, std::size_t bytes, const Receive& receive, cudaStream_t stream) {
  const auto begin = [&](Staging::Slot& slot) {
    LLOYD_CUDA_CHECK(cudaMemcpyAsync(slot.pinned, static_cast<const char*>(from) + slot.first,
                                     slot.bytes, cudaMemcpyDeviceToHost, slot.stream));
  };
  const auto end = [&](Staging::Slot& slot) { receive(slot.pinned, slot.first, slot.bytes); };
  Staging::of_current_device().run(bytes, {begin, end}, stream);
}

template <typename Label>
std::vector<std::int32_t> download_labels(const Buffer<Label>& labels, const Context& context) {
  if (context.label_buffer == nullptr) {
    std::vector<std::int32_t> widened(labels.size());
    download(labels, std::span(widened), context.stream);
    return widened;
  }
  LabelBuffer& lent = *context.label_buffer;
  if (lent.size() != labels.size())
    throw std::logic_error("the memory lent for labels has another size");
  if (lent.width() == 1)
    fill<std::uint8_t>(labels, lent.memory(), context.stream);
  else if (lent.width() == 2)
    fill<std::uint16_t>(labels, lent.memory(), context.stream);
  else
    fill<std::int32_t>(labels, lent.memory(), context.stream);
  lent.is_filled = true;
  return {};
}
template std::vector<std::int32_t> download_labels(const Buffer<std::uint8_t>&, const Context&);
template std::vector<std::int32_t> download_labels(const Buffer<std::int32_t>&, const Context&);

}  // namespace lloyd::cuda
