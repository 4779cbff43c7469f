// What the harness needs where a version runs: a clock, a way to empty the caches, and an oracle.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernels/core/reference.h"
#include "kernels/core/version.h"

namespace lloyd {

class Session {
 public:
  virtual ~Session() = default;
  virtual CUstream_st* stream() const = 0;
  /// "cuda_events": events on the version's stream. "steady_clock": the host's clock around a
  /// blocking call. "mpi_max": the steady clock of the slowest rank, from a barrier on.
  virtual std::string timing_basis() const = 0;
  virtual void start() = 0;
  /// Milliseconds since start(). Waits for all work queued since then.
  virtual double stop() = 0;
  virtual void synchronize() = 0;
  /// Fills the last-level cache with other data.
  virtual void evict_caches() = 0;
  /// Records a moment on the device's timeline, which can be read after synchronize(). Returns
  /// false if the device has no timeline.
  virtual bool mark(std::size_t slot) = 0;
  virtual double between_marks(std::size_t first, std::size_t second) const = 0;
  virtual std::unique_ptr<Reference> reference(std::span<const float> points, std::int64_t n,
                                               int dim) const = 0;
  /// Makes host memory one from which the device copies by itself, until the returned object is
  /// destroyed. Null if there is no device.
  virtual std::shared_ptr<const void> pin(std::span<const std::byte>) { return nullptr; }
  /// The factory for instances of `version` that run here.
  virtual VersionFactory factory(const RegisteredVersion& version) { return version.make; }
  /// The processes that run a version together, and their communicator for a version that calls MPI
  /// itself. Null if it runs in this process alone.
  virtual Ranks* ranks() const { return nullptr; }
  virtual ompi_communicator_t* communicator() const { return nullptr; }
  /// The UUIDs of the GPUs of all ranks, in the order of ranks. Empty if there are no ranks.
  virtual std::vector<std::string> gpus() const { return {}; }
  /// False if an instance failed half-way and left the others waiting. No further solve can run
  /// here.
  virtual bool usable() const { return true; }
};

/// Uses the clock and the caches of the host.
class CpuSession : public Session {
 public:
  CUstream_st* stream() const override { return nullptr; }
  std::string timing_basis() const override { return "steady_clock"; }
  void start() override;
  double stop() override;
  void synchronize() override {}
  void evict_caches() override;
  bool mark(std::size_t) override { return false; }
  double between_marks(std::size_t, std::size_t) const override { return 0; }
  std::unique_ptr<Reference> reference(std::span<const float> points, std::int64_t n,
                                       int dim) const override;

 private:
  double start_ = 0;
  std::vector<char> sweep_;
};

/// The session's reference for a problem's points. If they are not in memory, it takes
/// points_at_once() of them after one another. The points must outlive it.
std::unique_ptr<Reference> reference_of(const Session& session, const Problem& problem);

std::unique_ptr<Session> make_cpu_session();
/// On `device`; versions may use `others` beside it, where their work ends before that of the
/// stream. Throws an error that names the failed call if a device is unavailable. Exists only in a
/// build with CUDA.
std::unique_ptr<Session> make_cuda_session(int device, std::vector<int> others = {});
/// A CPU session whose reference computes on the given GPU if the problem is large, with the same
/// bits. Exists only in a build with CUDA.
std::unique_ptr<Session> make_judged_cpu_session(int device);

/// The calls, the host time and, if the device has a timeline, the device time of each phase.
class PhaseTimes : public RangeObserver {
 public:
  struct Times {
    int calls = 0;
    double host_ms = 0;
    double device_ms = 0;
  };

  explicit PhaseTimes(Session& session) : session_(session) {}
  void begin_phase(const char* name) override;
  void end_phase() override;
  void begin_iteration(int) override {}
  void end_iteration() override {}

  /// Sorted by first occurrence. Synchronizes.
  std::vector<std::pair<std::string, Times>> collect();
  bool has_device_times() const { return has_device_; }

 private:
  struct Open {
    std::string name;
    double host_start;
    std::size_t mark;
  };
  struct Closed {
    std::string name;
    double host_ms;
    std::size_t first, second;
  };
  Session& session_;
  std::vector<Open> open_;
  std::vector<Closed> closed_;
  std::size_t marks_ = 0;
  bool has_device_ = false;
};

}  // namespace lloyd
