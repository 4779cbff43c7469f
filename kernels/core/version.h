// The contract between a version of Lloyd's k-means and the harness.
//
// A version allocates and uploads in prepare(), iterates in run() and returns its answer in
// fetch(). It never times itself, never prints and never runs something else under its own name. It
// declares what it cannot run in `unsupported`, with the numbers. Everything else (data, initial
// centroids, timers, verification, profiling) belongs to the harness.
#pragma once

#include <array>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lloyd::data {
struct Generator;  // kernels/core/random_values.h
}

struct CUstream_st;          // cudaStream_t is a pointer to this; the contract needs no CUDA header
struct ompi_communicator_t;  // MPI_Comm of Open MPI is a pointer to this

namespace lloyd {

class PointRows;  // point_rows.h

/// The arithmetic of the distance.
enum class Precision {
#define LLOYD_PRECISION(name, bits) name,
#include "kernels/core/precisions.inc"
};
inline constexpr auto kPrecisions = std::to_array<Precision>({
#define LLOYD_PRECISION(name, bits) Precision::name,
#include "kernels/core/precisions.inc"
});
std::string_view to_string(Precision precision);
std::optional<Precision> parse_precision(std::string_view name);
/// Unit round-off of one operation in `precision`: 2^-24 for fp32.
double unit_roundoff(Precision precision);

/// When the loop ends: after `iterations`, or sooner when the largest Euclidean move of a centroid
/// is below `tolerance` (if > 0), or when fewer than `min_changes` points changed cluster (if > 0).
struct Stop {
  int iterations = 20;
  double tolerance = 0;
  std::int64_t min_changes = 0;
};

/// One k-means problem, or a batch of independent ones of one size. The distance is squared
/// Euclidean, ties go to the lowest index, and an empty cluster keeps its centroid.
struct Problem {
  std::int64_t n = 0;  // points
  int k = 0;           // clusters
  int dim = 0;         // dimensions
  int batch = 1;       // problems; the points of each follow those of the one before (batch.h)
  Precision precision = Precision::fp32;
  Stop stop;
  // Spherical k-means: the points and the initial centroids have length 1, and an update scales
  // each mean to length 1. A cluster whose points add up to 0 keeps its centroid. For such
  // centroids the nearest one is that of the largest cosine.
  bool spherical = false;
  std::span<const float> points;     // batch × n × dim, row-major
  std::span<const float> centroids;  // batch × k × dim, row-major: the initial centroids
  // The same points in the 16 bits of the precision, for a version on a GPU whose precision is fp16
  // or bf16. May be empty.
  std::span<const std::uint16_t> halves;
  // Points of fp16 or bf16 that are not in memory as floats: then `points` is empty, and `halves`
  // may be. Null otherwise, and for a version without VersionInfo::reads_rows.
  const PointRows* rows = nullptr;
  // What drew the points, for a version that draws the same bits itself. Null when they come from a
  // file.
  const data::Generator* generator = nullptr;
};

/// What a version returns: the labels of the last assignment, and the centroids of the update that
/// followed it.
struct Solution {
  // batch × n, of which each problem's begin at 0; or none if fetch() filled the memory lent for
  // them.
  std::vector<std::int32_t> labels;
  std::vector<double> centroids;  // batch × k × dim, row-major
  int iterations = 0;             // assignment + update pairs done, of each problem
};

/// The bytes of a label that is as narrow as k allows: 1, 2 or 4.
constexpr int label_bytes(int k) { return k <= 1 << 8 ? 1 : k <= 1 << 16 ? 2 : 4; }

/// Memory for the labels of one answer, as narrow as k allows. The harness writes it before it
/// lends it, so that a timed fetch() does not wait for the system to zero its pages.
class LabelBuffer {
 public:
  LabelBuffer(std::size_t n, int k)
      : size_(n),
        width_(label_bytes(k)),
        own_(n * static_cast<std::size_t>(width_)),
        memory_(own_) {}
  LabelBuffer(LabelBuffer&&) = default;  // the memory stays where it is

  /// The memory of `count` labels from number `first` on, for a version that fills it in parts.
  /// This object must outlive the part.
  LabelBuffer part(std::size_t first, std::size_t count) {
    LabelBuffer part(0, 1);
    const auto width = static_cast<std::size_t>(width_);
    part.size_ = count;
    part.width_ = width_;
    part.memory_ = memory_.subspan(first * width, count * width);
    return part;
  }

  std::size_t size() const { return size_; }
  int width() const { return width_; }  // bytes of a label
  std::span<std::byte> memory() { return memory_; }
  bool is_filled = false;  // set by the version
  std::vector<std::int32_t> widened() const;

