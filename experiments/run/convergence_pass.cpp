#include "experiments/measure/convergence.h"
#include "experiments/run/passes.h"
#include "experiments/run/run_pass.h"

namespace lloyd {
namespace {

template <typename T>
Row or_null(const std::optional<T>& value) {
  return value ? Row(*value) : Row(nullptr);
}

}  // namespace

Reply convergence_pass(Workbench& bench, const Request& request) {
  const Point& point = bench.job().points.at(request.point);
  Reply reply;
  run_pass(bench, reply, [&] {
    const Problem problem = bench.problem(point);
    Context context = bench.context(point);
    const std::unique_ptr<Reference> reference =
        bench.session().reference(problem.points, problem.n, problem.dim);
    for (const Iterate& each : follow(bench.make(), problem, context, *reference))
      reply.convergence.push_back({{"point", point.id},
                                   {"version", point.version},
                                   {"iteration", each.iteration},
                                   {"inertia", each.inertia},
                                   {"max_shift", or_null(each.max_shift)},
                                   {"changed_labels", or_null(each.changed_labels)}});
  });
  return reply;
}

}  // namespace lloyd
