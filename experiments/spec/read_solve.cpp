#include <fmt/format.h>

#include <algorithm>

#include "data/sources/dataset.h"
#include "experiments/spec/draft.h"
#include "kernels/core/limits.h"

namespace lloyd {
namespace {

void check_init(Draft& draft, const FileExtent& centroids) {
  for (const AxisValue& k : draft.axis_named("k").values)
    if (k.number != centroids.n)
      draft.errors.add(
          k.place, fmt::format("k = {}, but {} has {} rows: init_file needs one row per cluster",
                               k.number, centroids.name, with_commas(centroids.n)));
  std::vector<AxisValue> dims = draft.axis_named("dim").values;
  if (!draft.axis_named("dim").listed)
    for (const AxisValue& data : draft.axis_named("data").values) {
      const auto& own = draft.request.sources.at(static_cast<std::size_t>(data.number)).values;
      if (const auto dim = own.find("dim"); dim != own.end()) dims.push_back(dim->second);
    }
  for (const AxisValue& dim : dims)
    if (dim.number != centroids.dim && !draft.axis_named("dim").broken)
      draft.errors.add(dim.place,
                       fmt::format("dim = {}, but the rows of {} have {} values", dim.number,
                                   centroids.name, with_commas(centroids.dim)));
}

}  // namespace

void fill_input_axes(Draft& draft) {
  const Spec& spec = draft.spec;
  const auto fill = [&](const char* name, std::uint64_t number, const std::string& text) {
    if (Axis& axis = draft.axis_named(name); !axis.listed)
      axis.values = {{static_cast<std::int64_t>(number), draft.request.axes_place, text}};
  };
  fill("init", 0, spec.init.method);
  fill("init_seed", spec.init.seed, std::to_string(spec.init.seed));
  bool all_files = true;
  for (const AxisValue& data : draft.axis_named("data").values) {
    const auto at = static_cast<std::size_t>(data.number);
    const std::uint64_t seed = spec.data.at(at).source.seed;
    fill("data_seed", seed, std::to_string(seed));  // stands in for those of each source
    draft.request.sources.at(at).values["data_seed"] = {
        static_cast<std::int64_t>(seed), draft.request.axes_place, std::to_string(seed)};
    all_files &= draft.origins.at(at).is_file;
  }
  if (const Axis& init = draft.axis_named("init"); init.listed) {
    const auto file = std::ranges::find(init.values, "file", &AxisValue::text);
    if (file != init.values.end() && spec.init_file.empty())
      draft.errors.add(file->place,
                       "init = file needs a file with one row per cluster, as in solve: {init: "
                       "file, init_file: centroids.csv}");
    if (file == init.values.end() && !spec.init_file.empty())
      draft.errors.add(init.values[0].place,
                       fmt::format("init = {} never reads solve.init_file ({}): add file to the "
                                   "axis, or leave init_file out",
                                   init.values[0].text, spec.init_file));
  }
  if (spec.restarts > 1)
    for (const AxisValue& value : draft.axis_named("init").values)
      if (value.text == "file")
        draft.errors.add(draft.restarts_place,
                         fmt::format("restarts = {} needs initial centroids that are drawn from a "
                                     "seed, but init is file; leave restarts out",
                                     spec.restarts));
  if (const Axis& seeds = draft.axis_named("data_seed"); seeds.listed && all_files)
    for (const AxisValue& value : seeds.values)
      draft.errors.add(value.place,
                       fmt::format("data_seed = {} needs a generator, but the points come from {}; "
                                   "leave data_seed out",
                                   value.text, spec.data[0].file));
}

void check_batches(Draft& draft) {
  const Stop& stop = draft.spec.stop;
  for (const AxisValue& batch : draft.axis_named("batch").values) {
    if (batch.number == 1) continue;
    if (stop.tolerance > 0 || stop.min_changes > 0)
      draft.errors.add(
          batch.place,
          fmt::format(
              "batch = {} needs a fixed number of iterations: the problems of a batch would "
              "stop at different ones; leave out {}",
              batch.text, stop.tolerance > 0 ? "tolerance" : "min_changes"));
    if (draft.spec.profile.convergence)
      draft.errors.add(batch.place, fmt::format("batch = {}: convergence follows a single problem; "
                                                "leave it out of profile and figures",
                                                batch.text));
  }
}

/// The distance may stand at the top of the spec or in its section.
void read_distance(Draft& draft, const Section& root, const std::optional<Section>& solve) {
  std::string distance = "euclidean";
  draft.yaml.read(root, "distance", distance);
  if (solve) draft.yaml.read(*solve, "distance", distance);
  draft.spec.init.file.unit_length = distance == "cosine";
  for (data::NamedSource& each : draft.spec.data) each.source.unit_length = distance == "cosine";
  if (const Entry* twice = solve ? solve->find("distance") : nullptr;
      twice && root.find("distance"))
    draft.errors.add(twice->key_place, "distance is given at the top of the spec, too; keep one");
}

void read_solve(Draft& draft, const Section& root) {
  const auto section = draft.yaml.section(root, "solve");
  read_distance(draft, root, section);
  if (!section) return;
  draft.yaml.read(*section, "iterations", draft.spec.stop.iterations);
  draft.yaml.read(*section, "tolerance", draft.spec.stop.tolerance);
  draft.yaml.read(*section, "min_changes", draft.spec.stop.min_changes);
  draft.yaml.read(*section, "init", draft.spec.init.method);
  draft.yaml.read(*section, "seed", draft.spec.init.seed);

  draft.yaml.read(*section, "restarts", draft.spec.restarts);
  if (const Entry* restarts = section->find("restarts")) draft.restarts_place = restarts->place;

  const Entry* init = section->find("init");
  const Entry* file = section->find("init_file");
  if (file == nullptr && draft.spec.init.method == "file")
    draft.errors.add(init->place, "init: file needs init_file, a file with one row per cluster");
  if (file == nullptr) return;
  draft.yaml.read(*section, "init_file", draft.spec.init_file);
  if (draft.spec.init.method != "file")
    draft.errors.add(file->key_place, fmt::format("solve.init_file needs solve.init: file, not {}",
                                                  draft.spec.init.method));
  else if (file->value.IsScalar())
    if (const auto extent = read_extent(draft, draft.spec.init_file, *file, draft.spec.init.file))
      check_init(draft, *extent);
}

void read_measure(Draft& draft, const Section& root) {
  const auto section = draft.yaml.section(root, "measure");
  if (!section) return;
  Measure& measure = draft.spec.measure;
  std::string l2 = "warm", throttled = "keep";
  draft.yaml.read(*section, "launches", measure.launches);
  draft.yaml.read(*section, "warmup", measure.warmup);
  draft.yaml.read(*section, "repetitions", measure.repetitions);
  draft.yaml.read(*section, "max_noise", measure.max_noise);
  draft.yaml.read(*section, "max_seconds", measure.max_seconds);
  draft.yaml.read(*section, "l2", l2);
  draft.yaml.read(*section, "timeout", measure.timeout);
  draft.yaml.read(*section, "throttled", throttled);
  draft.yaml.read(*section, "warm_seconds", measure.warm_seconds);
  const Entry* verify = section->find("verify");
  if (verify != nullptr && verify->value.IsMap()) {
    if (const auto how = draft.yaml.section(*section, "verify")) {
      draft.yaml.read(*how, "sample", measure.verify_sample);
      if (how->find("sample") == nullptr)
        draft.errors.add(verify->place,
                         "measure.verify needs sample, how many points' labels to verify");
    }
  } else {
    draft.yaml.read(*section, "verify", measure.verify);
  }
  if (verify != nullptr && !measure.verify && draft.spec.baseline == kBestCpu)
    draft.errors.add(verify->place,
                     fmt::format("verify: false leaves no version that baseline '{}' may take",
                                 draft.spec.baseline));
  measure.l2_cold = l2 == "cold";
  measure.retry_throttled = throttled == "retry";
}

}  // namespace lloyd
