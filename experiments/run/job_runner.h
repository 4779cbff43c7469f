// Runs jobs in worker processes, and replaces workers that die.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "experiments/run/bounded_log.h"
#include "experiments/run/job.h"
#include "experiments/run/worker_process.h"

namespace lloyd {

/// The request for each point of a job (by its index there), and what to do with the replies.
struct Asking {
  std::function<Request(std::size_t)> request;
  std::function<void(std::size_t, Reply&)> part;  // each reply except the last
  std::function<void(std::size_t, const Reply&, double seconds)> end;
};

/// Points with the same key have the same ExpectedRun: the same points, initial centroids and
/// rules, and the same precision, which decides how far rounding errors move a run.
std::pair<std::string, Precision> expected_key(const Point& point);

/// Asks worker processes about the points of jobs.
class JobRunner {
 public:
  /// The output of workers goes to `log`. An answer may take `timeout` seconds.
  JobRunner(BoundedLog& log, double timeout) : log_(log), timeout_(timeout) {}

  /// Sends a request for each point of the job. Starts a new worker whenever one died. Returns
  /// false if interrupted.
  bool run(Job job, const Asking& asking);

 private:
  /// Fills in the last reply. Earlier replies go to `take_part`. Returns false if interrupted.
  bool ask(WorkerProcess& worker, const Job& job, Request request,
           const std::function<void(Reply&)>& take_part, Reply& reply);

  BoundedLog& log_;
  double timeout_;
  std::map<std::pair<std::string, Precision>, std::vector<ExpectedRun>> expected_;  // by its key
};

}  // namespace lloyd
