#include "kernels/fast/multi/thread_group.h"

#include <pthread.h>

#include <string>
#include <utility>

namespace lloyd::fast {

ThreadGroup::ThreadGroup(int members, std::function<void()> on_failure)
    : members_(members),
      on_failure_(std::move(on_failure)),
      given_(static_cast<std::size_t>(members)) {
  for (int member = 1; member < members; ++member) {
    threads_.emplace_back([this, member] { work(member); });
    // Profilers and debuggers show it.
    pthread_setname_np(threads_.back().native_handle(), ("gpu " + std::to_string(member)).c_str());
  }
}

ThreadGroup::~ThreadGroup() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  started_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ThreadGroup::run(const std::function<void(int)>& body) {
  {
    const std::lock_guard lock(mutex_);
    body_ = &body;
    running_ = members_;
    arrived_ = 0;
    for (Given& given : given_) given.turn = 0;  // a failure leaves them different
    failed_ = false;
    error_ = nullptr;
    ++runs_;
  }
  started_.notify_all();
  execute(0);
  std::unique_lock lock(mutex_);
  ended_.wait(lock, [&] { return running_ == 0; });
  if (error_) std::rethrow_exception(error_);
}

void ThreadGroup::work(int member) {
  for (int run = 1;; ++run) {
    {
      std::unique_lock lock(mutex_);
      started_.wait(lock, [&] { return closing_ || runs_ == run; });
      if (closing_) return;
    }
    execute(member);
  }
}

void ThreadGroup::execute(int member) noexcept {
  bool first = false;
  try {
    (*body_)(member);
  } catch (...) {
    const std::lock_guard lock(mutex_);
    first = !std::exchange(failed_, true);
    if (first) error_ = std::current_exception();
  }
  if (first) {
    met_.notify_all();
    if (on_failure_) on_failure_();
  }
  const std::lock_guard lock(mutex_);
  if (--running_ == 0) ended_.notify_all();
}

void ThreadGroup::share(int member, Bytes mine, const std::function<void(Bytes)>& take) {
  Given& own = given_[static_cast<std::size_t>(member)];
  const unsigned place = own.turn++ % 2;
  own.places[place].assign(mine.begin(), mine.end());
  meet();
  for (const Given& given : given_) take(given.places[place]);
}

void ThreadGroup::meet() {
  std::unique_lock lock(mutex_);
  if (failed_) throw Abandoned();
  const int meeting = meetings_;
  if (++arrived_ == members_) {
    arrived_ = 0;
    ++meetings_;
    met_.notify_all();
    return;
  }
  met_.wait(lock, [&] { return meetings_ != meeting || failed_; });
  if (meetings_ == meeting) throw Abandoned();
}

}  // namespace lloyd::fast
