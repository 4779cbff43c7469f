#include "experiments/spec/spec.h"

#include <algorithm>
#include <utility>

#include "experiments/spec/draft.h"
#include "experiments/spec/yaml_document.h"
#include "experiments/text/or_null.h"
#include "experiments/text/text.h"

namespace lloyd {
namespace {

bool sizes_follow_workers(const std::vector<std::string>& zipped) {
  const auto has = [&](std::string_view axis) { return std::ranges::count(zipped, axis) > 0; };
  return has("n") && (has("threads") || has("processes") || has("gpus"));
}

void read_sections(Draft& draft, const Section& root) {
  read_identity(draft, root);
  read_versions(draft, root);
  read_data(draft, root);
  read_axes(draft, root);
  read_exclude(draft, root);
  read_solve(draft, root);
  read_measure(draft, root);
  read_profile(draft, root);
  read_figures(draft, root);
  apply_options(draft);
  fill_input_axes(draft);
  check_batches(draft);
  if (draft.can_plan) {
    draft.spec.points = make_plan(draft.request, draft.errors);
    if (draft.spec.points.empty() && draft.errors.count() == 0)
      draft.errors.add(root.find("exclude")->key_place,
                       "nothing left to run: exclude leaves out every point");
  }
  draft.throw_if_wrong();
  draft.spec.unread_axes = unread_axes(draft.request);
  draft.spec.weak_scaling = draft.axis_named("n").values.size() > 1 &&
                            std::ranges::any_of(draft.request.zips, sizes_follow_workers);
  keep_chosen(draft);
}

nlohmann::json delimiter_json(char c) {
  if (c == '\0') return nullptr;
  return c == '\t' ? "tab" : std::string(1, c);
}

nlohmann::json source_json(const data::Source& source, const std::string& file) {
  if (!source.generator.empty())
    return {
        {"generator", source.generator},
        {"seed", source.seed},
        {"range", source.low ? nlohmann::json{*source.low, *source.high} : nlohmann::json(nullptr)},
        {"centers", or_null<nlohmann::json>(source.centers)},
        {"sigma", or_null<nlohmann::json>(source.sigma)}};
  const auto column = [](const std::optional<data::Column>& value) {
    return value ? to_json(*value) : nlohmann::json(nullptr);
  };
  nlohmann::json columns = nullptr;
  for (const data::Column& each : source.columns) columns.push_back(to_json(each));
  return {{"file", file},
          {"format", or_null<nlohmann::json>(source.format)},
          {"header", or_null<nlohmann::json>(source.header)},
          {"delimiter", delimiter_json(source.delimiter)},
          {"decimal", std::string(1, source.decimal)},
          {"index_column", column(source.index_column)},
          {"label_column", column(source.label_column)},
          {"columns", columns},
          {"array", or_null<nlohmann::json>(source.array)},
          {"mapped", source.mapped}};
}

nlohmann::json data_json(const data::Sources& sources) {
  if (sources.size() == 1 && sources[0].name.empty())
    return source_json(sources[0].source, sources[0].file);
  nlohmann::json list = nlohmann::json::array();
  for (const data::NamedSource& each : sources) {
    list.push_back(source_json(each.source, each.file));
    list.back()["name"] = each.name;
  }
  return list;
}

}  // namespace

SpecError::SpecError(std::vector<std::string> all)
    : std::runtime_error(join(all, "\n")), errors(std::move(all)) {}

nlohmann::json to_json(const data::Column& column) {
  return std::visit([](const auto& value) { return nlohmann::json(value); }, column);
}

nlohmann::json Spec::resolved() const {
  nlohmann::json ids = sweep;  // all parts of a sweep have one resolved spec
  if (!shard)
    for (const Point& point : points) ids.push_back(point.id);
  return {{"name", name},
          {"title", title},
          {"baseline", or_null<nlohmann::json>(baseline)},
          {"data", data_json(data)},
          {"solve",
           {{"iterations", stop.iterations},
            {"tolerance", stop.tolerance},
            {"min_changes", stop.min_changes},
            {"distance", data[0].source.unit_length ? "cosine" : "euclidean"},
            {"init", init.method},
            {"init_file", or_null<nlohmann::json>(init_file)},
            {"seed", init.seed},
            {"restarts", restarts}}},
          {"measure",
           {{"launches", measure.launches},
            {"warmup", measure.warmup},
            {"repetitions", measure.repetitions},
            {"max_noise", measure.max_noise},
            {"max_seconds", measure.max_seconds},
            {"l2", measure.l2_cold ? "cold" : "warm"},
            {"timeout", measure.timeout},
            {"verify", measure.verify_sample > 0 ? nlohmann::json{{"sample", measure.verify_sample}}
                                                 : nlohmann::json(measure.verify)},
            {"throttled", measure.retry_throttled ? "retry" : "keep"},
            {"warm_seconds", measure.warm_seconds}}},
          {"profile",
           {{"nvtx", profile.nvtx},
            {"counters", profile.counters},
            {"timeline", profile.timeline},
            {"cpu", profile.cpu},
            {"convergence", profile.convergence}}},
          {"shuffle", shuffle},
          {"shuffle_seed", shuffle_seed},
          {"figures", figures},
          {"points", ids}};
}

FoundFiles Spec::files() const {
  FoundFiles files;
  for (const data::NamedSource& each : data)
    if (!each.file.empty()) files[each.file] = each.source.file.string();
  if (!init_file.empty()) files[init_file] = init.file.file.string();
  return files;
}

Spec load_spec(const std::filesystem::path& path, const Overrides& overrides,
               const std::string& typed, int device, const FoundFiles& found) {
  Draft draft(path, overrides, typed, device, found);
  draft.spec.text = read_spec_text(path, draft.shown);
  if (const auto document = parse_document(draft.spec.text, draft.errors))
    if (const auto root = draft.yaml.section(*document, place_of(*document), "", key_names("")))
      read_sections(draft, *root);
  draft.throw_if_wrong();
  return std::move(draft.spec);
}

}  // namespace lloyd
