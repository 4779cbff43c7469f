// The messages between the supervisor and a worker, which are JSON lines. The worker is the same
// program in another process.
//
//   to the worker (standard input):   a Job, then one Request per line; at the end of its input
//                                     the worker ends
//   from the worker (descriptor 3):   one or more Replies per request, one per line; the last one
//                                     says that it is the last
//
// A timing pass sends a Reply for each sample. It takes the next sample after the supervisor has
// answered with a line. The sample is then on disk, and writing it disturbs no measurement. It also
// announces each step of its point, in a Reply of its own, so that the supervisor can say where a
// point was when its time was up. If a worker has several ranks, rank 0 reads and replies
// (experiments/run/launch.h).
#pragma once

#include <algorithm>
#include <cstddef>
#include <filesystem>
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
/// The line that the supervisor sends once a sample is on disk.
inline constexpr const char* kGoOn = "go on";

struct Job {
  data::Sources data;
  data::Init init;
  Stop stop;
  int restarts = 1;
  Measure measure;
  Profile profile;
  Pass pass = Pass::timing;
  std::string experiment;              // the spec's name
  std::optional<DeviceLimits> device;  // for versions that need one
  std::vector<std::string> team;       // the UUIDs of the GPUs in device->team, or of all ranks
  std::vector<Point> points;           // all share_a_worker() (launch.h)
  std::vector<std::string> save;       // the parts of the answers to keep
  std::filesystem::path answers;       // the folder to keep them in
  int cores = 1;                       // that the run may use; a rank may be bound to fewer
  std::string binding;                 // of the ranks, if mpirun starts the worker
  std::string node, shard;             // of the rows (RowSource)
  std::string no_energy;               // why no energy pass will follow; empty if one will
  int supervisor = 0;                  // its process id; it and its descendants are this run
};

struct Request {
  std::size_t point = 0;              // into Job::points
  std::vector<ExpectedRun> expected;  // of each problem, if an earlier worker computed them
  // All that follows is for timing passes.
  Turn turn;
  std::vector<double> taken;      // solve_ms of this turn's samples that are on disk already
  std::optional<double> to_beat;  // the inertia of the answer that is saved, from other restarts
};

struct Reply {
  std::vector<Row> measurements;  // a sample, or in the last reply the row of a failed point
  std::vector<Row> phases;
  std::vector<Row> counters;  // `counters` and `events` come from profiling passes
  std::vector<Row> events;    // timeline.jsonl
  std::vector<Row> convergence;
  std::string step;            // which begins now; such a reply has nothing else
  std::string status, reason;  // in the last reply: how the pass ended, and why there are no rows
  std::vector<ExpectedRun> expected;  // newly computed
  std::optional<double> energy_j;     // from an energy pass
  bool needs_restart = false;         // the CUDA context may be poisoned
  bool last = true;                   // of the replies to this request
};

/// The point of a request. With restarts, it has the initial centroids of the request's turn.
Point point_of(const Job& job, const Request& request);

RowSource row_source(const Job& job, const Point& point);

/// The row of a timing pass that did not measure its point.
Row unmeasured_row(const Job& job, const Request& request, const std::string& status,
                   const std::string& reason);
/// The reply where the worker gives none: its rows, by the job's pass, say why. The worker has to
/// restart.
Reply failed_reply(const Job& job, const Request& request, const std::string& status,
                   const std::string& reason);

/// The first `count` GPUs of a team, or all if it has fewer.
template <typename Gpu>
std::vector<Gpu> first_gpus(const std::vector<Gpu>& team, int count) {
  const auto there = static_cast<std::ptrdiff_t>(team.size());
  return {team.begin(), team.begin() + std::min<std::ptrdiff_t>(count, there)};
}

/// What to_json(const Point&) writes, in jobs and in plan.json.
Point point_from_json(const nlohmann::json& json);
nlohmann::json to_json(const Job& job);
Job job_from_json(const nlohmann::json& json);
nlohmann::json to_json(const Request& request);
Request request_from_json(const nlohmann::json& json);
nlohmann::ordered_json to_json(const Reply& reply);
Reply reply_from_json(const nlohmann::ordered_json& json);

using OpenSession = std::function<std::unique_ptr<Session>(const Job&)>;
/// Opens a session in this process: on the job's device, or on the CPU.
std::unique_ptr<Session> open_session(const Job& job);

/// Serves requests until its input ends. Writes to the descriptor `replies`. Returns the exit
/// status.
int run_worker(int replies = kReplyDescriptor, const OpenSession& open = open_session);

}  // namespace lloyd
