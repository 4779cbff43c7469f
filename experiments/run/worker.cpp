// A worker process: reads requests, runs the job's pass over each point, and sends rows.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "experiments/measure/external.h"
#include "experiments/measure/trials.h"
#include "experiments/run/job.h"
#include "experiments/run/passes.h"
#include "experiments/run/trace.h"
#include "experiments/run/workbench.h"
#include "experiments/text/text.h"
#include "kernels/core/status.h"

#if LLOYD_CUDA
#include "kernels/core/cuda.h"
#include "kernels/core/nccl.h"
#endif

namespace lloyd {
namespace {

using profiling::NvtxRange;

Reply answer(Workbench& bench, const Request& request, const HandOver& hand_over) {
  switch (bench.job().pass) {
    case Pass::timing:
      return timing_pass(bench, request, hand_over);
    case Pass::energy:
      return energy_pass(bench, request);
    case Pass::convergence:
      return convergence_pass(bench, request);
    default:
      return profiling_pass(bench, request);
  }
}

void send(const Reply& reply, int replies) {
  const std::string line = json_text(to_json(reply)) + "\n";
  for (std::size_t sent = 0; sent < line.size();) {
    const ssize_t wrote = write(replies, line.data() + sent, line.size() - sent);
    if (wrote < 0) throw std::runtime_error("the supervisor is gone");
    sent += static_cast<std::size_t>(wrote);
  }
}

// One execution from allocation to download, for a tool that watches.
void execute(Workbench& bench, const Point& point) {
  const NvtxRange range(NvtxRange::Level::point, point.id, point.n);
  const Problem problem = bench.problem(point);
  Context context = bench.context(point);
  const NvtxRange repetition(NvtxRange::Level::repetition, "repetition", 0);
  solve(bench.make(problem), problem, context);
  bench.session().synchronize();
}

}  // namespace

std::unique_ptr<Session> open_session(const Job& job) {
#if LLOYD_CUDA
  if (find_version(job.points.at(0).version)->info.backend == Backend::cuda) {
    const std::vector<int>& team = job.device->team;
    std::vector<int> others = first_gpus(team, most_gpus(job.points));
    std::erase(others, job.device->index);
    std::unique_ptr<Session> session = make_cuda_session(job.device->index, std::move(others));
    // What several GPUs need once is part of the set-up of the process, too.
    std::set<std::size_t> numbers;  // of GPUs
    for (const Point& point : job.points)
      if (const auto gpus = static_cast<std::size_t>(point.tunables().gpus);
          gpus > 1 && gpus <= team.size())
        numbers.insert(gpus);
    for (const std::size_t gpus : numbers) cuda::prepare_team(std::span(team).first(gpus));
    return session;
  }
  if (job.device) return make_judged_cpu_session(job.device->index);
#else
  static_cast<void>(job);
#endif
  return make_cpu_session();
}

int run_worker(int replies, const OpenSession& open) {
  // The programs that a version starts do not get the descriptor: one that outlives the worker
  // would keep the supervisor waiting.
  fcntl(replies, F_SETFD, FD_CLOEXEC);
  std::string line;
  if (!std::getline(std::cin, line)) return 2;
  const Job job = job_from_json(nlohmann::json::parse(line));
  const NvtxRange range(NvtxRange::Level::experiment, job.experiment,
                        static_cast<std::int64_t>(job.points.size()));
  Inputs inputs(job);
  std::unique_ptr<Workbench> bench;
  while (std::getline(std::cin, line)) {
    const Request request = request_from_json(nlohmann::json::parse(line));
    Reply reply;
    try {
      const std::string& version = job.points.at(0).version;
      if (find_version(version) == nullptr) discover_external_versions(version);
      if (!bench) bench = std::make_unique<Workbench>(job, open, inputs);
      reply = answer(*bench, request, [&](const Reply& part) {
        send(part, replies);
        if (!std::getline(std::cin, line)) throw std::runtime_error("the supervisor is gone");
      });
    } catch (const std::exception& error) {
      // The device is absent, busy or refuses.
      reply = failed_reply(job, request, status::failed,
                           fmt::format("cannot start on the device: {}", error.what()));
    }
    send(reply, replies);
  }
  return 0;
}

int run_traced(const std::filesystem::path& job_file) {
  std::ifstream in(job_file);
  const Job job = job_from_json(nlohmann::json::parse(in));
  discover_external_versions();
  Inputs inputs(job);
  std::map<std::string, std::unique_ptr<Workbench>> benches;
  const auto execute_all = [&] {
    for (const Point& point : job.points) {
      auto& bench = benches[point.version];
      if (!bench) {
        Job own = job;
        std::erase_if(own.points,
                      [&](const Point& other) { return other.version != point.version; });
        bench = std::make_unique<Workbench>(std::move(own), open_session, inputs);
      }
      execute(*bench, point);
    }
  };
  execute_all();  // loads data and kernels and creates contexts, which is not to be captured
  const profiling::CaptureRange capture;
  const NvtxRange range(NvtxRange::Level::experiment, job.experiment,
                        static_cast<std::int64_t>(job.points.size()));
  execute_all();
  return 0;
}

}  // namespace lloyd
