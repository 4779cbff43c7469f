#include "experiments/measure/convergence.h"
#include "experiments/record/rows.h"
#include "experiments/run/passes.h"
#include "experiments/run/run_pass.h"

namespace lloyd {

Reply convergence_pass(Workbench& bench, const Request& request) {
  Reply reply;
  run_pass(bench, reply, [&] {
    std::unique_ptr<Reference> reference;
    for (int restart = 0; restart < bench.job().restarts; ++restart) {
      const Point point = point_of(bench.job(), {request.point, {}, {0, restart}, {}, {}});
      const Problem problem = bench.problem(point);
      Context context = bench.context(point);
      if (!reference) reference = reference_of(bench.session(), problem);
      for (const Iterate& each : follow(bench.make(problem), problem, context, *reference))
        reply.convergence.push_back({{"point", point.id},
                                     {"version", point.version},
                                     {"restart", or_null(point.restart)},
                                     {"iteration", each.iteration},
                                     {"inertia", each.inertia},
                                     {"max_shift", or_null(each.max_shift)},
                                     {"changed_labels", or_null(each.changed_labels)}});
    }
  });
  return reply;
}

}  // namespace lloyd
