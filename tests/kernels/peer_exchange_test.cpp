// PeerExchange adds arrays of all types and sizes, on one GPU with several members and on several.
#include <gtest/gtest.h>

#include "kernels/core/device.h"

#if LLOYD_CUDA
#include <chrono>
#include <cstdint>
#include <random>
#include <thread>
#include <type_traits>
#include <vector>

#include "kernels/core/cuda.h"
#include "kernels/core/stream.h"
#include "kernels/fast/multi/peer_exchange.h"
#include "kernels/fast/multi/thread_group.h"
#endif

namespace lloyd::fast {
namespace {

#if LLOYD_CUDA
using cuda::Buffer;
using cuda::Terms;

/// One array of each type that an exchange adds up.
struct Arrays {
  std::vector<unsigned long long> integers;
  std::vector<unsigned> counts;
  std::vector<float> floats;
  std::vector<double> doubles;
  bool operator==(const Arrays&) const = default;
};

class PeerSums : public testing::Test {
 protected:
  void SetUp() override {
    const DeviceQuery query = query_devices();
    if (query.devices.empty()) GTEST_SKIP() << query.problem;
    team_ = query.devices.front().team;
  }

  // The devices of members: one GPU for all, and all GPUs.
  std::vector<std::vector<int>> groups() const {
    const int first = team_.front();
    std::vector<std::vector<int>> all{{first}, {first, first}, {first, first, first, first}};
    if (team_.size() > 1) all.push_back(team_);
    if (team_.size() > 1) all.push_back({team_[0], team_[1], team_[0], team_[1]});
    return all;
  }

  std::vector<int> team_;
};

template <typename T>
std::vector<T> draw(std::size_t size, std::mt19937_64& random) {
  std::vector<T> values(size);
  for (T& value : values) {
    if constexpr (std::is_floating_point_v<T>)
      value = std::uniform_real_distribution<T>(-1, 1)(random);
    else
      value = static_cast<T>(random());
  }
  return values;
}

// What so many calls of add_up() make of one array of each member.
template <typename T>
std::vector<T> added_up(const std::vector<Arrays>& given, std::vector<T> Arrays::*array,
                        int exchanges) {
  std::vector<T> sum = given.front().*array;
  for (std::size_t i = 0; i < sum.size(); ++i)
    for (std::size_t member = 1; member < given.size(); ++member)
      sum[i] += (given[member].*array)[i];
  for (int exchange = 1; exchange < exchanges; ++exchange)
    for (T& value : sum) {
      const T one = value;
      for (std::size_t member = 1; member < given.size(); ++member) value += one;
    }
  return sum;
}

TEST_F(PeerSums, AddsArraysOfAllTypesAndSizes) {
  constexpr int kExchanges = 9;
  constexpr std::int64_t kCapacity = 1000;
  for (const auto& devices : groups()) {
    PeerExchange exchange(devices, kCapacity);
    const auto members = static_cast<int>(devices.size());
    ThreadGroup group(members, [&] { exchange.abandon(); });
    for (const std::size_t size : {1u, 2u, 7u, 999u, 2000u, 70'001u}) {
      SCOPED_TRACE(testing::Message() << members << " members, the last one on GPU "
                                      << devices.back() << ", " << size << " values");
      std::mt19937_64 random(size);
      std::vector<Arrays> given, got(devices.size());
      for (int member = 0; member < members; ++member)
        given.push_back({draw<unsigned long long>(size, random), draw<unsigned>(size + 1, random),
                         draw<float>(size, random), draw<double>(size, random)});
      group.run([&](int member) {
        const auto at = static_cast<std::size_t>(member);
        LLOYD_CUDA_CHECK(cudaSetDevice(devices[at]));
        const cuda::Stream stream;
        Arrays& own = got[at] = given[at];
        Buffer<unsigned long long> integers(own.integers.size());
        Buffer<unsigned> counts(own.counts.size());
        Buffer<float> floats(own.floats.size());
        Buffer<double> doubles(own.doubles.size());
        integers.upload(own.integers, stream);
        counts.upload(own.counts, stream);
        floats.upload(own.floats, stream);
        doubles.upload(own.doubles, stream);
        LLOYD_CUDA_CHECK(cudaStreamSynchronize(stream));
        const std::vector<Terms> terms{Terms(integers), Terms(counts), Terms(floats),
                                       Terms(doubles)};
        // cudaMalloc and cudaFree may wait for kernels, which wait for the other members.
        group.share(member, {}, [](auto) {});
        for (int i = 0; i < kExchanges; ++i) exchange.add_up(member, terms, stream);
        LLOYD_CUDA_CHECK(cudaStreamSynchronize(stream));
        exchange.check();
        group.share(member, {}, [](auto) {});
        integers.download(own.integers, stream);
        counts.download(own.counts, stream);
        floats.download(own.floats, stream);
        doubles.download(own.doubles, stream);
      });
      const Arrays expected{added_up(given, &Arrays::integers, kExchanges),
                            added_up(given, &Arrays::counts, kExchanges),
                            added_up(given, &Arrays::floats, kExchanges),
                            added_up(given, &Arrays::doubles, kExchanges)};
      for (int member = 0; member < members; ++member)
        EXPECT_TRUE(got[static_cast<std::size_t>(member)] == expected) << "member " << member;
    }
  }
}

// The others must not wait for ever. `group` is not told, so only the flag of abandon() helps.
TEST_F(PeerSums, EndsKernelsThatWaitForAFailedMember) {
  const std::vector<int> devices(2, team_.front());
  PeerExchange exchange(devices, 100);
  const cuda::Stream stream;
  Buffer<unsigned> values(50);
  values.zero(stream);
  const Terms terms(values);
  exchange.add_up(0, {&terms, 1}, stream);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(cudaStreamQuery(stream), cudaErrorNotReady);  // it waits for member 1
  EXPECT_NO_THROW(exchange.check());
  exchange.abandon();
  LLOYD_CUDA_CHECK(cudaStreamSynchronize(stream));
  EXPECT_THROW(exchange.check(), std::runtime_error);
  EXPECT_THROW(exchange.add_up(1, {&terms, 1}, stream), std::runtime_error);
}

TEST_F(PeerSums, SaysHowManyMembersItTakes) {
  const std::vector<int> devices(9, team_.front());
  EXPECT_THROW(PeerExchange(devices, 1), Unsupported);
}
#endif

}  // namespace
}  // namespace lloyd::fast
