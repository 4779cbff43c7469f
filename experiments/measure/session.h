// What the harness needs of the place where a version runs: a clock, a cache to empty, an oracle.
#pragma once

#include <map>
#include <memory>
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
  /// blocking call. "mpi_max": from a barrier on, the steady clock of the slowest rank.
  virtual std::string timing_basis() const = 0;
  virtual void start() = 0;
  /// Milliseconds since start(), once everything that was queued between is done.
  virtual double stop() = 0;
  virtual void synchronize() = 0;
  /// Fills the last-level cache with something else.
  virtual void evict_caches() = 0;
  /// A moment on the device's own timeline, to be read after synchronize(); false when there is no
  /// such timeline.
  virtual bool mark(std::size_t slot) = 0;
  virtual double between_marks(std::size_t first, std::size_t second) const = 0;
  virtual std::unique_ptr<Reference> reference(std::span<const float> points, std::int64_t n,
                                               int dim) const = 0;
  /// What makes instances of `version` that run here.
  virtual VersionFactory factory(const RegisteredVersion& version) { return version.make; }
  /// The ranks that run a version together; null where it runs in this process alone.
  virtual ompi_communicator_t* communicator() const { return nullptr; }
  /// False when an instance failed half-way and left the others waiting: no more can be run here.
  virtual bool usable() const { return true; }
};

/// The host's clock and caches.
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

std::unique_ptr<Session> make_cpu_session();
/// Throws what was attempted when the device cannot be had. Only in a build with CUDA.
std::unique_ptr<Session> make_cuda_session(int device);

/// Time spent in each phase: calls, host time and, where there is one, time on the device's
/// timeline.
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

  /// By phase, in the order first seen. Synchronizes.
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

/// Milliseconds of the steady clock, since some fixed moment.
double now_ms();

}  // namespace lloyd
