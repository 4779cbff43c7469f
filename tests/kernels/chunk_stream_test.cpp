// Chunks of host memory that pass through the device.
#include <gtest/gtest.h>

#include "kernels/core/device.h"

#if LLOYD_CUDA
#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "experiments/measure/session.h"
#include "kernels/core/chunk_stream.h"
#endif

namespace lloyd {
namespace {

#if LLOYD_CUDA
enum class From { pinned, pageable, filled };

class ChunkStream : public testing::TestWithParam<From> {
 protected:
  void SetUp() override {
    const DeviceQuery query = query_devices();
    if (query.devices.empty()) GTEST_SKIP() << query.problem;
    session_ = make_cuda_session(0);
  }

  // An array in chunks of `size` bytes, the last one shorter.
  std::vector<cuda::ChunkStream::Chunk> chunks_of(std::size_t bytes, std::size_t size) {
    pinned_ = nullptr;
    array_.resize(bytes);
    for (std::size_t i = 0; i < bytes; ++i)
      array_[i] = static_cast<std::byte>(i * 2654435761u >> 13);
    if (GetParam() == From::pinned) pinned_ = session_->pin(array_);
    std::vector<cuda::ChunkStream::Chunk> chunks;
    for (std::size_t first = 0; first < bytes; first += size)
      chunks.push_back(std::span(array_).subspan(first, std::min(size, bytes - first)));
    return chunks;
  }

  static std::unique_ptr<cuda::ChunkStream> stream_of(
      const std::vector<cuda::ChunkStream::Chunk>& chunks, int slots) {
    if (GetParam() != From::filled) return std::make_unique<cuda::ChunkStream>(chunks, slots);
    std::vector<std::size_t> sizes;
    for (const cuda::ChunkStream::Chunk& chunk : chunks) sizes.push_back(chunk.size());
    return std::make_unique<cuda::ChunkStream>(
        std::move(sizes),
        [chunks](std::size_t chunk, std::size_t first, std::span<std::byte> to) {
          std::ranges::copy(chunks[chunk].subspan(first, to.size()), to.begin());
        },
        slots);
  }

  // Reads chunks as they come, `count` in all.
  void expect_chunks(cuda::ChunkStream& stream, const std::vector<cuda::ChunkStream::Chunk>& chunks,
                     std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      const cuda::ChunkStream::Chunk& expected = chunks[i % chunks.size()];
      std::vector<std::byte> came(expected.size());
      const void* memory = stream.next(session_->stream());
      LLOYD_CUDA_CHECK(cudaMemcpyAsync(came.data(), memory, came.size(), cudaMemcpyDeviceToHost,
                                       session_->stream()));
      stream.release(session_->stream());
      LLOYD_CUDA_CHECK(cudaStreamSynchronize(session_->stream()));
      ASSERT_TRUE(std::ranges::equal(came, expected)) << "chunk " << i;
    }
  }

  std::unique_ptr<Session> session_;
  std::vector<std::byte> array_;
  std::shared_ptr<const void> pinned_;
};

TEST_P(ChunkStream, BringsChunksInOrder) {
  constexpr std::size_t kMiB = std::size_t{1} << 20;
  struct Size {
    std::size_t bytes, chunk;
  };
  for (const Size& size : {Size{1, 1}, Size{1000, 300}, Size{9 * kMiB, 9 * kMiB},
                           Size{60 * kMiB + 1, 6 * kMiB}, Size{100 * kMiB + 17, 9 * kMiB + 2}})
    for (const int slots : {1, 2, 3}) {
      SCOPED_TRACE(testing::Message() << size.bytes << " B in chunks of " << size.chunk << " B, "
                                      << slots << " slots");
      const auto chunks = chunks_of(size.bytes, size.chunk);
      const auto stream = stream_of(chunks, slots);
      for (const int passes : {1, 3}) {
        stream->start(passes, session_->stream());
        expect_chunks(*stream, chunks, chunks.size() * static_cast<std::size_t>(passes));
      }
    }
}

TEST_P(ChunkStream, BeginsAnewWhereItWasNotReadToTheEnd) {
  const auto chunks = chunks_of(50'000'001, 10'000'000);
  const auto stream = stream_of(chunks, 3);
  for (const std::size_t read : {0, 1, 7}) {
    stream->start(1000, session_->stream());
    expect_chunks(*stream, chunks, read);
  }
}

TEST_P(ChunkStream, LeavesTheThreadsToOthersOnceStopped) {
  const auto chunks = chunks_of(50'000'001, 10'000'000);
  const auto first = stream_of(chunks, 3), second = stream_of(chunks, 2);
  first->start(1000, session_->stream());
  expect_chunks(*first, chunks, 2);
  first->stop();
  second->start(1, session_->stream());
  expect_chunks(*second, chunks, chunks.size());
}

TEST_P(ChunkStream, TakesNoChunks) { stream_of({}, 3)->start(20, session_->stream()); }

INSTANTIATE_TEST_SUITE_P(Lloyd, ChunkStream,
                         testing::Values(From::pinned, From::pageable, From::filled),
                         [](const auto& tested) {
                           return tested.param == From::pinned     ? "pinned"
                                  : tested.param == From::pageable ? "pageable"
                                                                   : "filled";
                         });
#endif

}  // namespace
}  // namespace lloyd
