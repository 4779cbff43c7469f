// Open MPI, opened at run time like NCCL (kernels/core/nccl.h): the program that mpirun starts for
// versions on GPUs is the one that runs where there is no MPI.
#pragma once

#include <memory>
#include <string>

#include "kernels/core/ranks.h"

struct ompi_communicator_t;

namespace lloyd {

/// Why the library cannot be opened; empty if it can.
std::string no_open_mpi();

/// All processes that mpirun started. MPI is finalized when it goes. At most one exists.
class OpenMpi : public Ranks {
 public:
  /// Throws where this is no Open MPI, or where it does not start.
  OpenMpi();
  ~OpenMpi() override;

  /// For versions that call MPI themselves.
  ompi_communicator_t* communicator() const;

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  int local_rank() const override { return local_rank_; }
  void barrier() override;
  void broadcast(std::span<std::byte> bytes) override;
  void send(std::span<const std::byte> bytes, int to) override;
  void receive(std::span<std::byte> bytes, int from) override;
  std::vector<std::byte> gather(std::span<const std::byte> bytes) override;
  void sum(std::span<double> values) override;
  void sum(std::span<float> values) override;
  void sum(std::span<std::uint64_t> values) override;
  void sum(std::span<std::uint32_t> values) override;
  void largest(std::span<double> values) override;
  [[noreturn]] void abort(int status) override;

 private:
  class Library;
  template <typename T>
  void reduce(std::span<T> values, void* type, void* operation);

  std::unique_ptr<const Library> mpi_;
  int rank_ = 0, size_ = 1, local_rank_ = 0;
};

}  // namespace lloyd
