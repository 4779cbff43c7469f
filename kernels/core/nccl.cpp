#include "kernels/core/nccl.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <map>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "kernels/core/cuda.h"
#include "kernels/core/device_guard.h"
#include "kernels/core/transfer.h"
#include "kernels/core/version.h"

namespace lloyd::cuda {
namespace {

// The few declarations of nccl.h that we need (NCCL API guide; the ABI of version 2 is stable).
class Library {
 public:
  using Communicator = void*;

  static const Library& get() {
    static const Library library;
    return library;
  }

  void init_all(std::span<Communicator> communicators, std::span<const int> devices) const {
    check(init_all_(communicators.data(), static_cast<int>(devices.size()), devices.data()),
          "ncclCommInitAll");
  }
  struct UniqueId {
    char bytes[128];  // NCCL_UNIQUE_ID_BYTES
  };
  UniqueId unique_id() const {
    UniqueId id{};
    check(unique_id_(&id), "ncclGetUniqueId");
    return id;
  }
  /// For the current device. Waits for the others of `size`.
  void init_rank(Communicator& communicator, int size, const UniqueId& id, int rank) const {
    check(init_rank_(&communicator, size, id, rank), "ncclCommInitRank");
  }
  void all_reduce(const Terms& terms, Communicator communicator, cudaStream_t stream) const {
    constexpr int kSum = 0;
    check(all_reduce_(terms.data, terms.data, terms.count, type_of(terms.type), kSum, communicator,
                      stream),
          "ncclAllReduce");
  }
  void abort(Communicator communicator) const { abort_(communicator); }

  /// One launch for what `body` queues.
  template <typename Body>
  void group(Body&& body) const {
    check(group_start_(), "ncclGroupStart");
    body();
    check(group_end_(), "ncclGroupEnd");
  }

 private:
  Library() : library_(dlopen(kName, RTLD_NOW | RTLD_LOCAL)) {
    if (library_ == nullptr)
      throw Unsupported(fmt::format(
          "needs {}, which is not installed (name its folder in LD_LIBRARY_PATH)", kName));
    // Multicast over NVLink (NVLS) stays off: a program that dies while it uses it can leave the
    // GPUs of the host unusable. (NCCL user guide, NCCL_NVLS_ENABLE.)
    setenv("NCCL_NVLS_ENABLE", "0", 1);
    find("ncclCommInitAll", init_all_);
    find("ncclGetUniqueId", unique_id_);
    find("ncclCommInitRank", init_rank_);
    find("ncclAllReduce", all_reduce_);
    find("ncclCommAbort", abort_);
    find("ncclGroupStart", group_start_);
    find("ncclGroupEnd", group_end_);
    find("ncclGetErrorString", error_string_);
  }

  template <typename Function>
  void find(const char* name, Function*& function) {
    function = reinterpret_cast<Function*>(dlsym(library_, name));
    if (function == nullptr) throw std::runtime_error(fmt::format("{} has no {}", kName, name));
  }

  void check(int status, const char* called) const {
    if (status != 0) throw std::runtime_error(fmt::format("{}: {}", called, error_string_(status)));
  }

  // ncclDataType_t
  static int type_of(Terms::Type type) {
    switch (type) {
      case Terms::Type::uint32:
        return 3;
      case Terms::Type::int64:
        return 4;
      case Terms::Type::fp32:
        return 7;
      case Terms::Type::fp64:
        return 8;
    }
    throw std::logic_error("no such type");
  }

  static constexpr const char* kName = "libnccl.so.2";
  void* library_;
  int (*init_all_)(Communicator*, int, const int*) = nullptr;
  int (*unique_id_)(UniqueId*) = nullptr;
  int (*init_rank_)(Communicator*, int, UniqueId, int) = nullptr;
  int (*all_reduce_)(const void*, void*, std::size_t, int, int, Communicator,
                     cudaStream_t) = nullptr;
  int (*abort_)(Communicator) = nullptr;
  int (*group_start_)() = nullptr;
  int (*group_end_)() = nullptr;
  const char* (*error_string_)(int) = nullptr;
};

// The communicators of one list of devices of this process, of which the other ranks have as many.
class Team {
 public:
  Team(std::span<const int> devices, Ranks* ranks) : members_(devices.size()) {
    std::vector<Library::Communicator> communicators(devices.size());
    if (ranks == nullptr)
      Library::get().init_all(communicators, devices);
    else
      init_ranks(communicators, devices, *ranks);
    for (std::size_t m = 0; m < members_.size(); ++m) members_[m].communicator = communicators[m];
    connect(devices);
  }

  void add_up(int member, std::span<const Terms> arrays, cudaStream_t stream) {
    Member& own = members_[static_cast<std::size_t>(member)];
    const std::lock_guard lock(own.mutex);
    if (own.abandoned) throw std::runtime_error("the exchange between the GPUs was abandoned");
    const Library& nccl = Library::get();
    if (arrays.size() == 1) return nccl.all_reduce(arrays.front(), own.communicator, stream);
    nccl.group([&] {
      for (const Terms& terms : arrays) nccl.all_reduce(terms, own.communicator, stream);
    });
  }

