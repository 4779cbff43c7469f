// A spec: what a user writes, checked; and the plan of points that it stands for.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "data/sources/dataset.h"
#include "kernels/core/version.h"

namespace lloyd {

/// Every error of a spec at once, one a line: `sweeps/k1000.yaml:7:5: unknown axis 'tbp'; did you
/// mean 'threads_per_block'?`
struct SpecError : std::runtime_error {
  explicit SpecError(std::vector<std::string> errors);
  std::vector<std::string> errors;
};

/// What the command line overrides.
struct Overrides {
  std::vector<std::string> set;   // "axis=v1,v2"
  std::vector<std::string> only;  // globs of versions
  std::string filter;             // regular expression on point ids
  std::optional<int> repetitions;
  std::optional<int> warmup;
  std::optional<double> timeout;      // seconds
  std::optional<std::uint64_t> seed;  // of the data, the initial centroids and the order
  std::optional<bool> shuffle;
  std::optional<std::string> profile;  // a list of profile_kinds() with commas
};

/// The words that the list Overrides::profile may have, "none" alone.
const std::vector<std::string>& profile_kinds();

/// The samples of a point that one process takes: from which initial centroids, and which of the
/// launches that begin there.
struct Turn {
  int launch = 0;
  int restart = 0;  // 0 without restarts
  bool operator==(const Turn&) const = default;
  bool operator<(const Turn& other) const {
    return launch != other.launch ? launch < other.launch : restart < other.restart;
  }
};

struct Measure {
  int launches = 1;  // processes that each take all of a point's repetitions
  int warmup = 1;
  int repetitions = 9;      // at least, per launch, as all that follows
  double max_noise = 0.02;  // relative half-width of the median's 95% interval
  double max_seconds = 20;  // per point
  bool l2_cold = false;
  double timeout = 600;  // seconds per point
  bool verify = true;
  std::int64_t verify_sample = 0;  // the labels of so many points are verified; 0: of all
  bool retry_throttled = false;    // throttled samples are taken again
  double warm_seconds = 0;         // of the same load right before a sample
};

struct Profile {
  bool nvtx = true;
  std::vector<std::string> counters;
  bool timeline = false;
  std::vector<std::string> cpu;
  bool convergence = false;  // also if the figure of this name is asked for
};

/// The memory that holds points and labels on the host.
inline constexpr const char *kPageable = "pageable", *kPinned = "pinned";

/// One measurement to make. Axes that the version does not use are nullopt.
struct Point {
  std::string id;  // "luigi_v1_fused/n:10000/k:5/dim:2/threads_per_block:128/precision:fp32"
  std::string version;
  std::int64_t n = 0;
  int k = 0;
  int dim = 0;
  int batch = 1;  // problems in a solve
  Precision precision = Precision::fp32;
  std::string data;  // the name of its source; empty if the spec names none
  std::string init = "random_points";
  std::optional<std::uint64_t> init_seed;  // nullopt: the initial centroids come from a file
  std::optional<std::uint64_t> data_seed;  // nullopt: the points come from a file
  std::optional<int> restart;  // of the solve in question; no part of a point of the plan
  std::string host_memory;     // kPageable or kPinned; empty for a version that does not use it
#define LLOYD_TUNABLE(name, default_value, lowest, highest, text) std::optional<std::int64_t> name;
#include "kernels/core/axes.inc"
  bool available = true;  // can run on this machine
  std::string reason;     // why not

