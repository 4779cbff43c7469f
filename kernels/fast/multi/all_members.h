// Values of all that solve a problem together, combined on the host: of the members of this
// process, and of those of the other ranks. Needs no GPU.
#pragma once

#include <algorithm>
#include <functional>
#include <span>

#include "kernels/core/ranks.h"
#include "kernels/fast/multi/thread_group.h"

namespace lloyd::fast {

class AllMembers {
 public:
  /// `ranks`: null where this process is alone. Member 0 speaks for it, so its thread must be the
  /// main one.
  AllMembers(ThreadGroup& group, Ranks* ranks) : group_(group), ranks_(ranks) {}

  /// Each value becomes the sum, or the largest, of those of all members of all ranks. Every member
  /// calls this with as many values.
  template <typename T>
  void sum(int member, std::span<T> values) {
    group_.combine(member, values, std::plus<>());
    over_ranks(member, values, [&] { ranks_->sum(values); });
  }
  void largest(int member, std::span<double> values) {
    group_.combine(member, values, [](double a, double b) { return std::max(a, b); });
    over_ranks(member, values, [&] { ranks_->largest(values); });
  }

 private:
  template <typename T, typename Body>
  void over_ranks(int member, std::span<T> values, Body&& body) {
    if (ranks_ == nullptr) return;
    if (member == 0) body();
    if (group_.members() > 1) group_.combine(member, values, [](T first, T) { return first; });
  }

  ThreadGroup& group_;
  Ranks* ranks_;
};

}  // namespace lloyd::fast
