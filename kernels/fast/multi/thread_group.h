// Threads that run one function together, exchange values and fail together. Needs no GPU.
#pragma once

#include <array>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <span>
#include <stdexcept>
#include <thread>
#include <vector>

namespace lloyd::fast {

/// Thrown in a member that waits for the others when one of them has failed.
struct Abandoned : std::runtime_error {
  Abandoned() : std::runtime_error("another GPU of the same solve failed") {}
};

class ThreadGroup {
 public:
  /// Member 0 is whoever calls run(). The others are threads that live as long as the group.
  /// `on_failure`: called by the first member that fails, while the others may still run.
  explicit ThreadGroup(int members, std::function<void()> on_failure = nullptr);
  ~ThreadGroup();
  ThreadGroup(const ThreadGroup&) = delete;

  int members() const { return members_; }

  /// Calls body(member) in every member and returns when all have returned. Where bodies throw,
  /// rethrows the first exception. The others leave share() with Abandoned: none waits for ever.
  void run(const std::function<void(int)>& body);

  // ---- For bodies. ----

  using Bytes = std::span<const std::byte>;
  /// Waits for all members and passes what each of them gave to `take`, in the order of members.
  void share(int member, Bytes mine, const std::function<void(Bytes)>& take);

  /// Each value becomes with(with(first member's, second's), third's) …: the same bits everywhere.
  template <typename T, typename With>
  void combine(int member, std::span<T> values, With&& with) {
    bool first = true;
    share(member, std::as_bytes(values), [&](Bytes bytes) {
      const std::span given(reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T));
      if (given.size() != values.size())
        throw std::logic_error("members of a group combine different numbers of values");
      for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = first ? given[i] : with(values[i], given[i]);
      first = false;
    });
  }

 private:
  // What a member gives, in turn to one of two places: nobody gives to the same place again before
  // all have come to the meeting in between, and so have read what was there.
  struct Given {
    std::array<std::vector<std::byte>, 2> places;
    unsigned turn = 0;
  };

  void work(int member);
  void execute(int member) noexcept;
  void meet();

  int members_;
  std::function<void()> on_failure_;
  std::mutex mutex_;  // of all that follows
  std::condition_variable started_, ended_, met_;
  const std::function<void(int)>* body_ = nullptr;
  int runs_ = 0;      // begun
  int running_ = 0;   // members that have not returned
  int arrived_ = 0;   // members that wait in meet()
  int meetings_ = 0;  // ended
  bool failed_ = false, closing_ = false;
  std::exception_ptr error_;
  std::vector<Given> given_;  // by each member; not under the mutex
  std::vector<std::thread> threads_;
};

}  // namespace lloyd::fast
