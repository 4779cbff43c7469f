// What the supervisor tells a worker, as JSON lines. The worker is the same program in another
// process.
//
//   to the worker (standard input):   first a Job, then one Request a line; end of input ends it
//   from the worker (descriptor 3):   for each request one Reply a line, the last of which says so
//
// A timing pass sends a Reply for each sample and waits for a line before it takes the next one: the sample is on disk
// then, and our own writing disturbs no measurement.
// Of a worker of several ranks, rank 0 is told and answers (experiments/run/launch.h).
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "experiments/measure/expected_run.h"
#include "experiments/measure/profile.h"
#include "experiments/measure/session.h"
#include "experiments/record/rows.h"
#include "experiments/spec/spec.h"

namespace lloyd {

inline constexpr int kReplyDescriptor = 3;
/// What a worker is told once a sample is on disk.
inline constexpr const char* kGoOn = "go on";

struct Job {
  data::Source data;
  data::Extent data_extent;  // of a data file, all of it
  data::Init init;
  Stop stop;
  Measure measure;
  Profile profile;
  Pass pass = Pass::timing;
  std::string experiment;              // the spec's name
  std::optional<DeviceLimits> device;  // for versions that need one
  std::vector<Point> points;           // all of one version, with one number of processes
  int cores = 1;                       // of the machine, for the worker itself may be bound to some
  std::string binding;                 // of a launched worker's ranks
  std::string no_energy;               // why no energy pass will follow; empty: one will
  int supervisor = 0;                  // its process: all that it started is this run
};

struct Request {
  std::size_t point = 0;                // into Job::points
  std::optional<ExpectedRun> expected;  // when an earlier worker computed it
  int launch = 0;                       // of a timing pass, as the next one
  std::vector<double> taken;  // solve_ms of this launch's samples that are on disk already
};

struct Reply {
  std::vector<Row> measurements;  // a sample, or at the end the one row of a point that failed
  std::vector<Row> phases;
  std::vector<Row> counters;   // of a profiling pass, as the next one
  std::vector<Row> events;     // timeline.jsonl
  std::string status, reason;  // of the pass, in the last reply: ok, or why there are no rows
  std::optional<ExpectedRun> expected;  // newly computed
  std::optional<double> energy_j;       // of an energy pass
  bool needs_restart = false;           // the CUDA context may be poisoned
  bool last = true;                     // of this request's replies
};

RowSource row_source(const Job& job);

nlohmann::json to_json(const Job& job);
Job job_from_json(const nlohmann::json& json);
nlohmann::json to_json(const Request& request);
Request request_from_json(const nlohmann::json& json);
nlohmann::ordered_json to_json(const Reply& reply);
Reply reply_from_json(const nlohmann::ordered_json& json);

using OpenSession = std::function<std::unique_ptr<Session>(const Job&)>;
/// Where a version that runs in this process alone does: on the job's device, or on the CPU.
std::unique_ptr<Session> open_session(const Job& job);

/// Serves requests until its input ends, answering on the descriptor `replies`. The exit status.
int run_worker(int replies = kReplyDescriptor, const OpenSession& open = open_session);

}  // namespace lloyd
