#include "experiments/spec/key_tables.h"
#include "profiling/perf_events.h"
#include "profiling/presets.h"

namespace lloyd {
namespace {
using Kind = Key::Kind;

std::vector<std::string> cpu_counters() {
  std::vector<std::string> names = profiling::hardware_events();
  names.push_back("cachegrind");
  return names;
}

}  // namespace

std::vector<Key> profile_keys() {
  return {
      {.section = "profile",
       .name = "nvtx",
       .kind = Kind::flag,
       .text = "Whether the phases are marked by NVTX ranges, which Nsight shows.",
       .example = false},
      {.section = "profile",
       .name = "counters",
       .kind = Kind::words,
       .text = "GPU counters per phase and kernel: presets, or CUPTI's own names "
               "(`run_experiment --list-metrics`).",
       .example = {"roofline", "dram__bytes.sum"},
       .noun = "counter",
       .words = profiling::presets(),
       // CUPTI documentation, Metrics Naming Conventions: unit__counter, roll-up, sub-metric.
       .pattern = "[a-z0-9_]+__[a-z0-9_]+(\\.[a-z0-9_]+)*"},
      {.section = "profile",
       .name = "timeline",
       .kind = Kind::flag,
       .text = "Whether kernels, copies and API calls are recorded into timeline.json.",
       .example = true},
      {.section = "profile",
       .name = "cpu",
       .kind = Kind::words,
       .text = "Counters of the CPU per phase.",
       .example = {"llc_misses", "instructions"},
       .noun = "CPU counter",
       .words = cpu_counters()},
      {.section = "profile",
       .name = "convergence",
       .kind = Kind::flag,
       .text = "Whether the inertia after each iteration is recorded into convergence.jsonl. "
               "`figures: convergence` implies it.",
       .example = true},
  };
}

}  // namespace lloyd
