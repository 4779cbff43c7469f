// What a command line asks for.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "experiments/run/list_metrics.h"
#include "experiments/run/sweep.h"
#include "experiments/spec/spec.h"

namespace lloyd {

enum class Action {
  run,
  plan,
  list_versions,
  list_axes,
  schema,
  doctor,
  ceilings,
  list_metrics,
  status,
  merge,
};

struct CommandLine {
  Action action = Action::run;
  std::string spec;                            // as typed; empty: none given
  std::vector<std::filesystem::path> folders;  // of --status and --merge
  Overrides overrides;
  RunOptions options;
  MetricQuery metrics;
  bool lock_clocks = false;
  std::optional<Shard> shard;
  std::string submit;  // the scheduler; empty: run here
  std::filesystem::path sbatch;
  std::vector<std::string> given_options;  // as typed, for the parts
  bool help = false, version = false;
  std::string topic;  // of the help: a subcommand; empty: all
  // Hidden options. An empty text: not given.
  bool worker = false, ranked_worker = false, man_page = false;
  std::string keep_clocks, traced, completion;
};

}  // namespace lloyd
