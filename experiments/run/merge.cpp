#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <map>
#include <set>

#include "experiments/record/answers.h"
#include "experiments/record/environment_file.h"
#include "experiments/record/row_file.h"
#include "experiments/record/run_directory.h"
#include "experiments/record/run_files.h"
#include "experiments/record/run_folder.h"
#include "experiments/record/started_run.h"
#include "experiments/run/job.h"
#include "experiments/run/part_folders.h"
#include "experiments/run/parts.h"
#include "experiments/run/results.h"
#include "experiments/run/start.h"
#include "experiments/spec/shard.h"
#include "experiments/text/differences.h"
#include "experiments/text/text.h"

namespace lloyd {
namespace fs = std::filesystem;
namespace {

/// A part whose folder is locked, with the documents that say how it was run.
struct Part {
  PartFolder folder;
  RunDirectory directory;
  nlohmann::json resolved, plan;
  nlohmann::ordered_json environment;
};

std::string name_of(const Part& part) {
  return fmt::format("{} (part {})", part.folder.path.string(), to_string(part.folder.shard));
}

[[noreturn]] void refuse(const Part& a, const Part& b, const std::string& why) {
  throw RunDirectoryError(fmt::format("cannot merge {} and {}: {}", name_of(a), name_of(b), why));
}

RunDirectory open_part(const fs::path& folder) {
  try {
    return RunDirectory::open(folder);
  } catch (const RunDirectoryInUse&) {
    throw RunDirectoryError(
        fmt::format("{}: is still being written; wait until it ends", folder.string()));
  }
}

/// plan.json of a part, complete.
nlohmann::json plan_of(const RunDirectory& directory) {
  started_run(directory.path());  // throws if it does not say how the part was started
  nlohmann::json plan = directory.read_json(run_files::kPlan);
  const auto damaged = [&](const std::string& what) {
    return RunDirectoryError(fmt::format("{}: is damaged ({}); restore it, or run this part again",
                                         (directory.path() / run_files::kPlan).string(), what));
  };
  for (const char* key : {"parents", "points"})
    if (!plan.contains(key)) throw damaged(fmt::format("no {}", key));
  try {
    for (const nlohmann::json& point : plan.at("points")) point_from_json(point);
  } catch (const std::exception& error) {  // of nlohmann, or the precision is none
    throw damaged(error.what());
  }
  return plan;
}

/// The parts, opened. Each has to be there once.
std::vector<Part> open_parts(const std::vector<PartFolder>& folders) {
  std::vector<Part> parts;
  for (const PartFolder& folder : folders) {
    RunDirectory directory = open_part(folder.path);
    nlohmann::json resolved = directory.read_json(run_files::kResolvedSpec);
    nlohmann::json plan = plan_of(directory);
    nlohmann::ordered_json environment = read_environment(directory);
    parts.push_back({folder, std::move(directory), std::move(resolved), std::move(plan),
                     std::move(environment)});
    if (parts.size() > 1 && parts[parts.size() - 2].folder.shard == folder.shard)
      refuse(parts[parts.size() - 2], parts.back(), "they are the same part");
  }
  return parts;
}

/// Throws unless `part` is of the sweep of `first`.
void check_same_sweep(const Part& first, const Part& part) {
  if (part.resolved != first.resolved)
    refuse(first, part,
           fmt::format("the spec differs ({})", differences(first.resolved, part.resolved)));
  const nlohmann::json &was = first.plan.at("fingerprints"), &is = part.plan.at("fingerprints");
  if (was.at("data") != is.at("data")) refuse(first, part, "the data differ");
  if (was.at("binary") != is.at("binary"))
    refuse(first, part, "the binary differs (run_experiment was rebuilt, or is another build)");
  for (const auto& [version, fingerprint] : is.at("external").items())
    if (was.at("external").contains(version) && was.at("external").at(version) != fingerprint)
      refuse(first, part, fmt::format("the external version {} differs", version));
}

/// plan.json of the whole sweep, without its points.
nlohmann::json joined_plan(const std::vector<Part>& parts) {
  nlohmann::json plan = parts[0].plan;
  plan.erase("shard");
  plan.erase("points");
  plan["parts"] = nlohmann::json::array();
  for (const Part& part : parts) {
    plan["parents"].update(part.plan.at("parents"));
    plan["fingerprints"]["external"].update(part.plan.at("fingerprints").at("external"));
    plan["parts"].push_back({{"shard", to_string(part.folder.shard)},
                             {"folder", fs::absolute(part.folder.path).string()}});
  }
  return plan;
}

/// The spec of the whole sweep. Its points are those of the parts: where an axis has no values,
/// this machine may have other defaults.
Spec whole_spec(const Part& first, const std::map<std::string, nlohmann::json>& planned) {
  const StartedRun started = started_run(first.folder.path);
  Spec spec =
      load_spec(first.folder.path / run_files::kSpec, started.overrides, "", 0, started.files);
  std::map<std::string, Point> here;
  for (Point& point : spec.points) here.emplace(point.id, std::move(point));
  spec.points.clear();
  for (const auto& id : first.resolved.at("points").get<std::vector<std::string>>()) {
    if (const auto known = planned.find(id); known != planned.end())
      spec.points.push_back(point_from_json(known->second));
    else if (const auto same = here.find(id); same != here.end())
      spec.points.push_back(same->second);
    else
      throw RunDirectoryError(fmt::format(
          "{}: no part has the point {}, and the spec does not make it on this machine; merge all "
          "parts, or merge where they ran",
          name_of(first), id));
  }
  spec.path = started.spec;
  if (spec.resolved() != first.resolved)
    throw RunDirectoryError(fmt::format("{}: cannot merge: the spec differs from its points ({})",
                                        name_of(first),
                                        differences(first.resolved, spec.resolved())));
  return spec;
}

/// What the plans of the parts say of each point, by its id. Throws unless all parts are of one
/// sweep and have no point in common.
std::map<std::string, nlohmann::json> planned_points(const std::vector<Part>& parts) {
  std::map<std::string, nlohmann::json> planned;
  for (const Part& part : parts) {
    check_same_sweep(parts[0], part);
    for (const nlohmann::json& point : part.plan.at("points"))
      if (!planned.emplace(point.at("point").get<std::string>(), point).second)
        refuse(parts[0], part, fmt::format("both have {}", point.at("point").dump()));
  }
  return planned;
}

/// environment.json of the first part, with those of all parts in it.
nlohmann::ordered_json joined_environment(const std::vector<Part>& parts) {
  nlohmann::ordered_json environment = parts[0].environment;
  environment["parts"] = nlohmann::ordered_json::array();
  for (const Part& part : parts)
    environment["parts"].push_back(
        {{"shard", to_string(part.folder.shard)}, {"environment", part.environment}});
  return environment;
}

/// What to do about the points that are left. Empty if there are none.
std::string unfinished_text(const std::vector<SummaryLine>& lines, const std::string& merged) {
  const auto left = std::ranges::count_if(lines, [](const SummaryLine& line) {
    return line.status == kNotRun || line.status == kUnfinished;
  });
  if (left == 0) return "";
  return fmt::format(
      "{} left; run the parts to their ends and merge again, or go on here with: run_experiment "
      "--resume {}",
      left == 1 ? "1 point is" : fmt::format("{} points are", left), shell_word(merged));
}

void copy_rows(const std::vector<Part>& parts, RunDirectory& into) {
  for (const char* name : run_files::kRowFiles) {
    bool any = false;
    for (const Part& part : parts)
      part.directory.for_each_row(name, [&](const Row&) { any = true; });
    if (!any) continue;
    into.write(name, [&](std::ostream& out) {
      for (const Part& part : parts)
        part.directory.for_each_row(name, [&](const Row& row) { out << json_text(row) << '\n'; });
    });
  }
}

void copy_logs(const std::vector<Part>& parts, RunDirectory& into) {
  into.write(run_files::kLog, [&](std::ostream& out) {
    for (const Part& part : parts) {
      out << fmt::format("# part {}: {}\n", to_string(part.folder.shard),
                         part.folder.path.string());
      std::ifstream log(part.folder.path / run_files::kLog);
      if (log.peek() != std::ifstream::traits_type::eof()) out << log.rdbuf();
      out.clear();
    }
  });
}

void copy_answers(const std::vector<Part>& parts, const RunDirectory& into) {
  for (const Part& part : parts)
    if (const fs::path answers = answers_folder(part.folder.path); fs::is_directory(answers))
      fs::copy(answers, answers_folder(into.path()), fs::copy_options::recursive);
}

}  // namespace

int merge_parts(const std::vector<fs::path>& folders, const RunOptions& options) {
  const std::vector<PartFolder> found = find_parts(folders);
  if (found.empty())
    throw RunDirectoryError(fmt::format("{}: no part has been started", folders[0].string()));
  const std::vector<Part> parts = open_parts(found);
  for (const Part& part : parts)
    if (std::error_code none; fs::equivalent(part.folder.path, options.out, none))
      throw RunDirectoryError(
          fmt::format("{}: is one of the parts; choose another --out", options.out.string()));
  const Spec spec = whole_spec(parts[0], planned_points(parts));

  RunDirectory into = create_run(spec, options.out);
  copy_rows(parts, into);
  copy_logs(parts, into);
  copy_answers(parts, into);
  const nlohmann::ordered_json environment = joined_environment(parts);
  into.write(run_files::kEnvironment, json_text(environment, 1) + '\n');
  write_plan(into, spec, joined_plan(parts));

  const Results results = write_results(into, spec, environment);
  std::vector<std::string> missing;
  for (const int index : missing_parts(found))
    missing.push_back(to_string(Shard{index, found[0].shard.count}));
  if (!missing.empty()) std::cerr << fmt::format("missing parts: {}\n", join(missing));
  const std::string where = into.path().string();
  return print_results(results, where, unfinished_text(results.lines, where), {}, options);
}

}  // namespace lloyd
