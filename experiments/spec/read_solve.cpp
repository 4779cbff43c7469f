#include <fmt/format.h>

#include <limits>

#include "data/sources/dataset.h"
#include "experiments/spec/draft.h"
#include "kernels/core/limits.h"

namespace lloyd {
namespace {

void check_init(Draft& draft, const FileExtent& centroids) {
  for (const AxisValue& k : draft.axis_named("k").values)
    if (k.number != centroids.n)
      draft.errors.add(k.place,
                       fmt::format("k = {}, but {} has {} rows: init_file needs one row a cluster",
                                   k.number, centroids.name, with_commas(centroids.n)));
  for (const AxisValue& dim : draft.axis_named("dim").values)
    if (dim.number != centroids.dim && !draft.axis_named("dim").broken)
      draft.errors.add(dim.place,
                       fmt::format("dim = {}, but the rows of {} have {} values", dim.number,
                                   centroids.name, with_commas(centroids.dim)));
}

}  // namespace

void read_solve(Draft& draft, const Section& root) {
  const auto section = draft.yaml.section(
      root, "solve", {"iterations", "tolerance", "min_changes", "init", "init_file", "seed"});
  if (!section) return;
  draft.yaml.whole(*section, "iterations", 1, draft.spec.stop.iterations);
  draft.yaml.real(*section, "tolerance", Sign::not_negative, draft.spec.stop.tolerance);
  draft.yaml.whole(*section, "min_changes", 0, draft.spec.stop.min_changes,
                   std::numeric_limits<std::int64_t>::max());
  draft.yaml.choice(*section, "init", "init", data::init_methods(), draft.spec.init.method);
  draft.yaml.seed(*section, "seed", draft.spec.init.seed);

  const Entry* init = section->find("init");
  const Entry* file = section->find("init_file");
  if (file == nullptr && draft.spec.init.method == "file")
    draft.errors.add(init->place, "init: file needs init_file, a file with one row a cluster");
  if (file == nullptr) return;
  draft.yaml.text(*section, "init_file", draft.spec.init_file);
  if (draft.spec.init.method != "file")
    draft.errors.add(file->key_place, fmt::format("init_file needs init: file, but init is {}",
                                                  draft.spec.init.method));
  else if (file->value.IsScalar())
    if (const auto extent = read_extent(draft, draft.spec.init_file, *file, draft.spec.init.file))
      check_init(draft, *extent);
}

void read_measure(Draft& draft, const Section& root) {
  const auto section = draft.yaml.section(root, "measure",
                                          {"launches", "warmup", "repetitions", "max_noise",
                                           "max_seconds", "l2", "timeout", "verify", "throttled"});
  if (!section) return;
  std::string l2 = "warm", throttled = "keep";
  draft.yaml.whole(*section, "launches", 1, draft.spec.measure.launches);
  draft.yaml.whole(*section, "warmup", 0, draft.spec.measure.warmup);
  draft.yaml.whole(*section, "repetitions", 1, draft.spec.measure.repetitions);
  draft.yaml.real(*section, "max_noise", Sign::positive, draft.spec.measure.max_noise);
  draft.yaml.real(*section, "max_seconds", Sign::positive, draft.spec.measure.max_seconds);
  draft.yaml.choice(*section, "l2", "state of l2", {"warm", "cold"}, l2);
  draft.yaml.real(*section, "timeout", Sign::positive, draft.spec.measure.timeout);
  draft.yaml.flag(*section, "verify", draft.spec.measure.verify);
  draft.yaml.choice(*section, "throttled", "way with throttled samples", {"keep", "retry"},
                    throttled);
  draft.spec.measure.l2_cold = l2 == "cold";
  draft.spec.measure.retry_throttled = throttled == "retry";
}

}  // namespace lloyd
