// Uses callgrind instead of cachegrind: it has the same cache model, and the program can ask it to
// start, to stop and to write its counts.
#include "profiling/cache_simulation.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "kernels/core/status.h"
#include "profiling/program.h"
#include "profiling/row.h"

#if __has_include(<valgrind/callgrind.h>)
#include <valgrind/callgrind.h>
#else
// Without valgrind's headers, the requests to valgrind do nothing.
#define RUNNING_ON_VALGRIND 0
#define CALLGRIND_START_INSTRUMENTATION
#define CALLGRIND_STOP_INSTRUMENTATION
#define CALLGRIND_DUMP_STATS_AT(name) (void)(name)
#endif

namespace lloyd::profiling {
namespace {

constexpr const char* kVariable = "LLOYDBENCH_CALLGRIND";

struct Simulated {
  std::string phase;
  std::size_t calls = 0;
  std::vector<std::pair<std::string, double>> events;

  double of(std::initializer_list<const char*> names) const {
    double sum = 0;
    for (const auto& [name, value] : events)
      if (std::find(names.begin(), names.end(), name) != names.end()) sum += value;
    return sum;
  }
};

// Makes callgrind dump at each change of phase. A dump holds the events since the previous one.
class PhaseDumps : public RangeObserver {
 public:
  explicit PhaseDumps(std::string file) : file_(std::move(file)) {}

  void begin_phase(const char* name) override {
    take();
    auto at = std::find_if(phases_.begin(), phases_.end(),
                           [&](const Simulated& known) { return known.phase == name; });
    if (at == phases_.end()) at = phases_.insert(phases_.end(), {name, 0, {}});
    ++at->calls;
    open_.push_back(static_cast<std::size_t>(at - phases_.begin()));
  }
  void end_phase() override {
    take();
    open_.pop_back();
  }
  void begin_iteration(int) override {}
  void end_iteration() override {}

  const std::vector<Simulated>& phases() const { return phases_; }

 private:
  void take() {
    CALLGRIND_DUMP_STATS_AT("phase");
    const std::string dump = fmt::format("{}.{}", file_, ++dumps_);
    std::ifstream in(dump);
    std::ostringstream text;
    text << in.rdbuf();
    if (!in) throw std::runtime_error(dump + ": callgrind did not write it");
    unlink(dump.c_str());
    if (open_.empty()) return;  // outside of any phase
    auto& sums = phases_[open_.back()].events;
    for (const auto& total : callgrind_totals(text.str())) {
      const auto at = std::find_if(sums.begin(), sums.end(),
                                   [&](const auto& known) { return known.first == total.first; });
      if (at == sums.end())
        sums.push_back(total);
      else
        at->second += total.second;
    }
  }

  std::string file_;
  static inline int dumps_ = 0;  // callgrind counts them for the whole process, over all points
  std::vector<Simulated> phases_;
  std::vector<std::size_t> open_;
};

}  // namespace

std::vector<std::string> simulator_command(const std::string& folder) {
  if (find_program("valgrind").empty()) return {};
  const std::string file = folder + "/callgrind";
  return {"env",
          fmt::format("{}={}", kVariable, file),
          "OMP_WAIT_POLICY=passive",  // valgrind runs one thread at a time, so none may spin
          "valgrind",
          "--tool=callgrind",
          "--cache-sim=yes",
          "--instr-atstart=no",
          "--callgrind-out-file=" + file};
}

Profile simulate_caches(Subject& subject) {
  const char* file = std::getenv(kVariable);
  if (file == nullptr || RUNNING_ON_VALGRIND == 0)
    throw Unavailable(
        "needs valgrind (apt-get install valgrind, before building too) and a version that runs in "
        "this program's own process");
  subject.prepare();
  PhaseDumps dumps(file);
  subject.observe(&dumps);
  CALLGRIND_START_INSTRUMENTATION;
  subject.run();
  CALLGRIND_STOP_INSTRUMENTATION;
  subject.observe(nullptr);
  if (dumps.phases().empty())
    throw Unavailable("the version has no phases in this process: it runs in another one");

  Profile profile;
  for (const Simulated& phase : dumps.phases()) {
    const auto calls = static_cast<double>(phase.calls);
    const auto add = [&](const char* metric, double events) {
      Row row;
      row["phase"] = phase.phase;
      row["kernel"] = nullptr;
      row["metric"] = metric;
      row["preset"] = "cachegrind";
      row["value"] = events / calls;
      row["unit"] = "event";
      row["passes"] = 1;
      row["replay"] = "simulation";
      row["status"] = status::ok;
      row["reason"] = "simulated by valgrind's cache model, not measured";
      row["calls"] = phase.calls;
      row["iterations"] = subject.iterations();
      profile.counters.push_back(std::move(row));
    };
    add("l1d_misses", phase.of({"D1mr", "D1mw"}));
    add("llc_misses", phase.of({"ILmr", "DLmr", "DLmw"}));
    add("l1d_accesses", phase.of({"Dr", "Dw"}));
    add("instructions", phase.of({"Ir"}));
  }
  return profile;
}

std::vector<std::pair<std::string, double>> callgrind_totals(const std::string& text) {
  std::istringstream lines(text);
  std::vector<std::pair<std::string, double>> totals;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string word;
    words >> word;
    if (word == "events:")
      while (words >> word) totals.emplace_back(word, 0);
    if (word == "totals:") {
      // Callgrind omits trailing zeros.
      for (auto& [name, value] : totals)
        if (!(words >> value)) break;
      return totals;
    }
  }
  throw std::runtime_error("callgrind wrote no totals");
}

}  // namespace lloyd::profiling
