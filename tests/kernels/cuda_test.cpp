// Device memory: requests larger than the device, and memory that another process holds. Memory of
// the host that the device reads.
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <vector>

#include "kernels/core/device.h"

#if LLOYD_CUDA
#include "kernels/core/cuda.h"
#include "kernels/core/host_memory.h"
#include "kernels/core/staging.h"
#endif

namespace lloyd {
namespace {

class Cuda : public testing::Test {
 protected:
  void SetUp() override {
    if (const DeviceQuery query = query_devices(); query.devices.empty())
      GTEST_SKIP() << query.problem;
  }
};

#if LLOYD_CUDA
TEST_F(Cuda, SaysWhenTheDeviceIsTooSmall) {
  const auto total = query_devices().devices.front().memory_bytes;
  try {
    const cuda::Buffer<char> small(1'000'000);  // counts towards what is needed
    const cuda::Buffer<char> large(static_cast<std::size_t>(total));
    FAIL() << "more than the whole device was given";
  } catch (const Unsupported& error) {
    EXPECT_TRUE(std::regex_match(
        error.what(),
        std::regex("needs [0-9,]+ B of device memory or more, the device has [0-9,]+ B")))
        << error.what();
  }
}

TEST_F(Cuda, SaysWhenSomebodyElseHoldsTheMemory) {
  std::size_t free_bytes = 0, total = 0;
  LLOYD_CUDA_CHECK(cudaMemGetInfo(&free_bytes, &total));
  // All but a quarter of a GiB is held outside cuda::Buffer, as another process would hold it.
  void* held = nullptr;
  LLOYD_CUDA_CHECK(cudaMalloc(&held, free_bytes - (std::size_t{256} << 20)));
  try {
    const cuda::Buffer<char> buffer(std::size_t{1} << 30);
    ADD_FAILURE() << "memory that is taken was given";
  } catch (const cuda::OutOfMemory& error) {
    EXPECT_TRUE(std::regex_match(
        error.what(),
        std::regex("out of device memory: needs 1,073,741,824 B beside the 0 B it holds, "
                   "[0-9,]+ B of [0-9,]+ B are free; another process has the rest")))
        << error.what();
  }
  LLOYD_CUDA_CHECK(cudaFree(held));
  // The failed call has left no error for the next one to find.
  const cuda::Buffer<char> buffer(std::size_t{1} << 20);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

TEST_F(Cuda, ReadsAndWritesMappedMemory) {
  cuda::MappedBuffer<int> mapped(3'000'001);
  EXPECT_TRUE(cuda::is_pinned(mapped.data()));
  EXPECT_EQ(mapped.data()[3'000'000], 0);
  std::vector<int> values(mapped.size());
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int>(i);
  cuda::Buffer<int> on_device(values.size());
  on_device.upload(values, nullptr);
  LLOYD_CUDA_CHECK(
      cudaMemcpy(mapped.data(), on_device.data(), on_device.bytes(), cudaMemcpyDefault));
  EXPECT_TRUE(std::equal(values.begin(), values.end(), mapped.data()));
  mapped = {};
  EXPECT_EQ(mapped.data(), nullptr);
}

TEST_F(Cuda, SaysWhenTheHostsMemoryIsTooSmall) {
  try {
    const cuda::MappedBuffer<char> large(std::size_t{1} << 50);
    FAIL() << "more than the host has was given";
  } catch (const Unsupported& error) {
    EXPECT_TRUE(std::regex_match(
        error.what(), std::regex("needs 1,125,899,906,842,624 B of pinned host memory, [0-9,]+ B "
                                 "are free")))
        << error.what();
  }
}

TEST_F(Cuda, ErrorsNameTheCallAndThePlace) {
  try {
    LLOYD_CUDA_CHECK(cudaSetDevice(12345));
    FAIL() << "device 12345 was found";
  } catch (const cuda::Error& error) {
    EXPECT_EQ(error.code, cudaErrorInvalidDevice);
    EXPECT_TRUE(std::regex_search(error.what(), std::regex("cuda_test.cpp:[0-9]+: cudaSetDevice")))
        << error.what();
  }
  cudaGetLastError();
}
#else
TEST_F(Cuda, IsBuilt) { GTEST_SKIP() << "built without CUDA"; }
#endif

}  // namespace
}  // namespace lloyd
