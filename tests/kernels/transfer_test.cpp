// Copies between host and device in chunks.
#include <gtest/gtest.h>

#include "kernels/core/device.h"

#if LLOYD_CUDA
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <span>
#include <stdexcept>
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

// Host memory that the device copies by itself.
template <typename T>
class Pinned {
 public:
  explicit Pinned(std::span<T> memory) : memory_(memory.data()) {
    LLOYD_CUDA_CHECK(cudaHostRegister(memory_, memory.size_bytes(), cudaHostRegisterDefault));
  }
  ~Pinned() { cudaHostUnregister(memory_); }
  Pinned(const Pinned&) = delete;

 private:
  T* memory_;
};

// From labels of the device to those that the harness lends, by number of clusters.
template <typename Label>
void expect_lent_labels(int k) {
  for (const std::size_t size : sizes())
    for (const bool pinned : {false, true}) {
      const std::size_t n = size / static_cast<std::size_t>(label_bytes(k)) + 1;
      std::vector<Label> host(n);
      for (std::size_t i = 0; i < n; ++i)
        host[i] = static_cast<Label>(value_at<std::uint32_t>(i) % static_cast<unsigned>(k));
      cuda::Buffer<Label> device(n);
      device.upload(host, nullptr);
      LabelBuffer lent(n, k);
      std::optional<Pinned<std::byte>> pins;
      if (pinned) pins.emplace(lent.memory());
      Context context;
      context.label_buffer = &lent;
      EXPECT_TRUE(cuda::download_labels(device, context).empty());
      EXPECT_TRUE(lent.is_filled);
      EXPECT_TRUE(std::ranges::equal(lent.widened(), host)) << n << " labels, k = " << k;
    }
}

TEST_F(Transfer, FillsLentLabels) {
  expect_lent_labels<std::uint8_t>(256);
  expect_lent_labels<std::int32_t>(256);
  expect_lent_labels<std::int32_t>(65'536);
  expect_lent_labels<std::int32_t>(65'537);
}

TEST_F(Transfer, RefusesLentLabelsOfAnotherNumber) {
  const cuda::Buffer<std::int32_t> device(3);
  LabelBuffer lent(4, 2);
  Context context;
  context.label_buffer = &lent;
  EXPECT_THROW(cuda::download_labels(device, context), std::logic_error);
}

TEST_F(Transfer, WidensPointsOf16Bits) {
  for (const std::size_t size : sizes())
    for (const Precision precision : {Precision::fp16, Precision::bf16})
      for (const bool pinned : {false, true}) {
        const std::size_t count = size / 2 + 1;
        std::vector<std::uint16_t> halves(count);
        std::vector<float> expected(count);
        for (std::size_t i = 0; i < count; ++i) {
          // 1 + m·2^-7, whose significand both formats hold
          const auto m = static_cast<unsigned>(value_at<std::uint8_t>(i) & 127);
          halves[i] = static_cast<std::uint16_t>(precision == Precision::fp16 ? 0x3c00 | m << 3
                                                                              : 0x3f80 | m);
          expected[i] = 1 + static_cast<float>(m) / 128;
        }
        std::optional<Pinned<std::uint16_t>> pins;
        if (pinned) pins.emplace(halves);
        Problem problem{.precision = precision};
        problem.halves = halves;
        const cuda::Buffer<float> device(count);
        cuda::upload_points(problem, device.data(), nullptr);
        std::vector<float> back(count);
        device.download(back, nullptr);
        EXPECT_TRUE(back == expected) << count << ' ' << to_string(precision);
      }
}

TEST_F(Transfer, UploadsPointsOf32Bits) {
  const auto points = values<float>(kChunk);
  Problem problem{.precision = Precision::fp16};  // without halves
  problem.points = points;
  const cuda::Buffer<float> device(points.size());
  cuda::upload_points(problem, device.data(), nullptr);
  std::vector<float> back(points.size());
  device.download(back, nullptr);
  EXPECT_TRUE(back == points);
}

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
