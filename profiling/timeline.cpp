#include "profiling/timeline.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "profiling/range_log.h"
#include "profiling/row.h"

#if LLOYD_CUDA
#include "profiling/activities.h"
#include "profiling/cupti.h"
#endif

namespace lloyd::profiling {
namespace {

// A solve shorter than this is run three more times untraced, and the fastest of those counts.
constexpr std::int64_t kShortNs = 1'000'000'000;

// The part of untimed solves right before the traced one. Its calls and kernels are not shown.
constexpr const char* kWarmUp = "warm-up";

std::int64_t steady_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

double to_us(std::int64_t ns) { return static_cast<double>(ns) / 1e3; }

std::int64_t untraced_solve_ns(Subject& subject) {
  std::int64_t best = 0;
  subject.prepare();
  for (int run = 0; run < 4; ++run) {
    const std::int64_t start = steady_ns();
    subject.run();
    const std::int64_t spent = steady_ns() - start;
    if (run == 0 && spent >= kShortNs) return spent;
    if (run == 1 || (run > 1 && spent < best)) best = spent;  // the first run loads and allocates
  }
  return best;
}

class Timeline {
 public:
  explicit Timeline(const RangeLog& log) : log_(log), zero_(log.ranges().at(0).begin_ns) {
    for (const RangeLog::Range& range : log_.ranges()) {
      RangeLog::Where where = log_.at(range.begin_ns);
      if (range.level == RangeLog::Level::part) where = {range.name, "", std::nullopt};
      if (range.level == RangeLog::Level::iteration) {
        where.phase.clear();
        where.iteration = range.iteration;
      }
      add(range.level == RangeLog::Level::part        ? "part"
          : range.level == RangeLog::Level::iteration ? "iteration"
                                                      : "phase",
          range.name, where, range.begin_ns, range.end_ns);
    }
  }

#if LLOYD_CUDA
  void add(const std::vector<Activity>& activities) {
    std::map<std::uint32_t, std::int64_t> called;  // when the call with a correlation began
    for (const Activity& activity : activities)
      if (activity.kind == Activity::Kind::api) called[activity.correlation] = activity.begin_ns;
    for (const Activity& activity : activities) {
      const auto call = called.find(activity.correlation);
      const RangeLog::Where where =
          call == called.end() ? RangeLog::Where{} : log_.at(call->second);
      if (where.part == kWarmUp) continue;
      switch (activity.kind) {
        case Activity::Kind::api:
          add("api", activity.name, where, activity.begin_ns, activity.end_ns)["thread"] =
              activity.thread;
          break;
        case Activity::Kind::kernel: {
          Row& row = device("kernel", activity, where);
          row["grid"] = activity.grid;
          row["block"] = activity.block;
          row["registers_per_thread"] = activity.registers_per_thread;
          row["shared_bytes"] = activity.shared_bytes;
          break;
        }
        case Activity::Kind::copy:
          device("copy", activity, where)["bytes"] = activity.bytes;
          break;
        case Activity::Kind::memset:
          device("memset", activity, where)["bytes"] = activity.bytes;
          break;
      }
      rows_.back()["correlation"] = activity.correlation;
    }
  }
#endif

  std::vector<Row> take() {
    std::stable_sort(rows_.begin(), rows_.end(), [](const Row& a, const Row& b) {
      return a.at("start_us").get<double>() < b.at("start_us").get<double>();
    });
    return std::move(rows_);
  }

 private:
  Row& add(const char* kind, const std::string& name, const RangeLog::Where& where,
           std::int64_t begin_ns, std::int64_t end_ns) {
    Row row;
    row["kind"] = kind;
    row["name"] = name;
    row["part"] = text_or_null(where.part);
    row["phase"] = text_or_null(where.phase);
    row["iteration"] = where.iteration ? Row(*where.iteration) : Row(nullptr);
    row["start_us"] = to_us(begin_ns - zero_);
    row["duration_us"] = to_us(end_ns - begin_ns);
    return rows_.emplace_back(std::move(row));
  }

#if LLOYD_CUDA
  Row& device(const char* kind, const Activity& activity, const RangeLog::Where& where) {
    Row& row = add(kind, activity.name, where, activity.begin_ns, activity.end_ns);
    row["device"] = activity.device;
    row["stream"] = activity.stream;
    return row;
  }
#endif

  const RangeLog& log_;
  std::int64_t zero_;
  std::vector<Row> rows_;
};

void repeat_solve(Subject& subject, double seconds) {
  const std::int64_t start = steady_ns();
  do subject.run();
  while (static_cast<double>(steady_ns() - start) < seconds * 1e9);
}

void observed(Subject& subject, RangeLog& log, double warm_seconds) {
  subject.observe(&log);
  log.part("setup", [&] { subject.prepare(); });
  if (warm_seconds > 0) {
    subject.observe(nullptr);  // hundreds of iterations
    log.part(kWarmUp, [&] { repeat_solve(subject, warm_seconds); });
    subject.observe(&log);
  }
  log.part("solve", [&] { subject.run(); });
  log.part("fetch", [&] { subject.fetch(); });
  subject.observe(nullptr);
}

Row trace_row(const RangeLog& log, std::int64_t untraced_ns, const char* clock,
              std::size_t dropped) {
  const auto solve =
      std::find_if(log.ranges().begin(), log.ranges().end(), [](const RangeLog::Range& range) {
        return range.level == RangeLog::Level::part && range.name == "solve";
      });
  Row row;
  row["kind"] = "trace";
  row["name"] = "solve";
  for (const char* field : {"part", "phase", "iteration"}) row[field] = nullptr;
  row["start_us"] = to_us(solve->begin_ns - log.ranges().at(0).begin_ns);
  row["duration_us"] = to_us(solve->end_ns - solve->begin_ns);
  row["untraced_us"] = to_us(untraced_ns);
  row["clock"] = clock;
  row["dropped"] = dropped;
  return row;
}

}  // namespace

Profile trace(Subject& subject, bool cuda, double warm_seconds) {
  Profile profile;
  if (!cuda) {
    const std::int64_t untraced = untraced_solve_ns(subject);
    RangeLog log(steady_ns);
    observed(subject, log, warm_seconds);
    profile.events = Timeline(log).take();
    profile.events.insert(profile.events.begin(), trace_row(log, untraced, "steady_clock", 0));
    return profile;
  }
#if LLOYD_CUDA
  const Cupti& cupti = Cupti::open();
  const std::int64_t untraced = untraced_solve_ns(subject);
  ActivityRecorder recorder(cupti);
  RangeLog log([&] { return recorder.now(); });
  observed(subject, log, warm_seconds);
  std::size_t dropped = 0;
  const std::vector<Activity> activities = recorder.stop(dropped);
  Timeline timeline(log);
  timeline.add(activities);
  profile.events = timeline.take();
  profile.events.insert(profile.events.begin(), trace_row(log, untraced, "cupti", dropped));
#endif
  return profile;
}

}  // namespace lloyd::profiling
