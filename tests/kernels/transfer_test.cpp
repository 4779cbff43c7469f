// Copies between host and device in chunks.
#include <gtest/gtest.h>

#include "kernels/core/device.h"

#if LLOYD_CUDA
#include <algorithm>
#include <numeric>
#include <vector>

#include "kernels/core/transfer.h"
#endif

namespace lloyd {
namespace {

class Transfer : public testing::Test {
 protected:
  void SetUp() override {
    if (const DeviceQuery query = query_devices(); query.devices.empty())
      GTEST_SKIP() << query.problem;
  }
};

#if LLOYD_CUDA
constexpr std::size_t kChunk = cuda::kTransferChunk;

// Different at any two places that a wrong chunk could swap.
template <typename T>
T value_at(std::size_t i) {
  return static_cast<T>(i * 2654435761u >> 7);
}

template <typename T>
std::vector<T> values(std::size_t count) {
  std::vector<T> all(count);
  for (std::size_t i = 0; i < count; ++i) all[i] = value_at<T>(i);
  return all;
}

// Sizes in bytes at which the number of chunks changes, and several rounds of all threads.
const std::vector<std::size_t>& sizes() {
  static const std::vector<std::size_t> all{0,          1,          kChunk - 1,     kChunk,
                                            kChunk + 1, 3 * kChunk, 37 * kChunk + 5};
  return all;
}

TEST_F(Transfer, UploadsPageableMemory) {
  for (const std::size_t size : sizes()) {
    const auto host = values<unsigned char>(size);
    const cuda::Buffer<unsigned char> device(std::max<std::size_t>(size, 1));
    cuda::upload(std::span(host), device, nullptr);
    std::vector<unsigned char> back(device.size());
    device.download(back, nullptr);
    back.resize(size);
    EXPECT_TRUE(back == host) << size;
  }
}

TEST_F(Transfer, UploadsPinnedMemory) {
  for (const std::size_t size : sizes()) {
    if (size == 0) continue;
    const auto host = values<unsigned char>(size);
    void* pinned = nullptr;
    LLOYD_CUDA_CHECK(cudaMallocHost(&pinned, size));
    std::ranges::copy(host, static_cast<unsigned char*>(pinned));
    const cuda::Buffer<unsigned char> device(size);
    cuda::upload(pinned, size, device.data(), nullptr);
    std::vector<unsigned char> back(size);
    device.download(back, nullptr);
    EXPECT_TRUE(back == host) << size;
    LLOYD_CUDA_CHECK(cudaFreeHost(pinned));
  }
}

template <typename Label>
void expect_labels_back() {
  for (const std::size_t size : sizes()) {
    const auto host = values<Label>(size / sizeof(Label));
    cuda::Buffer<Label> device(std::max<std::size_t>(host.size(), 1));
    device.upload(host, nullptr);
    std::vector<std::int32_t> back(device.size(), -1);
    cuda::download(device, std::span(back), nullptr);
    back.resize(host.size());
    EXPECT_TRUE(std::ranges::equal(back, host)) << size;
  }
}

TEST_F(Transfer, DownloadsLabelsOf8Bits) { expect_labels_back<std::uint8_t>(); }
TEST_F(Transfer, DownloadsLabelsOf16Bits) { expect_labels_back<std::uint16_t>(); }
TEST_F(Transfer, DownloadsLabelsOf32Bits) { expect_labels_back<std::int32_t>(); }

TEST_F(Transfer, TransposesRowsOfAnyLength) {
  constexpr auto kValues = static_cast<std::int64_t>(kChunk / sizeof(float));
  for (const auto& [n, dim] : {std::pair<std::int64_t, int>{1, 1},
                               {3, 7},
                               {kValues + 1, 1},
                               {700'001, 3},
                               {3, static_cast<int>(kValues) + 1}}) {
    const auto rows = values<float>(static_cast<std::size_t>(n * dim));
    const cuda::Buffer<float> device(rows.size());
    cuda::upload_columns(rows, n, dim, device.data(), nullptr);
    std::vector<float> columns(rows.size());
    device.download(columns, nullptr);
    std::int64_t wrong = 0;
    for (std::int64_t i = 0; i < n; ++i)
      for (int t = 0; t < dim; ++t)
        wrong += columns[static_cast<std::size_t>(t * n + i)] !=
                 rows[static_cast<std::size_t>(i * dim + t)];
    EXPECT_EQ(wrong, 0) << n << " × " << dim;
  }
}

TEST_F(Transfer, WaitsForTheStream) {
  cudaStream_t stream = nullptr;
  LLOYD_CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  constexpr std::size_t kSize = 16 * kChunk;
  constexpr int kTimes = 200;  // longer than a copy of the first chunks
  const cuda::Buffer<unsigned char> device(kSize);
  std::vector<unsigned char> host(kSize, 7), back(kSize);
  const auto overwrite = [&](int value) {
    for (int time = 0; time < kTimes; ++time)
      LLOYD_CUDA_CHECK(cudaMemsetAsync(device.data(), value, kSize, stream));
  };
  overwrite(3);
  cuda::download(device, std::span(back), stream);
  EXPECT_EQ(std::ranges::count(back, 3), static_cast<std::ptrdiff_t>(kSize));
  overwrite(3);
  cuda::upload(std::span<const unsigned char>(host), device, stream);
  device.download(back, stream);
  EXPECT_EQ(std::ranges::count(back, 7), static_cast<std::ptrdiff_t>(kSize));
  LLOYD_CUDA_CHECK(cudaStreamDestroy(stream));
}

TEST_F(Transfer, PassesOnWhatReceiveThrows) {
  const cuda::Buffer<char> device(5 * kChunk);
  const auto fail = [](const void*, std::size_t first, std::size_t) {
    if (first == 2 * kChunk) throw std::runtime_error("full");
  };
  EXPECT_THROW(cuda::download(device.data(), device.bytes(), fail, nullptr), std::runtime_error);
  std::vector<char> back(device.size());  // the threads still work
  cuda::download(device, std::span(back), nullptr);
}
#else
TEST_F(Transfer, IsBuilt) { GTEST_SKIP() << "built without CUDA"; }
#endif

}  // namespace
}  // namespace lloyd
