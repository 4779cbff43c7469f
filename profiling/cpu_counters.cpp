#include "profiling/cpu_counters.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "kernels/core/status.h"
#include "profiling/perf_events.h"
#include "profiling/row.h"

namespace lloyd::profiling {
namespace {

struct Counted {
  std::string phase;
  std::size_t calls = 0;
  std::vector<double> events;  // per counter
};

// Reads all counters when a phase begins and when it ends. Events in a nested phase count for both
// phases.
class PhaseCounter : public RangeObserver {
 public:
  explicit PhaseCounter(const std::vector<std::unique_ptr<PerfEvent>>& counters)
      : counters_(counters) {}

  void begin_phase(const char* name) override {
    auto at = std::find_if(phases_.begin(), phases_.end(),
                           [&](const Counted& known) { return known.phase == name; });
    if (at == phases_.end())
      at = phases_.insert(phases_.end(), {name, 0, std::vector<double>(counters_.size())});
    ++at->calls;
    open_.push_back({static_cast<std::size_t>(at - phases_.begin()), {}});
    open_.back().before = read();
  }
  void end_phase() override {
    const std::vector<double> now = read();
    const Open& open = open_.back();
    for (std::size_t i = 0; i < now.size(); ++i)
      phases_[open.phase].events[i] += now[i] - open.before[i];
    open_.pop_back();
  }
  void begin_iteration(int) override {}
  void end_iteration() override {}

  const std::vector<Counted>& phases() const { return phases_; }

 private:
  struct Open {
    std::size_t phase;
    std::vector<double> before;
  };

  std::vector<double> read() const {
    std::vector<double> events;
    for (const auto& counter : counters_) events.push_back(counter->read().events);
    return events;
  }

  const std::vector<std::unique_ptr<PerfEvent>>& counters_;
  std::vector<Counted> phases_;
  std::vector<Open> open_;
};

Row row(const std::string& metric) {
  Row row;
  for (const char* field : {"phase", "kernel"}) row[field] = nullptr;
  row["metric"] = metric;
  for (const char* field : {"preset", "value"}) row[field] = nullptr;
  row["unit"] = "event";
  for (const char* field : {"passes", "replay", "status", "reason"}) row[field] = nullptr;
  return row;
}

}  // namespace

Profile count_cpu(Subject& subject, const std::vector<std::string>& wanted) {
  // The warm-up touches pages and starts threads for the first time, which must not be counted.
  subject.prepare();
  subject.run();
  subject.fetch();

  Profile profile;
  std::vector<std::string> names;
  std::vector<std::unique_ptr<PerfEvent>> counters;
  subject.prepare();
  for (const std::string& name : wanted) {
    std::string why_not;
    if (auto counter = PerfEvent::open(name, why_not)) {
      names.push_back(name);
      counters.push_back(std::move(counter));
      continue;
    }
    Row missing = row(name);
    missing["status"] = "unavailable";
    missing["reason"] = why_not;
    profile.counters.push_back(std::move(missing));
  }
  if (counters.empty()) throw Unavailable(profile.counters.at(0).at("reason").get<std::string>());

  PhaseCounter phases(counters);
  subject.observe(&phases);
  subject.run();
  subject.observe(nullptr);
  for (std::size_t i = 0; i < counters.size(); ++i) {
    const double share = counters[i]->read().share;
    for (const Counted& counted : phases.phases()) {
      Row value = row(names[i]);
      value["phase"] = counted.phase;
      value["value"] = counted.events[i] / static_cast<double>(counted.calls);
      value["passes"] = 1;
      value["replay"] = "none";
      value["status"] = status::ok;
      if (share < 0.999)
        value["reason"] = fmt::format(
            "scaled up: it was on the hardware for {:.0f}% of the time, with other counters",
            share * 100);
      value["calls"] = counted.calls;
      value["iterations"] = subject.iterations();
      profile.counters.push_back(std::move(value));
    }
  }
  return profile;
}

}  // namespace lloyd::profiling
