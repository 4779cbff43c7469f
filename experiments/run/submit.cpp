#include "experiments/run/submit.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <optional>
#include <regex>

#include "experiments/measure/session.h"
#include "experiments/process/child_process.h"
#include "experiments/process/plain_folder.h"
#include "experiments/record/environment.h"
#include "experiments/record/run_folder.h"
#include "experiments/run/start.h"
#include "experiments/spec/shard.h"
#include "experiments/text/text.h"

namespace lloyd {
namespace fs = std::filesystem;
namespace {

// Slurm's MaxArraySize is 1001 unless a cluster sets it, and a person reads a table of the parts.
constexpr std::size_t kMostParts = 100;

std::string quoted(const std::string& word) {
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

/// The lines of the head, which have to be #SBATCH lines or comments.
std::vector<std::string> head_lines(const fs::path& file) {
  std::vector<std::string> lines;
  if (file.empty()) return lines;
  std::ifstream in(file);
  if (!in || fs::is_directory(file))
    throw NotSubmitted(fmt::format("--sbatch: {} cannot be read", file.string()));
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    if (!line.starts_with("#"))
      throw NotSubmitted(fmt::format("--sbatch: {}:{}: is not an #SBATCH line: {}", file.string(),
                                     number, in_quotes(line)));
    lines.push_back(std::move(line));
  }
  return lines;
}

/// The number of parts that the head asks for: #SBATCH --array=1-8, or 1-8%2 for two at a time.
std::optional<int> asked_parts(const std::vector<std::string>& head) {
  static const std::regex any(R"(#SBATCH\s+(?:--array[=\s]|-a\s*)\s*(\S+).*)"),
      from_one(R"(1-(\d{1,6})(?:%\d+)?)");
  std::optional<int> count;
  for (const std::string& line : head) {
    std::smatch match;
    if (!std::regex_match(line, match, any)) continue;
    const std::string tasks = match[1];
    if (!std::regex_match(tasks, match, from_one) || std::stoi(match[1]) < 1)
      throw NotSubmitted(fmt::format(
          "--sbatch: --array={}: the tasks are the parts, so write them as 1-8 or 1-8%2", tasks));
    count = std::stoi(match[1]);
  }
  return count;
}

int count_parts(const Spec& spec, const std::vector<std::string>& head) {
  const std::size_t problems = problems_of(spec);
  const std::optional<int> asked = asked_parts(head);
  if (asked && static_cast<std::size_t>(*asked) > problems)
    throw NotSubmitted(
        fmt::format("--sbatch: --array asks for {} parts, but the sweep has {}, and the points of "
                    "a problem stay together",
                    *asked, counted(problems, "problem")));
  return asked ? *asked : static_cast<int>(std::min(problems, kMostParts));
}

/// A path in an #SBATCH line, where % begins a replacement of Slurm's.
std::string sbatch_path(const fs::path& path) {
  std::string text;
  for (const char c : path.string()) text += c == '%' ? "%%" : std::string(1, c);
  return text;
}

std::string script(const Spec& spec, const Submission& submission, const fs::path& folder,
                   int parts, const std::vector<std::string>& head) {
  const std::string original = quoted(fs::absolute(spec.path).string());
  std::string text = fmt::format(
      "#!/bin/bash\n"
      "#SBATCH --job-name={}\n"
      "#SBATCH --output=\"{}/part-%a.log\"\n"
      "#SBATCH --open-mode=append\n"
      "#SBATCH --requeue\n"
      "#SBATCH --array=1-{}\n",
      spec.name, sbatch_path(folder), parts);
  for (const std::string& line : head) text += line + '\n';
  text += fmt::format(
      "# A task runs its part, or goes on with it if it was requeued.\n"
      "cmp -s {0} {1} || {{ echo {0}: was edited after the sweep was submitted >&2; exit 2; }}\n"
      "exec {2} run {0} --shard \"$SLURM_ARRAY_TASK_ID/{3}\" \\\n"
      "  --resume {4}/part-\"$SLURM_ARRAY_TASK_ID\" --no-progress",
      original, quoted((folder / "spec.yaml").string()), quoted(program_path()), parts,
      quoted(folder.string()));
  for (const std::string& option : submission.options) text += ' ' + quoted(option);
  return text + '\n';
}

/// The number that Slurm gives the job.
std::string sbatch(const fs::path& job) {
  ChildProcess process({"sbatch", "--parsable", job.string()}, own_variables(), STDERR_FILENO);
  process.end_input();
  constexpr std::size_t kLongest = 1000;
  const std::string line = process.line(kLongest).value_or("");
  while (process.line(kLongest)) {
  }
  constexpr double kOneMinute = 60e3;
  const std::optional<int> status = process.wait(now_ms() + kOneMinute);
  if (!status || !WIFEXITED(*status) || WEXITSTATUS(*status) != 0) {
    const bool absent = status && WIFEXITED(*status) && WEXITSTATUS(*status) == 127;
    throw NotSubmitted(fmt::format("--submit: {}; the job is written, submit it with: sbatch {}",
                                   absent ? "there is no sbatch here" : "sbatch failed",
                                   job.string()));
  }
  return line.substr(0, line.find(';'));  // the job, then perhaps ";cluster"
}

}  // namespace

int submit_to_slurm(const Spec& spec, const Submission& submission) {
  const std::vector<std::string> head = head_lines(submission.head);
  const int parts = count_parts(spec, head);
  const fs::path folder =
      fs::absolute(submission.out.empty() ? fs::path(default_directory(spec)) : submission.out);
  std::error_code none;
  if (fs::exists(folder) && !fs::is_empty(folder, none))
    throw RunDirectoryError(fmt::format(
        "{}: is not empty, and nothing is written over; choose another --out", folder.string()));
  make_folder(folder);
  const PlainFolder files(folder);
  const fs::path job = folder / "job.sh";
  files.replace("spec.yaml", [&](std::ostream& out) { out << spec.text; });
  files.replace("job.sh",
                [&](std::ostream& out) { out << script(spec, submission, folder, parts, head); });
  const std::string number = sbatch(job);
  files.replace("submit.json", [&](std::ostream& out) {
    out << json_text(nlohmann::json{{"job", number}, {"parts", parts}}, 1) << '\n';
  });
  if (submission.json) {
    std::cout << json_text(
                     nlohmann::ordered_json{
                         {"results", folder.string()}, {"job", number}, {"parts", parts}},
                     1)
              << '\n';
    return 0;
  }
  std::cerr << fmt::format("job {}: {} in {}; see: run_experiment --status {}\n",
                           for_terminal(number), counted(spec.points.size(), "point"),
                           counted(static_cast<std::size_t>(parts), "part"),
                           for_terminal(folder.string()));
  std::cout << "results: " << for_terminal(folder.string()) << '\n';
  return 0;
}

}  // namespace lloyd
