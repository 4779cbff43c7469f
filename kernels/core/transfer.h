// Copies large arrays between the host and the current device at the speed of the link. The
// driver's own copy of pageable memory uses one pinned buffer, which one thread fills. Here several
// threads have pinned buffers of their own. The device copies pinned memory by itself.
//
// Every copy waits for the work in `stream` first, and returns when it is done.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <vector>

#include "kernels/core/cuda.h"
#include "kernels/core/version.h"

namespace lloyd::cuda {

/// Larger arrays are copied in chunks of so many bytes.
inline constexpr std::size_t kTransferChunk = std::size_t{2} << 20;

/// Makes the threads, pinned buffers and streams that all transfers of this process and the current
/// device share. The first transfer calls it if nobody did.
void prepare_transfers();

void upload(const void* from, std::size_t bytes, void* to, cudaStream_t stream);

/// Writes a chunk of an array, which starts at byte `first` of it. Several threads call it at once,
/// in no order.
using Write = std::function<void(void* chunk, std::size_t first, std::size_t bytes)>;
/// Uploads an array that is written on the way.
void upload(const Write& write, std::size_t bytes, void* to, cudaStream_t stream);

template <typename T>
void upload(std::span<const T> from, const Buffer<T>& to, cudaStream_t stream) {
  upload(from.data(), from.size_bytes(), to.data(), stream);
}

/// Uploads the points of `problem` as float, row-major. Moves 16 bits of a coordinate where the
/// problem has them.
void upload_points(const Problem& problem, float* to, cudaStream_t stream);

/// Uploads row-major points (n × dim) as `columns` (dim × n).
void upload_columns(std::span<const float> points, std::int64_t n, int dim, float* columns,
                    cudaStream_t stream);

/// Receives a chunk, which starts at byte `first` of the array. Several threads call it at once, in
/// no order.
using Receive = std::function<void(const void* chunk, std::size_t first, std::size_t bytes)>;
void download(const void* from, std::size_t bytes, const Receive& receive, cudaStream_t stream);

/// Fills `to` from the device.
template <typename T>
void download(const T* from, std::span<T> to, cudaStream_t stream) {
  const auto copy = [to](const void* chunk, std::size_t first, std::size_t bytes) {
    std::memcpy(reinterpret_cast<char*>(to.data()) + first, chunk, bytes);
  };
  download(from, to.size_bytes(), copy, stream);
}

/// Copies all of `from`, and converts its values.
template <typename From, typename To>
void download(const Buffer<From>& from, std::span<To> to, cudaStream_t stream) {
  const auto convert = [to](const void* chunk, std::size_t first, std::size_t bytes) {
    std::copy_n(static_cast<const From*>(chunk), bytes / sizeof(From),
                to.data() + first / sizeof(From));
  };
  download(from.data(), from.bytes(), convert, stream);
}

/// Copies labels into the memory that the harness lends, and as narrow as it is, or else returns
/// them. Label: std::uint8_t or std::int32_t.
template <typename Label>
std::vector<std::int32_t> download_labels(const Buffer<Label>& labels, const Context& context);

}  // namespace lloyd::cuda