 private:
  std::size_t size_;
  int width_;
  std::vector<std::byte> own_;  // empty of a part
  std::span<std::byte> memory_;
};

/// As the default of an axis, this means the number of cores that the program may use.
inline constexpr int kCores = -3;

template <auto Value>
using TypeOf = decltype(Value);

/// The axes of a spec that tune a version, with their defaults (1 for kCores). VersionInfo::axes
/// lists those that a version reads.
struct Tunables {
#define LLOYD_TUNABLE(name, default_value, lowest, highest, text) \
  TypeOf<highest> name = (default_value) == kCores ? 1 : (default_value);
#include "kernels/core/axes.inc"
};

/// What the GPU allows. Bytes are per block unless stated otherwise.
struct DeviceLimits {
  int index = 0;
  std::string name;
  std::string uuid;
  int compute_capability = 0;  // 90 for 9.0
  int multiprocessors = 0;
  int max_threads_per_block = 0;
  std::int64_t shared_bytes = 0;        // without opting in ("static"): 49,152 on every GPU so far
  std::int64_t shared_bytes_optin = 0;  // with cudaFuncAttributeMaxDynamicSharedMemorySize
  std::int64_t memory_bytes = 0;        // of the whole device
  // The indices of the GPUs that can solve a problem together: this one, and those of its model
  // that follow it and reach the memory of all others here. Empty in a default-constructed object.
  std::vector<int> team;
};

/// prepare() throws this for reasons that show only on the machine (memory). `unsupported` gives
/// all other reasons before.
struct Unsupported : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Is called where each range begins and ends. Ranges nest. The harness installs observers for
/// NVTX, phase times and counters.
class RangeObserver {
 public:
  virtual ~RangeObserver() = default;
  virtual void begin_phase(const char* name) = 0;
  virtual void end_phase() = 0;
  virtual void begin_iteration(int iteration) = 0;
  virtual void end_iteration() = 0;
};

struct TrialMemory;  // chooser.h
class Ranks;         // ranks.h

/// What the harness lends a version for one point.
class Context {
 public:
  Tunables tunables;
  DeviceLimits device;
  CUstream_st* stream = nullptr;  // all device work goes here
  // The processes that run this version together, and their MPI communicator for a version that
  // calls MPI itself. Only rank 0 has the problem's spans. Null: this process is alone.
  Ranks* ranks = nullptr;
  ompi_communicator_t* communicator = nullptr;
  std::vector<RangeObserver*> observers;  // not owned
  // For a version in another process: its array of points begins with this point, and those before
  // it follow the last one. Each timed solve draws a new value, so an answer kept from an earlier
  // solve is wrong.
  std::int64_t first_row = 0;
  // For versions that choose by trial; null: every prepare() has to try.
  TrialMemory* trial_memory = nullptr;
  // Lent by the harness for one fetch(); may be null. A version that fills it returns no other
  // labels.
  LabelBuffer* label_buffer = nullptr;
  // The same for centroids: as many values as the answer has, or null.
  std::vector<double>* centroid_buffer = nullptr;
  /// For the centroids of an answer: what is lent if it has `count` values, which are written, or
  /// else new memory.
  std::vector<double> centroid_memory(std::size_t count) const;

  class [[nodiscard]] Range {
   public:
    Range(Range&& other) noexcept
        : context_(std::exchange(other.context_, nullptr)), is_phase_(other.is_phase_) {}
    ~Range();

   private:
    friend class Context;
    Range(Context& context, const char* phase, int iteration);
    Context* context_;  // null once moved from
    bool is_phase_;
  };