  Problem problem(const Stop& stop) const;  // sizes only: empty spans
  /// As versions get them: with device_memory in bytes, whatever the spec's unit.
  Tunables tunables() const;
  /// The GPUs of all processes together. 1 for a version that does not read the axis.
  int all_gpus() const { return gpus ? static_cast<int>(*gpus * processes.value_or(1)) : 1; }
  /// Points with the same text have the same data and initial centroids, up to rounding.
  std::string inputs() const;
  /// The point with the initial centroids of a restart: their seed is that of the point, counted
  /// up.
  Point restarted(int number) const;
  /// Problem number `index` of the point's batch, alone. The seeds of its data and of its initial
  /// centroids are those of the point, counted up by `index`.
  Point alone(int index) const;
  /// The point's own data, given what the spec says about data: the source of its name, with its
  /// seed.
  data::Source source(const data::Sources& sources) const;
  /// The size of the whole file that its points come from. 0: no file.
  data::Extent extent(const data::Sources& sources) const;
  /// The point's own initial centroids, given what the spec says about them.
  data::Init initial(data::Init all) const;
};

/// A tunable of a point.
struct PointTunable {
  const char* name;
  std::optional<std::int64_t> Point::*value;
  void (*set)(Tunables&, std::int64_t);
};
template <auto Member>
constexpr void set_tunable(Tunables& tunables, std::int64_t value) {
  tunables.*Member = static_cast<std::remove_reference_t<decltype(tunables.*Member)>>(value);
}
inline constexpr auto kPointTunables = std::to_array<PointTunable>({
#define LLOYD_TUNABLE(name, default_value, lowest, highest, text) \
  {#name, &Point::name, set_tunable<&Tunables::name>},
#include "kernels/core/axes.inc"
});

/// Where the files that a spec names were found when its run was started, by the name in the spec.
using FoundFiles = std::map<std::string, std::string>;

/// A baseline that is no version: for each problem, the fastest verified version on the CPU.
inline constexpr std::string_view kBestCpu = "best:cpu";

/// Part `index` (from 1) of the `count` parts of a sweep.
struct Shard {
  int index = 1, count = 1;
  bool operator==(const Shard&) const = default;
};

struct Spec {
  std::filesystem::path path;
  std::string text;  // the file as it was read
  std::string name, title;
  std::string baseline;  // version name or kBestCpu; empty: none given
  data::Sources data{{.source = {.generator = "uniform"}}};  // never empty
  data::Init init;
  std::string init_file;  // as the spec writes it; the path in `init` is absolute
  Stop stop;
  int restarts = 1;  // solves of each point, each from initial centroids of its own
  Measure measure;
  Profile profile;
  bool shuffle = true;
  std::uint64_t shuffle_seed = 1;
  std::vector<std::string> figures;  // "speedup", or "speedup:k" with axis k on x
  std::vector<Point>
      points;  // the plan, in the spec's order, without duplicates; `available` not yet decided
  // n is zipped with threads, processes or gpus: problems of different sizes are compared.
  bool weak_scaling = false;
  std::vector<std::string> unread_axes;  // listed, but none of the versions reads them
  std::optional<Shard> shard;            // of which `points` are a part
  std::vector<std::string> sweep;        // with a shard: the ids of the whole plan

  /// The processes that each point needs.
  std::size_t turns() const {
    return static_cast<std::size_t>(measure.launches) * static_cast<std::size_t>(restarts);
  }
  /// The files that the spec names.
  FoundFiles files() const;
  /// Everything that decides the rows, overrides applied (spec.resolved.json).
  nlohmann::json resolved() const;
};

/// Finds `name` from the current directory, then from `experiments/` of the source or install tree.
/// Throws SpecError: with a hint if a spec of a similar name exists, or else with `otherwise`, a
/// hint by the caller; without one, with a list of all specs.
std::filesystem::path find_spec(const std::string& name, const std::string& otherwise = "");

/// The specs in `folder`, sorted, as a user would name them from `root`; without hidden files.
std::vector<std::string> specs_in(const std::filesystem::path& folder,
                                  const std::filesystem::path& root);

/// Reads and checks a spec, and the data file that it names, and makes its plan. Throws SpecError
/// with every error in it, each of which names the spec as the user did: `typed` (empty: `path`).
/// CUPTI's own names are checked against CUDA device `device`. A relative file is looked up in the
/// spec's folder, then from the current directory, then where `found` has it; there at first when
/// nobody typed the spec.
Spec load_spec(const std::filesystem::path& path, const Overrides& overrides,
               const std::string& typed = "", int device = 0, const FoundFiles& found = {});

/// How many GPUs the point that uses the most of them uses. At least 1.
int most_gpus(const std::vector<Point>& points);

/// A column as JSON: its number or its name.
nlohmann::json to_json(const data::Column& column);
/// A point as JSON: `point`, `version`, every axis (null where unused), `available`, `reason`.
nlohmann::json to_json(const Point& point);

}  // namespace lloyd
