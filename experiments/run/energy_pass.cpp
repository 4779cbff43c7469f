#include "experiments/measure/energy.h"
#include "experiments/run/passes.h"
#include "experiments/run/run_pass.h"

namespace lloyd {

Reply energy_pass(Workbench& bench, const Request& request) {
  const Point& point = bench.job().points.at(request.point);
  Reply reply;
  run_pass(bench, reply, [&] {
    const std::unique_ptr<EnergyCounter> counter =
        bench.on_gpu() && bench.nvml() ? gpu_energy(bench.nvml(), bench.gpus(point), reply.reason)
        : bench.on_gpu()               ? nullptr
                                       : cpu_energy(powercap_directory(), reply.reason);
    if (!counter) throw Unsupported(reply.reason.empty() ? bench.no_nvml() : reply.reason);
    const Problem problem = bench.problem(point);
    Context context = bench.context(point);
    const std::unique_ptr<Version> version = bench.make(problem)();
    version->prepare(problem, context);
    const auto solve = [&] {
      version->run(context);
      bench.session().synchronize();
    };
    solve();  // loads the kernels and warms the caches
    const SolveEnergy energy = solve_energy(*counter, solve);
    if (!energy.joules) throw Unsupported(energy.why_not);
    reply.energy_j = energy.joules;
  });
  return reply;
}

}  // namespace lloyd
