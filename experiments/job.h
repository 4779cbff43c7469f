// What the supervisor tells a worker, as JSON lines. The worker is the same program in another
// process.
//
//   to the worker (standard input):   first a Job, then one Request a line; end of input ends it
//   from the worker (descriptor 3):   one Reply a line
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "experiments/profile.h"
#include "experiments/rows.h"
#include "experiments/spec.h"
#include "experiments/verify.h"

namespace lloyd {

inline constexpr int kReplyDescriptor = 3;

struct Job {
  data::Source data;
  data::Init init;
  Stop stop;
  Measure measure;
  Profile profile;
  Pass pass = Pass::timing;
  std::string experiment;              // the spec's name
  std::optional<DeviceLimits> device;  // for versions that need one
  std::vector<Point> points;           // all of one version
};

struct Request {
  std::size_t point = 0;                // into Job::points
  std::optional<ExpectedRun> expected;  // when an earlier worker computed it
};

struct Reply {
  std::vector<Row> measurements;
  std::vector<Row> phases;
  std::vector<Row> counters;            // of a profiling pass, as the next three
  std::vector<Row> events;              // timeline.jsonl
  std::string status, reason;           // of the pass: ok, unsupported or failed
  std::optional<ExpectedRun> expected;  // newly computed
  bool needs_restart = false;           // the CUDA context may be poisoned
};

nlohmann::json to_json(const Job& job);
Job job_from_json(const nlohmann::json& json);
nlohmann::json to_json(const Request& request);
Request request_from_json(const nlohmann::json& json);
nlohmann::ordered_json to_json(const Reply& reply);
Reply reply_from_json(const nlohmann::ordered_json& json);

/// Serves requests until its input ends. The exit status.
int run_worker();

}  // namespace lloyd
