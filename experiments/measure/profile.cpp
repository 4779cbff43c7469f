#include "experiments/measure/profile.h"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

#include "experiments/measure/session.h"
#include "experiments/measure/timing.h"
#include "experiments/text/text.h"
#include "profiling/cache_simulation.h"
#include "profiling/counters.h"
#include "profiling/cpu_counters.h"
#include "profiling/timeline.h"

namespace lloyd {
namespace {

constexpr std::array<std::pair<Pass, std::string_view>, 7> kPassNames{
    {{Pass::timing, "timing"},
     {Pass::counters, "counters"},
     {Pass::timeline, "timeline"},
     {Pass::cpu, "cpu"},
     {Pass::cachegrind, "cachegrind"},
     {Pass::energy, "energy"},
     {Pass::convergence, "convergence"}}};

// Three iterations keep the first one, in which all labels change, from dominating the mean.
constexpr int kCountedIterations = 3;

// n·k·dim of a simulated iteration, which takes a few seconds.
constexpr std::int64_t kSimulatedProducts = 2'000'000;

constexpr const char* kCachegrind = "cachegrind";

std::vector<std::string> hardware_counters(std::vector<std::string> words) {
  std::erase(words, kCachegrind);
  return words;
}

class ProfiledSolve : public profiling::Subject {
 public:
  ProfiledSolve(const VersionFactory& make, const Problem& problem, const Context& context,
                Session& session)
      : make_(make), problem_(problem), context_(context), session_(session) {}

  void prepare() override {
    version_.reset();  // frees its memory first: two may not fit
    version_ = make_();
    version_->prepare(problem_, context_);
    session_.synchronize();
  }
  void run() override {
    version_->run(context_);
    session_.synchronize();
  }
  void fetch() override {
    LabelBuffer labels = label_buffer(problem_);
    context_.label_buffer = &labels;
    std::vector<double> centroids(problem_.centroids.size());
    context_.centroid_buffer = &centroids;
    version_->fetch(context_);
    context_.label_buffer = nullptr;
    context_.centroid_buffer = nullptr;
  }
  void observe(RangeObserver* observer) override {
    if (observer_ != nullptr) std::erase(context_.observers, observer_);
    observer_ = observer;
    if (observer_ != nullptr) context_.observers.push_back(observer_);
  }
  int iterations() const override { return problem_.stop.iterations; }

 private:
  VersionFactory make_;
  Problem problem_;
  Context context_;
  Session& session_;
  RangeObserver* observer_ = nullptr;
  std::unique_ptr<Version> version_;
};

}  // namespace

std::string_view to_string(Pass pass) {
  for (const auto& [value, name] : kPassNames)
    if (value == pass) return name;
  throw std::logic_error("unnamed pass");
}

Pass parse_pass(std::string_view name) {
  for (const auto& [value, known] : kPassNames)
    if (known == name) return value;
  throw std::invalid_argument("no pass is called " + std::string(name));
}

std::vector<Pass> profiling_passes(const Profile& profile, const VersionInfo& version) {
  std::vector<Pass> passes;
  const bool cuda = version.backend == Backend::cuda;
  if (profile.convergence) passes.push_back(Pass::convergence);
  if (cuda && !profile.counters.empty()) passes.push_back(Pass::counters);
  if (profile.timeline) passes.push_back(Pass::timeline);
  const bool simulated = contains(profile.cpu, kCachegrind);
  if (!cuda && profile.cpu.size() > (simulated ? 1 : 0)) passes.push_back(Pass::cpu);
  if (!cuda && simulated) passes.push_back(Pass::cachegrind);
  return passes;
}

int profiled_iterations(Pass pass, Backend backend, const Stop& stop) {
  const bool all = pass == Pass::timeline && backend == Backend::cuda;
  return all ? stop.iterations : std::min(stop.iterations, kCountedIterations);
}

Point profiled_point(Pass pass, const Point& point) {
  if (pass != Pass::cachegrind) return point;
  Point reduced = point;
  const std::int64_t affordable = kSimulatedProducts / (std::int64_t{point.k} * point.dim);
  reduced.n = std::min(point.n, std::max<std::int64_t>(affordable, point.k));
  return reduced;
}

std::unique_ptr<profiling::Subject> profiled_solve(const VersionFactory& make,
                                                   const Problem& problem, const Context& context,
                                                   Session& session) {
  return std::make_unique<ProfiledSolve>(make, problem, context, session);
}

profiling::Profile take_profile(Pass pass, const Profile& wanted, double warm_seconds,
                                profiling::Subject& subject, const DeviceLimits& device) {
  switch (pass) {
    case Pass::counters:
      // The first run loads kernels, opens libraries and reads files. None of this belongs in a
      // profile.
      subject.prepare();
      subject.run();
      subject.fetch();
      return profiling::count(subject, wanted.counters, device.index);
    case Pass::timeline:
      return profiling::trace(subject, !device.uuid.empty(), warm_seconds);
    case Pass::cpu:
      return profiling::count_cpu(subject, hardware_counters(wanted.cpu));
    case Pass::cachegrind:
      return profiling::simulate_caches(subject);
    case Pass::timing:
    case Pass::energy:
    case Pass::convergence:
      break;
  }
  throw std::invalid_argument(std::string(to_string(pass)) + " is not a profile");
}

Row event_row(const Point& point, const Row& rest) {
  Row row;
  row["point"] = point.id;
  row["version"] = point.version;
  row.update(rest);
  return row;
}

Row counter_row(const Point& point, Pass pass, const Row& rest) {
  Row row;
  row["point"] = point.id;
  row["version"] = point.version;
  for (const char* field : {"phase", "kernel", "metric", "preset", "value", "unit", "passes",
                            "replay", "status", "reason"})
    row[field] = nullptr;
  row["pass"] = to_string(pass);
  row.update(rest);
  return row;
}

std::vector<Row> missing_counters(const Point& point, Pass pass, const Profile& wanted,
                                  const std::string& status, const std::string& reason) {
  std::vector<Row> rows;
  const auto add = [&](const char* field, const std::string& name) {
    rows.push_back(
        counter_row(point, pass, {{field, name}, {"status", status}, {"reason", reason}}));
  };
  // CUPTI's own names contain two consecutive underscores. Names of presets do not.
  if (pass == Pass::counters)
    for (const std::string& word : wanted.counters)
      add(word.find("__") == std::string::npos ? "preset" : "metric", word);
  if (pass == Pass::cpu)
    for (const std::string& word : hardware_counters(wanted.cpu)) add("metric", word);
  if (pass == Pass::cachegrind) add("preset", kCachegrind);
  return rows;
}

Row pass_row(const Point& point, Pass pass, const std::optional<Turn>& turn,
             const std::string& status, const std::string& reason, std::size_t rows,
             double seconds) {
  Row row;
  row["point"] = point.id;
  row["version"] = point.version;
  row["pass"] = to_string(pass);
  if (turn) {
    row["launch"] = turn->launch;
    row["restart"] = or_null(point.restart);
  }
  row["status"] = status;
  row["reason"] = or_null(reason);
  row["rows"] = rows;
  row["seconds"] = seconds;
  row["t_utc"] = utc_now();
  return row;
}

}  // namespace lloyd
