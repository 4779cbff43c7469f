#include "experiments/run/job_runner.h"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "experiments/process/clock.h"
#include "experiments/process/work_directory.h"
#include "experiments/run/launch.h"
#include "experiments/text/text.h"
#include "kernels/core/status.h"
#include "profiling/cache_simulation.h"

namespace lloyd {
namespace fs = std::filesystem;
namespace {

/// The steps of a point that its worker has announced.
class AnnouncedSteps {
 public:
  void begin(const std::string& step) {
    const double now = now_ms();
    ended_ += fmt::format("{} {:.1f} s, ", step_, (now - std::exchange(since_, now)) / 1e3);
    step_ = step;
  }
  const std::string& now_in() const { return step_; }
  /// "start-up 0.1 s, data 2.0 s, first solve 41.3 s, verification not done".
  std::string text() const { return fmt::format("{}{} not done", ended_, step_); }

 private:
  std::string step_ = "start-up", ended_;  // at first the worker opens its device
  double since_ = now_ms();
};

}  // namespace

bool JobRunner::run(Job job, const Asking& asking) {
  if (job.points.empty()) return true;
  const Launch launch = launch_for(job.points[0]);
  job.binding = launch.binding;
  if (!launch.binding.empty())
    dprintf(log_.descriptor(), "%s\n", join(launch.command, " ").c_str());
  std::vector<std::string> command = launch.command;
  std::optional<WorkDirectory> simulated;
  if (job.pass == Pass::cachegrind && launch.binding.empty()) {
    simulated.emplace(fs::temp_directory_path());
    const std::vector<std::string> simulator =
        profiling::simulator_command(simulated->path().string());
    command.insert(command.begin(), simulator.begin(), simulator.end());
  }
  std::unique_ptr<WorkerProcess> worker;
  for (std::size_t i = 0; i < job.points.size(); ++i) {
    if (interrupted()) return false;
    Request request = asking.request(i);
    const double start = now_ms();
    if (!worker)
      worker = std::make_unique<WorkerProcess>(command, log_.descriptor(), json_text(to_json(job)));
    Reply reply;
    const auto take_part = [&](Reply& part) { asking.part(i, part); };
    if (!ask(*worker, job, std::move(request), take_part, reply)) return false;
    if (reply.needs_restart) worker.reset();
    log_.next_part();
    asking.end(i, reply, (now_ms() - start) / 1e3);
  }
  return true;
}

std::pair<std::string, Precision> expected_key(const Point& point) {
  return {point.inputs(), point.precision};
}

bool JobRunner::ask(WorkerProcess& worker, const Job& job, Request request,
                    const std::function<void(Reply&)>& take_part, Reply& reply) {
  const auto problem = expected_key(point_of(job, request));
  if (const auto known = expected_.find(problem); known != expected_.end())
    request.expected = known->second;
  const auto lost = [&](const std::string& status, const std::string& reason) {
    reply = failed_reply(job, request, status, reason);
  };
  AnnouncedSteps steps;
  bool readable = true;
  const auto take = [&](const std::string& line) {
    try {
      reply = reply_from_json(nlohmann::ordered_json::parse(line));
    } catch (const nlohmann::json::exception&) {
      readable = false;
      return false;
    }
    if (!reply.step.empty()) {
      steps.begin(reply.step);
      return true;
    }
    if (!reply.expected.empty()) expected_[problem] = reply.expected;
    if (!reply.last) take_part(reply);
    return !reply.last;
  };
  const WorkerProcess::Answer answer = worker.ask(json_text(to_json(request)), timeout_, take);
  switch (answer.outcome) {
    case WorkerProcess::Outcome::interrupted:
      return false;
    case WorkerProcess::Outcome::timed_out: {
      std::string reason = fmt::format("not done within {} s (measure.timeout)", timeout_);
      if (job.pass == Pass::timing) {  // the times are not in the reason: equal ones are counted
        reason += ", in " + steps.now_in();
        dprintf(log_.descriptor(), "%s: %s\n", point_of(job, request).id.c_str(),
                steps.text().c_str());
      }
      lost(status::timeout, reason);
      break;
    }
    case WorkerProcess::Outcome::died:
      lost(status::failed, fmt::format("{}; its output is in log.txt", answer.text));
      break;
    case WorkerProcess::Outcome::replied:
      if (!readable) lost(status::failed, "the worker answered with something other than a result");
  }
  return true;
}

}  // namespace lloyd
