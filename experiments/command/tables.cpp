#include "experiments/command/tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>

#include "experiments/record/answers.h"
#include "experiments/spec/shard.h"
#include "experiments/text/text.h"

namespace lloyd {
namespace {

std::int64_t whole_number(const std::string& text, std::int64_t lowest, std::int64_t highest) {
  const std::optional<std::int64_t> number = parse_whole(text).as_int64();
  if (!number) throw UsageError(in_quotes(text) + " is not a whole number");
  if (*number < lowest || *number > highest)
    throw UsageError(fmt::format("must be from {} to {}, not {}", lowest, highest, text));
  return *number;
}

// The spec reader checks the ranges, so that all errors are reported together.
int any_int(const std::string& text) {
  using Limits = std::numeric_limits<int>;
  return static_cast<int>(whole_number(text, Limits::min(), Limits::max()));
}

std::uint64_t seed(const std::string& text) {
  const WholeNumber number = parse_whole(text);
  if (number.form == WholeNumber::Form::too_large || number.negative)
    throw UsageError(fmt::format("must be from 0 to 2^64 - 1, not {}", in_quotes(text)));
  if (number.form != WholeNumber::Form::whole)
    throw UsageError(in_quotes(text) + " is not a whole number");
  return number.magnitude;
}

double real_number(const std::string& text) {
  const std::optional<double> number = parse_real(text);
  if (!number) throw UsageError(in_quotes(text) + " is not a number");
  return *number;
}

/// The parts of the answers that a list names, each once, in the order of answer_parts().
std::vector<std::string> parts_to_save(const std::string& list) {
  const std::vector<std::string> known(answer_parts().begin(), answer_parts().end());
  const std::vector<std::string> named = split_list(list);
  for (const std::string& word : named)
    if (!contains(known, word)) throw UsageError(unknown_word("part of an answer", word, known));
  if (named.empty()) throw UsageError("names nothing; choose from " + join(known));
  std::vector<std::string> parts;
  std::ranges::copy_if(known, std::back_inserter(parts),
                       [&](const std::string& part) { return contains(named, part); });
  return parts;
}

const std::vector<Action> kSweep = {Action::run, Action::plan};
const std::vector<Action> kRun = {Action::run};
const std::vector<Action> kMeasuring = {Action::run, Action::ceilings};
const std::vector<Action> kWriting = {Action::run, Action::ceilings, Action::merge};
const std::vector<Action> kMetrics = {Action::list_metrics};
const std::vector<Action> kOnDevice = {Action::run,    Action::plan,     Action::list_versions,
                                       Action::doctor, Action::ceilings, Action::list_metrics};
const std::vector<Action> kAll = {};

using T = ActionInfo::Takes;
constexpr auto kActions = std::to_array<ActionInfo>({
    {Action::run, "run", "", "", T::spec, "measure the points of a spec (the default)"},
    {Action::plan, "plan", "", "--dry-run", T::spec,
     "print the points (with --resume those that are left) and whether they can run here; run "
     "nothing"},
    {Action::list_versions, "list", "", "--list-versions", T::nothing, "print every version"},
    {Action::list_versions, "list", "versions", "", T::nothing, "the same"},
    {Action::list_axes, "list", "axes", "--list-axes", T::nothing,
     "print every axis with its default, range and meaning"},
    {Action::schema, "list", "schema", "--schema", T::nothing,
     "print the JSON Schema of a spec, by which editors check specs"},
    {Action::doctor, "doctor", "", "--doctor", T::nothing,
     "print what this machine can do, and the remedy for what it cannot"},
    {Action::ceilings, "ceilings", "", "--ceilings", T::nothing,
     "measure what this machine can do at most, which floor_ms is computed from"},
    {Action::list_metrics, "metrics", "", "--list-metrics", T::nothing,
     "print the GPU counters that CUPTI knows for a chip; needs no GPU"},
    {Action::status, "status", "", "--status", T::folder,
     "print which parts of a sweep ran where, and what is left"},
    {Action::merge, "merge", "", "--merge", T::folders,
     "join the parts of a sweep into one run directory"},
});

OptionInfo flag(std::string_view name, Group group, const std::vector<Action>& actions,
                std::string_view text, void (*set)(CommandLine& line, const std::string& value)) {
  return {name, "", "", Offers::nothing, true, group, actions, text, set};
}

const std::vector<OptionInfo>& all_options() {
  using R = CommandLine;
  using S = const std::string;
  static const std::vector<OptionInfo> all = {
      {"--set", "", "AXIS=V1,V2", Offers::axes, true, Group::points, kSweep,
       "override an axis of the spec", [](R& r, S& value) { r.overrides.set.push_back(value); }},
      {"--only", "", "GLOB,...", Offers::versions, true, Group::points, kSweep,
       "keep these versions: names or globs",
       [](R& r, S& value) {
         for (std::string& glob : split_list(value)) r.overrides.only.push_back(std::move(glob));
       }},
      {"--filter", "", "REGEX", Offers::nothing, false, Group::points, kSweep,
       "keep the points whose id matches (RE2)",
       [](R& r, S& value) { r.overrides.filter = value; }},
      {"--device", "", "I", Offers::nothing, false, Group::points, kOnDevice,
       "the GPU to use, in CUDA's order (default: 0)",
       [](R& r, S& value) {
         r.options.device =
             static_cast<int>(whole_number(value, 0, std::numeric_limits<int>::max()));
       }},

      {"--repetitions", "", "R", Offers::nothing, false, Group::measurement, kSweep,
       "override measure.repetitions, the least number of samples of a point",
       [](R& r, S& value) { r.overrides.repetitions = any_int(value); }},
      {"--warmup", "", "W", Offers::nothing, false, Group::measurement, kSweep,
       "override measure.warmup", [](R& r, S& value) { r.overrides.warmup = any_int(value); }},
      {"--timeout", "", "S", Offers::nothing, false, Group::measurement, kSweep,
       "override measure.timeout, the seconds that a point may take",
       [](R& r, S& value) { r.overrides.timeout = real_number(value); }},
      {"--seed", "", "X", Offers::nothing, false, Group::measurement, kSweep,
       "override the seeds of data, initial centroids and order",
       [](R& r, S& value) { r.overrides.seed = seed(value); }},
      {"--shuffle", "--no-shuffle", "", Offers::nothing, true, Group::measurement, kSweep,
       "run the points in random order, or in the spec's",
       [](R& r, S& value) { r.overrides.shuffle = value == "true"; }},
      {"--profile", "", "WHAT,...", Offers::profiles, false, Group::measurement, kSweep,
       "override profile: none, or a list of nvtx, counters, timeline, cpu, all",
       [](R& r, S& value) { r.overrides.profile = value; }},

      {"--out", "", "DIR", Offers::folders, false, Group::directory, kWriting,
       "the run directory (default: results/<spec name>/<UTC>-<hash>); for ceilings, a file "
       "or a folder",
       [](R& r, S& value) { r.options.out = value; }},
      {"--resume", "", "DIR", Offers::folders, false, Group::directory, kSweep,
       "go on with this run directory: run only what has no ok row there",
       [](R& r, S& value) { r.options.resume = value; }},
      {"--save", "", "PART,...", Offers::answers, false, Group::directory, kRun,
       "keep the answers as npy files in answers/: labels, centroids or both",
       [](R& r, S& value) { r.options.save = parts_to_save(value); }},
      flag("--retry-failed", Group::directory, kSweep, "with --resume: also redo failures",
           [](R& r, S&) { r.options.retry_failed = true; }),

      {"--shard", "", "I/N", Offers::nothing, false, Group::parts, kSweep,
       "keep part I of N (from 1) of the sweep; with --resume DIR, start it there if need be",
       [](R& r, S& value) {
         r.shard = parse_shard(value);
         if (!r.shard) throw UsageError(in_quotes(value) + " is not a part such as 1/4 or 4/4");
       }},
      {"--submit", "", "SCHEDULER", Offers::schedulers, false, Group::parts, kRun,
       "submit the sweep as an array job of parts to slurm, into folders of DIR (--out)",
       [](R& r, S& value) {
         if (!contains(schedulers(), value))
           throw UsageError(
               unknown_word("scheduler", value, {schedulers().begin(), schedulers().end()}));
         r.submit = value;
       }},
      {"--sbatch", "", "FILE", Offers::files, false, Group::parts, kRun,
       "#SBATCH lines for the head of the job: partition, GPUs, --array=1-N for N parts",
       [](R& r, S& value) { r.sbatch = value; }},

      flag("--nsys", Group::tools, kRun,
           "afterwards run the points once more under Nsight Systems, into trace.nsys-rep",
           [](R& r, S&) { r.options.nsys = true; }),
      flag("--ncu", Group::tools, kRun,
           "afterwards run the points once more under Nsight Compute, into report.ncu-rep",
           [](R& r, S&) { r.options.ncu = true; }),
      flag("--lock-clocks", Group::tools, kRun,
           "hold the GPU's clock at one that it can sustain, until the run has ended",
           [](R& r, S&) { r.lock_clocks = true; }),

      {"--chip", "", "NAME", Offers::chips, false, Group::counters, kMetrics,
       "the chip, such as GH100 (default: this machine's GPU)",
       [](R& r, S& value) { r.metrics.chip = value; }},
      {"--match", "", "REGEX", Offers::nothing, false, Group::counters, kMetrics,
       "only counters whose name or description matches (RE2)",
       [](R& r, S& value) { r.metrics.match = value; }},

      flag("--json", Group::output, kAll, "print JSON and nothing else on standard output",
           [](R& r, S&) { r.options.json = true; }),
      flag("--quiet", Group::output, kWriting, "print only errors and where the results are",
           [](R& r, S&) { r.options.quiet = true; }),
      flag("--no-progress", Group::output, kMeasuring, "no live line",
           [](R& r, S&) { r.options.progress = false; }),

      {"--help", "-h", "", Offers::nothing, true, Group::help, kAll,
       "print this help; after a command, only its options", [](R& r, S&) { r.help = true; }},
      flag("--version", Group::help, kAll, "print the version", [](R& r, S&) { r.version = true; }),
      {"--completion", "", "SHELL", Offers::shells, false, Group::help, kAll,
       "print the completion script of bash, zsh or fish",
       [](R& r, S& value) {
         if (!contains(shells(), value))
           throw UsageError(unknown_word("shell", value, {shells().begin(), shells().end()}));
         r.completion = value;
       }},
      flag("--man", Group::help, kAll, "print the man page (roff)",
           [](R& r, S&) { r.man_page = true; }),

      flag("--worker", Group::hidden, kAll, "", [](R& r, S&) { r.worker = true; }),
      flag("--ranked-worker", Group::hidden, kAll, "", [](R& r, S&) { r.ranked_worker = true; }),
      {"--keep-clocks", "", "UUID", Offers::nothing, false, Group::hidden, kAll, "",
       [](R& r, S& value) { r.keep_clocks = value; }},
      {"--traced", "", "FILE", Offers::nothing, false, Group::hidden, kAll, "",
       [](R& r, S& value) { r.traced = value; }},
  };
  return all;
}

constexpr auto kExitStatuses = std::to_array<ExitStatus>({
    {0, "every point that can run here is ok; points that cannot are reported and do not count"},
    {1,
     "some point failed, timed out, or gave an incorrect or imprecise answer; or a list or JSON "
     "could not be printed"},
    {2, "an error in the command line or in the spec; nothing was run"},
    {130, "interrupted; go on with --resume DIR"},
});

constexpr auto kVariables = std::to_array<Variable>({
    {"LLOYDBENCH_VERSIONS", "a folder with external versions of your own"},
    {"LLOYDBENCH_NODE",
     "the name of this machine in the rows of a part (default: Slurm's name of the node, else the "
     "host's)"},
    {"LLOYDBENCH_HOSTS",
     "the machines of MPI ranks on GPUs, this one first: node1,node2 (docs/scaling.md)"},
    {"LLOYDBENCH_NO_NCCL", "if set, MPI ranks add up in host memory instead of by NCCL"},
    {"LLOYDBENCH_SHARE_GPUS", "if set, MPI ranks may share a GPU, for tests"},
    {"LLOYDBENCH_PYTHON", "the interpreter of the Python versions (default: .venv, else python3)"},
    {"LLOYDBENCH_CEILINGS",
     "the folder of measured ceilings (default: lloydbench/ceilings in XDG_CACHE_HOME, else in "
     "~/.cache)"},
    {"LLOYDBENCH_TRIALS",
     "the file in which fast_auto and fast_cpu_auto keep what they found by trial (default: "
     "lloydbench/trials.txt in XDG_CACHE_HOME, else in ~/.cache; empty: nowhere)"},
    {"LLOYDBENCH_HOME", "the tree with experiments/, data/ and analysis/ (default: the program's)"},
    {"LLOYDBENCH_CUPTI", "the CUPTI library to open, instead of the one that is found"},
    {"LLOYDBENCH_POWERCAP",
     "the folder of the CPU's energy counters, instead of /sys/class/powercap"},
    {"CUDA_VISIBLE_DEVICES", "the GPUs that the program sees, and --device counts"},
    {"NO_COLOR", "not empty: no colours"},
    {"TERM", "dumb: no colours and no live line"},
    {"COLUMNS", "the width to print for on a terminal, instead of the window's"},
});

constexpr auto kExamples = std::to_array<Example>({
    {"run_experiment sweeps/quickstart.yaml", "run a spec; results go to results/quickstart/"},
    {"run_experiment plan sweeps/k1000.yaml", "see its points first"},
    {"run_experiment sweeps/k1000.yaml --set n=1e5,1e6 --only 'cpu_*,fast_auto'",
     "change the sizes and the versions without editing the spec"},
    {"run_experiment --resume results/k1000/20260131T120000Z-1a2b3c4", "go on after an interrupt"},
    {"run_experiment metrics --chip GH100 --match dram__bytes", "look for a GPU counter"},
});

constexpr std::array<std::string_view, 1> kSchedulers = {"slurm"};
constexpr std::array<std::string_view, 3> kShells = {"bash", "zsh", "fish"};

}  // namespace

std::span<const ActionInfo> actions() { return kActions; }

const ActionInfo& info_of(Action action) {
  return *std::ranges::find(kActions, action, &ActionInfo::action);
}

std::string_view placeholder(ActionInfo::Takes takes) {
  switch (takes) {
    case T::spec:
      return "SPEC";
    case T::folder:
      return "DIR";
    case T::folders:
      return "DIR...";
    case T::nothing:
      break;
  }
  return "";
}

std::vector<std::string> commands() {
  std::vector<std::string> names;
  for (const ActionInfo& info : kActions)
    if (names.empty() || names.back() != info.command) names.emplace_back(info.command);
  return names;
}

std::string_view title_of(Group group) {
  switch (group) {
    case Group::points:
      return "Which points";
    case Group::measurement:
      return "How they are measured";
    case Group::directory:
      return "The run directory";
    case Group::parts:
      return "A sweep in parts";
    case Group::tools:
      return "Other tools";
    case Group::output:
      return "Output";
    case Group::counters:
      return "Which counters (metrics)";
    case Group::help:
      return "Help";
    case Group::hidden:
      break;
  }
  return "";
}

bool OptionInfo::heeded_by(Action action) const {
  return actions.empty() || contains(actions, action);
}

std::span<const OptionInfo> options() { return all_options(); }
std::span<const ExitStatus> exit_statuses() { return kExitStatuses; }
std::span<const Variable> variables() { return kVariables; }
std::span<const Example> examples() { return kExamples; }
std::span<const std::string_view> schedulers() { return kSchedulers; }
std::span<const std::string_view> shells() { return kShells; }

}  // namespace lloyd
