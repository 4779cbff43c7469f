#include <fmt/format.h>

#include "experiments/measure/profile.h"
#include "experiments/measure/timing.h"
#include "experiments/run/passes.h"
#include "experiments/run/run_pass.h"
#include "kernels/core/status.h"

namespace lloyd {

using profiling::NvtxRange;

Reply profiling_pass(Workbench& bench, const Request& request) {
  const Job& job = bench.job();
  const Point& point = job.points.at(request.point);
  const NvtxRange range(NvtxRange::Level::point, point.id, point.n);
  Reply reply;
  run_pass(bench, reply, [&] {
    if (const int gpus = point.all_gpus(); job.pass == Pass::counters && gpus > 1)
      throw profiling::Unavailable(
          fmt::format("CUPTI's range profiler counts on one GPU, this point uses {}", gpus));
    const Point run = profiled_point(job.pass, point);
    Problem problem = bench.problem(run);
    problem.stop.iterations = profiled_iterations(job.pass, bench.version().backend, job.stop);
    const auto solve =
        profiled_solve(bench.make(problem), problem, bench.context(run), bench.session());
    profiling::Profile taken =
        take_profile(job.pass, job.profile, load_seconds(job.measure.warm_seconds, 0), *solve,
                     bench.on_gpu() ? *job.device : DeviceLimits{});
    for (Row& row : taken.counters) {
      if (run.n != point.n) row["simulated_n"] = run.n;
      reply.counters.push_back(counter_row(point, job.pass, row));
    }
    for (const Row& row : taken.events) reply.events.push_back(event_row(point, row));
  });
  if (reply.status != status::ok)
    reply.counters = missing_counters(point, job.pass, job.profile, reply.status, reply.reason);
  return reply;
}

}  // namespace lloyd
