// Jobs seen from the supervisor: workers are started, asked and, when they are lost, replaced.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <tuple>

#include "experiments/run/bounded_log.h"
#include "experiments/run/job.h"
#include "experiments/run/worker_process.h"

namespace lloyd {

/// What is asked for each point of a job, by its place there, and what is done with the answers.
struct Asking {
  std::function<Request(std::size_t)> request;
  std::function<void(std::size_t, Reply&)> part;  // each reply but the last
  std::function<void(std::size_t, const Reply&, double seconds)> end;
};

/// Has worker processes answer for the points of jobs.
class JobRunner {
 public:
  /// What workers print goes to `log`; no answer may take longer than `timeout` seconds.
  JobRunner(BoundedLog& log, double timeout) : log_(log), timeout_(timeout) {}

  /// Asks for each point of the job, of a new worker after each that was lost. False when
  /// interrupted.
  bool run(Job job, const Asking& asking);

 private:
  /// Fills in the last reply; those before it go to `take_part`. False when interrupted.
  bool ask(WorkerProcess& worker, const Job& job, Request request,
           const std::function<void(Reply&)>& take_part, Reply& reply);

  BoundedLog& log_;
  double timeout_;
  // By problem: n, k, dim and storage precision.
  std::map<std::tuple<std::int64_t, int, int, Precision>, ExpectedRun> expected_;
};

}  // namespace lloyd