  /// Names what runs until the returned object is destroyed: "assign", "update", "transfer",
  /// "converge", "init". This is the only source of NVTX ranges, counter ranges and phase times.
  /// `name` must be a string literal.
  Range phase(const char* name) { return Range(*this, name, 0); }
  /// One iteration of the loop, counted from 0.
  Range iteration(int number) { return Range(*this, nullptr, number); }
};

/// The times that a version in another process reports itself, because the harness has no clock
/// there.
struct SelfReport {
  double solve_ms = 0;  // of the last run()
  // Of prepare(), of fetch(), and of the copies in both.
  std::optional<double> setup_ms, fetch_ms, transfer_ms;
};

class Version {
 public:
  virtual ~Version() = default;
  /// Allocates, uploads and changes the layout. Not in solve_ms. `problem`'s spans outlive the
  /// version.
  virtual void prepare(const Problem& problem, Context& context) = 0;
  /// Runs the loop from the initial centroids. A second call gives the same answer up to rounding.
  virtual void run(Context& context) = 0;
  /// Returns the answer of the last run().
  virtual Solution fetch(Context& context) = 0;
  /// Call after fetch(). If nullopt, the harness times this version, as it does every version that
  /// runs in the harness's process.
  virtual std::optional<SelfReport> self_report() const { return std::nullopt; }
};

enum class Backend { cpu, cuda };
std::string_view to_string(Backend backend);

/// How a version computes ‖x − c‖². This determines the rounding bound that its labels must keep.
enum class Distance {
  direct,    // Σ (x − c)²: error relative to the distance
  expanded,  // ‖x‖² − 2x·c + ‖c‖²: error relative to (‖x‖ + ‖c‖)²
};

/// Whether a version takes several problems in one solve.
enum class Batches {
  none,
  one_by_one,  // takes one; the harness lets it solve those of a batch one after another (batch.h)
  together,    // takes Problem::batch
};

struct VersionInfo {
  std::string name;    // file, registry, YAML, NVTX range and plot label
  std::string family;  // folder
  Backend backend = Backend::cpu;
  std::string parent;             // the version it improves on; empty for a root
  std::vector<std::string> axes;  // the tunables that it reads
  std::vector<Precision> precisions = {Precision::fp32};
  // Whether points of fp16 and bf16 become fp32 once, on the device, and stay so: all arithmetic is
  // fp32, and an iteration reads and takes what it does in fp32.
  bool widens_halves = false;
  // Whether it needs no floats of points in 16 bits: it reads Problem::halves or, if they are
  // empty, Problem::rows.
  bool reads_rows = false;
  Distance distance = Distance::direct;
  bool spherical = false;  // can solve spherical problems, too
  bool external = false;   // runs in a process of its own, which reads the problem from files
  Batches batches = Batches::none;
  // Labels and centroids have the same bits in every run, for any grid, block or thread count and
  // on any device of one architecture: by construction, not by luck. The harness checks this.
  bool reproducible = false;
  std::string study;    // the report it comes from; empty for our own
  std::string summary;  // one line
  /// Why this problem cannot run with these tunables on this device, with the numbers; nullopt when
  /// it can. It sees only sizes and the generator: the problem's spans are empty. For a CPU version
  /// `device` is default-constructed.
  std::function<std::optional<std::string>(const Problem&, const Tunables&, const DeviceLimits&)>
      unsupported;
};

using VersionFactory = std::function<std::unique_ptr<Version>()>;

struct RegisteredVersion {
  VersionInfo info;
  VersionFactory make;      // null when the version cannot run here, whatever the problem
  std::string unavailable;  // why it cannot run here
  // mpirun launches it in the second program, the one with MPI. `make` is null and `unavailable`
  // empty here.
  bool launched = false;
};

/// Every registered version, sorted by name.
const std::vector<RegisteredVersion>& versions();
/// The version with that name, or null.
const RegisteredVersion* find_version(std::string_view name);

/// What is wrong with what the program's versions say of themselves: a name that another one has,
/// an unknown axis or parent. Call it before external versions are registered.
std::vector<std::string> registration_errors();

/// Use LLOYD_VERSION.
bool register_version(VersionInfo info, VersionFactory make);
/// Registers a version that cannot run here, because of `reason`.
bool register_unavailable(VersionInfo info, std::string reason);
/// Registers a version that only the second program, the one with MPI, runs.
bool register_launched(VersionInfo info);

}  // namespace lloyd

/// LLOYD_VERSION(Class, {.name = "luigi_v1_fused", …}): the last lines of a version's file.
#define LLOYD_VERSION(Class, ...)                                                    \
  [[maybe_unused]] static const bool Class##_registered = ::lloyd::register_version( \
      ::lloyd::VersionInfo __VA_ARGS__,                                              \
      []() -> std::unique_ptr<::lloyd::Version> { return std::make_unique<Class>(); })

/// The same for a CUDA version, whose class is between `#if LLOYD_CUDA` and `#endif`. A build
/// without CUDA still lists the version and says why it cannot run.
#if LLOYD_CUDA
#define LLOYD_CUDA_VERSION(Class, ...) LLOYD_VERSION(Class, __VA_ARGS__)
#else
#define LLOYD_CUDA_VERSION(Class, ...)                                                   \
  [[maybe_unused]] static const bool Class##_registered = ::lloyd::register_unavailable( \
      ::lloyd::VersionInfo __VA_ARGS__, "built without CUDA (configure with -DLLOYD_CUDA=ON)")
#endif

/// The same for a version of several processes, whose class is between `#if LLOYD_MPI` and
/// `#endif`. Its file is compiled twice: for the program, which must run where there is no MPI, and
/// for the second program that mpirun starts.
#if LLOYD_MPI
#define LLOYD_MPI_VERSION(Class, ...) LLOYD_VERSION(Class, __VA_ARGS__)
#else
#define LLOYD_MPI_VERSION(Class, ...)                     \
  [[maybe_unused]] static const bool Class##_registered = \
      ::lloyd::register_launched(::lloyd::VersionInfo __VA_ARGS__)
#endif
