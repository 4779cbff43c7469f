#include "experiments/run/start.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <chrono>
#include <functional>
#include <set>
#include <utility>

#include "data/sources/dataset.h"
#include "experiments/measure/external.h"
#include "experiments/process/mpi_launcher.h"
#include "experiments/process/program_files.h"
#include "experiments/record/environment.h"
#include "experiments/record/run_files.h"
#include "experiments/record/started_run.h"
#include "experiments/spec/shard.h"
#include "experiments/text/differences.h"
#include "experiments/text/text.h"

namespace lloyd {
namespace fs = std::filesystem;
namespace {

std::set<std::string> versions_of(const Spec& spec) {
  std::set<std::string> versions;
  for (const Point& point : spec.points) versions.insert(point.version);
  return versions;
}

nlohmann::json fingerprints(const Spec& spec) {
  nlohmann::json data = nlohmann::json::array();
  for (const data::NamedSource& each : spec.data) data.push_back(data::fingerprint(each.source));
  if (!spec.init_file.empty()) data.push_back(data::fingerprint(spec.init.file));
  if (data.size() == 1) data = data[0];
  nlohmann::json external = nlohmann::json::object();
  for (const std::string& version : versions_of(spec)) {
    std::optional<fs::path> file = external_file(version);
    if (find_version(version)->launched && fs::exists(mpi_launcher().program))
      file = mpi_launcher().program;
    if (!file) continue;
    const std::optional<std::string> fingerprint = file_fingerprint(*file);
    external[version] = fingerprint ? nlohmann::json(*fingerprint) : nlohmann::json(nullptr);
  }
  return {{"data", data}, {"binary", binary_fingerprint()}, {"external", external}};
}

/// The sources whose contents differ.
std::string changed(const nlohmann::json& was, const nlohmann::json& is, const Spec& spec) {
  if (!is.is_array() || !was.is_array() || was.size() != is.size())
    return spec.data[0].source.describe();
  std::vector<std::string> names;
  for (std::size_t i = 0; i < is.size(); ++i)
    if (was[i] != is[i])
      names.push_back(i < spec.data.size() ? spec.data[i].source.describe() : spec.init_file);
  return join(names);
}

void refuse_other_inputs(const RunDirectory& directory, const Spec& spec) {
  const nlohmann::json was = started_run(directory.path()).fingerprints, is = fingerprints(spec);
  if (was.at("data") != is.at("data"))
    throw RunDirectoryError(fmt::format(
        "{}: cannot resume: the data differ ({} has other contents now); start a new run",
        directory.path().string(), changed(was.at("data"), is.at("data"), spec)));
  if (was.at("binary") != is.at("binary"))
    throw RunDirectoryError(
        fmt::format("{}: cannot resume: the binary differs (run_experiment was rebuilt since); "
                    "start a new run",
                    directory.path().string()));
  if (was.at("external") != is.at("external"))
    throw RunDirectoryError(
        fmt::format("{}: cannot resume: the external versions differ ({}); start a new run",
                    directory.path().string(), differences(was.at("external"), is.at("external"))));
}

}  // namespace

std::string default_directory(const Spec& spec) {
  const std::string hash =
      fmt::format("{:08x}", std::hash<std::string>{}(json_text(spec.resolved()) + utc_now()));
  return fmt::format(
      "results/{}/{:%Y%m%dT%H%M%SZ}-{}", spec.name,
      fmt::gmtime(std::chrono::system_clock::to_time_t(std::chrono::system_clock::now())),
      hash.substr(0, 7));
}

RunDirectory create_run(const Spec& spec, const fs::path& folder) {
  RunDirectory directory =
      RunDirectory::create(folder.empty() ? fs::path(default_directory(spec)) : folder);
  directory.write(run_files::kSpec, spec.text);
  directory.write(run_files::kResolvedSpec, json_text(spec.resolved(), 1) + '\n');
  return directory;
}

void write_plan(RunDirectory& directory, const Spec& spec, const nlohmann::json& plan) {
  directory.write(run_files::kPlan, [&](std::ostream& out) {
    std::string text = json_text(plan, 1);
    text.resize(text.size() - 2);  // "\n}"
    out << text << ",\n \"points\": [";
    const char* separator = "\n  ";
    for (const Point& point : spec.points)
      out << std::exchange(separator, ",\n  ") << json_text(to_json(point));
    out << "\n ]\n}\n";
  });
}

RunDirectory start_run(const Spec& spec, const Overrides& overrides,
                       const std::vector<std::string>& save, const fs::path& folder) {
  RunDirectory directory = create_run(spec, folder);
  nlohmann::json parents =
      nlohmann::json::object();  // the parent of each version, for the ladder figure
  for (const std::string& version : versions_of(spec))
    parents[version] = find_version(version)->info.parent;
  nlohmann::json plan = {{"parents", parents},
                         {"fingerprints", fingerprints(spec)},
                         {"spec", fs::absolute(spec.path).string()},
                         {"files", spec.files()},
                         {"overrides", to_json(overrides)},
                         {"save", save}};
  if (spec.shard) plan["shard"] = to_string(*spec.shard);
  write_plan(directory, spec, plan);
  return directory;
}

void refuse_other_spec(const RunDirectory& directory, const Spec& spec,
                       const Overrides& overrides) {
  const nlohmann::json was = directory.read_json(run_files::kResolvedSpec), is = spec.resolved();
  if (was == is) return;
  const std::vector<std::string> options =
      changed_options(started_run(directory.path()).overrides, overrides);
  throw RunDirectoryError(
      fmt::format("{}: cannot resume: the spec differs ({}); {}start a new run",
                  directory.path().string(), differences(was, is),
                  options.empty() ? "" : fmt::format("leave {} out, or ", join(options, " and "))));
}

RunDirectory resume_run(const Spec& spec, const Overrides& overrides, const fs::path& folder) {
  RunDirectory directory = RunDirectory::open(folder);
  refuse_other_spec(directory, spec, overrides);
  refuse_other_inputs(directory, spec);
  return directory;
}

}  // namespace lloyd
