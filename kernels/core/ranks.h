// The processes that run a version together, each with a part of the points and GPUs of its own.
// The harness has it from MPI (experiments/measure/open_mpi.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace lloyd {

/// Every rank calls each function equally often and in the same order, with as many values, from
/// its main thread: MPI takes calls of no other. Only send() and receive() are between two ranks,
/// and take_memory() and leave_memory() are of one.
class Ranks {
 public:
  virtual ~Ranks() = default;
  virtual int rank() const = 0;  // from 0
  virtual int size() const = 0;
  /// The number of this rank among those of its host, from 0.
  virtual int local_rank() const = 0;

  virtual void barrier() = 0;
  /// `bytes` become those of rank 0. Ranks that wait sleep.
  virtual void broadcast(std::span<std::byte> bytes) = 0;
  virtual void send(std::span<const std::byte> bytes, int to) = 0;
  virtual void receive(std::span<std::byte> bytes, int from) = 0;
  /// Those of all ranks, one after another.
  virtual std::vector<std::byte> gather(std::span<const std::byte> bytes) = 0;

  /// Each value becomes the sum of those of all ranks. Integers wrap around.
  virtual void sum(std::span<double> values) = 0;
  virtual void sum(std::span<float> values) = 0;
  virtual void sum(std::span<std::uint64_t> values) = 0;
  virtual void sum(std::span<std::uint32_t> values) = 0;
  /// Each value becomes the largest of those of all ranks.
  virtual void largest(std::span<double> values) = 0;

  /// Ends all ranks at once.
  [[noreturn]] virtual void abort(int status) = 0;

  /// At least `bytes` of memory for what this rank receives: what an earlier solve left, if that is
  /// enough. The system gives pages slowly, so only the first solve should wait for them.
  std::vector<std::byte> take_memory(std::size_t bytes) {
    std::vector<std::byte> memory = std::exchange(left_, {});
    if (memory.size() < bytes) memory = std::vector<std::byte>(bytes);
    return memory;
  }
  void leave_memory(std::vector<std::byte> memory) {
    if (memory.size() > left_.size()) left_ = std::move(memory);
  }

 private:
  std::vector<std::byte> left_;
};

}  // namespace lloyd