  /// Ends kernels that wait for another member.
  void abandon() noexcept {
    for (Member& member : members_) {
      // Not while its thread queues. That takes microseconds, unless NCCL waits for a member that
      // will never come: then its communicator has to be aborted for it to return.
      const std::unique_lock lock(member.mutex, std::chrono::seconds(1));
      if (!member.abandoned.exchange(true)) Library::get().abort(member.communicator);
    }
  }
  bool abandoned() const { return members_.front().abandoned; }

 private:
  static void init_ranks(std::span<Library::Communicator> communicators,
                         std::span<const int> devices, Ranks& ranks) {
    const Library& nccl = Library::get();
    Library::UniqueId id{};
    if (ranks.rank() == 0) id = nccl.unique_id();
    ranks.broadcast(std::as_writable_bytes(std::span(&id, 1)));
    const auto own = static_cast<int>(devices.size());
    nccl.group([&] {
      for (int m = 0; m < own; ++m) {
        const auto at = static_cast<std::size_t>(m);
        LLOYD_CUDA_CHECK(cudaSetDevice(devices[at]));
        nccl.init_rank(communicators[at], own * ranks.size(), id, own * ranks.rank() + m);
      }
    });
  }

  struct Member {
    Library::Communicator communicator = nullptr;
    std::timed_mutex mutex;
    std::atomic<bool> abandoned = false;
  };

  // NCCL connects GPUs at the first operation that needs it, and waits for all of them there. That
  // should happen now, where nothing else can fail: for a small array and a larger one, since it
  // chooses by size how to send.
  void connect(std::span<const int> devices) {
    for (const std::size_t count : {std::size_t{1} << 7, std::size_t{1} << 17}) {
      std::vector<Buffer<double>> arrays;
      for (const int device : devices) {
        LLOYD_CUDA_CHECK(cudaSetDevice(device));
        arrays.emplace_back(count);
        arrays.back().zero(nullptr);
      }
      Library::get().group([&] {
        for (std::size_t m = 0; m < members_.size(); ++m)
          Library::get().all_reduce(Terms(arrays[m]), members_[m].communicator, nullptr);
      });
      for (const int device : devices) {
        LLOYD_CUDA_CHECK(cudaSetDevice(device));
        LLOYD_CUDA_CHECK(cudaStreamSynchronize(nullptr));
      }
    }
  }

  std::vector<Member> members_;
};

std::shared_ptr<Team> team_of(std::span<const int> devices, Ranks* ranks) {
  // Never destroyed: CUDA may be gone before static objects are.
  static auto& teams = *new std::map<std::pair<std::vector<int>, Ranks*>, std::shared_ptr<Team>>;
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  std::shared_ptr<Team>& team = teams[{{devices.begin(), devices.end()}, ranks}];
  if (team == nullptr || team->abandoned()) {
    const DeviceGuard guard;
    team = std::make_shared<Team>(devices, ranks);
  }
  return team;
}

bool is_installed() {
  try {
    Library::get();
    return true;
  } catch (const Unsupported&) {
    return false;
  }
}

class NcclSums : public DeviceSums {
 public:
  NcclSums(std::span<const int> devices, Ranks* ranks) : team_(team_of(devices, ranks)) {}

  void add_up(int member, std::span<const Terms> arrays, cudaStream_t stream) override {
    team_->add_up(member, arrays, stream);
  }
  void abandon() noexcept override { team_->abandon(); }

 private:
  std::shared_ptr<Team> team_;
};

}  // namespace

std::unique_ptr<DeviceSums> nccl_sums(std::span<const int> devices, Ranks* ranks) {
  return std::make_unique<NcclSums>(devices, ranks);
}

bool nccl_reaches(std::span<const int> devices, Ranks& ranks) {
  // Asked in each prepare(), but nothing of it changes.
  static auto& known = *new std::map<std::pair<std::vector<int>, Ranks*>, bool>;
  const auto [at, is_new] = known.try_emplace({{devices.begin(), devices.end()}, &ranks});
  if (!is_new) return at->second;
  double missing = std::getenv("LLOYDBENCH_NO_NCCL") == nullptr && is_installed() ? 0 : 1;
  ranks.largest({&missing, 1});
  std::vector<cudaUUID_t> own;
  for (const int device : devices) {
    cudaDeviceProp properties{};
    LLOYD_CUDA_CHECK(cudaGetDeviceProperties(&properties, device));
    own.push_back(properties.uuid);
  }
  const std::vector<std::byte> all = ranks.gather(std::as_bytes(std::span(own)));
  std::set<std::string> different;
  for (std::size_t uuid = 0; uuid < all.size(); uuid += sizeof(cudaUUID_t))
    different.emplace(reinterpret_cast<const char*>(all.data() + uuid), sizeof(cudaUUID_t));
  at->second = missing == 0 && different.size() * sizeof(cudaUUID_t) == all.size();
  return at->second;
}

void prepare_team(std::span<const int> devices, Ranks* ranks) {
  const DeviceGuard guard;
  for (const int device : devices) {
    LLOYD_CUDA_CHECK(cudaSetDevice(device));
    prepare_transfers();
  }
  if (ranks == nullptr ? devices.size() < 2 : !nccl_reaches(devices, *ranks)) return;
  try {
    team_of(devices, ranks);
  } catch (const Unsupported&) {
    // A version that adds up without NCCL runs. Another one meets the reason in its prepare().
  }
}

}  // namespace lloyd::cuda
