#include "experiments/run/submit.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <iostream>
#include <optional>
#include <regex>
#include <string_view>
#include <system_error>
#include <utility>

#include "experiments/process/child_process.h"
#include "experiments/process/clock.h"
#include "experiments/process/plain_folder.h"
#include "experiments/process/program_files.h"
#include "experiments/record/environment.h"
#include "experiments/record/run_files.h"
#include "experiments/record/run_folder.h"
#include "experiments/run/start.h"
#include "experiments/spec/shard.h"
#include "experiments/text/text.h"
#include "profiling/program.h"

namespace lloyd {
namespace fs = std::filesystem;
namespace {

// Slurm's MaxArraySize is 1001 unless a cluster sets it, and a person reads a table of the parts.
constexpr std::size_t kMostParts = 100;

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

/// The words of an #SBATCH line, read as sbatch reads them: quotes and backslashes work as in a
/// shell, and # begins a comment. Other comments have none.
std::vector<std::string> sbatch_words(const std::string& line) {
  constexpr std::string_view kBegin = "#SBATCH";
  std::vector<std::string> words;
  if (!line.starts_with(kBegin)) return words;
  char quote = 0;
  bool inside = false;
  for (std::size_t i = kBegin.size(); i < line.size(); ++i) {
    const char c = line[i];
    const bool bare = quote == 0;
    if (bare && c == '#') break;
    if (bare && std::isspace(static_cast<unsigned char>(c)) != 0) {
      inside = false;
      continue;
    }
    if (!inside) words.emplace_back();
    inside = true;
    if (c == '\\' && i + 1 < line.size())
      words.back() += line[++i];
    else if (c == quote)
      quote = 0;
    else if (bare && (c == '"' || c == '\''))
      quote = c;
    else
      words.back() += c;
  }
  return words;
}

/// The value of --array or -a in the head. The last one counts, as for sbatch.
std::optional<std::string> asked_tasks(const std::vector<std::string>& head) {
  std::optional<std::string> tasks;
  for (const std::string& line : head) {
    const std::vector<std::string> words = sbatch_words(line);
    for (std::size_t i = 0; i < words.size(); ++i) {
      const std::size_t equals = words[i].find('=');
      const std::string name = words[i].substr(0, equals);
      // sbatch accepts the beginning of an option's name. No other option begins with --ar.
      const bool is_long = name.size() >= 4 && std::string_view("--array").starts_with(name);
      const bool is_short = words[i].starts_with("-a");
      if (!is_long && !is_short) continue;
      if (is_long && equals != std::string::npos)
        tasks = words[i].substr(equals + 1);
      else if (is_short && words[i].size() > 2)
        tasks = words[i].substr(2);
      else
        tasks = i + 1 < words.size() ? words[++i] : "";
    }
  }
  return tasks;
}

struct Tasks {
  int parts = 0;
  std::string array;  // as --array has it: 1-8, or 1-8%2 for two at a time
};

/// The tasks that the head asks for, or else one for each problem.
Tasks tasks_of(const Spec& spec, const std::vector<std::string>& head) {
  static const std::regex from_one(R"(1-(\d{1,6})(?:%\d+)?)");
  const std::optional<std::string> asked = asked_tasks(head);
  if (!asked) {
    const std::size_t parts = std::min(problems_of(spec), kMostParts);
    return {static_cast<int>(parts), fmt::format("1-{}", parts)};
  }
  std::smatch match;
  if (!std::regex_match(*asked, match, from_one) || std::stoi(match[1]) < 1)
    throw NotSubmitted(fmt::format(
        "--sbatch: --array={}: the tasks are the parts, so write them as 1-8 or 1-8%2", *asked));
  const int parts = std::stoi(match[1]);
  if (static_cast<std::size_t>(parts) > spec.points.size())
    throw NotSubmitted(
        fmt::format("--sbatch: --array asks for {} parts, but {}", parts, why_no_more_parts(spec)));
  return {parts, *asked};
}

/// A path in an #SBATCH line, where % begins a replacement of Slurm's.
std::string sbatch_path(const fs::path& path) {
  std::string text;
  for (const char c : path.string()) text += c == '%' ? "%%" : std::string(1, c);
  return text;
}

std::string script(const Spec& spec, const Submission& submission, const fs::path& folder,
                   const Tasks& tasks, const std::vector<std::string>& head) {
  const std::string original = shell_word(fs::absolute(spec.path).string());
  std::string text = fmt::format(
      "#!/bin/bash\n"
      "#SBATCH --job-name={}\n"
      "#SBATCH --output=\"{}/{}\"\n"
      "#SBATCH --open-mode=append\n"
      "#SBATCH --requeue\n",
      spec.name, sbatch_path(folder), part_log("%a"));
  for (const std::string& line : head) text += line + '\n';
  // The last --array counts, so there are as many tasks as parts, whatever the head says.
  text += fmt::format("#SBATCH --array={}\n", tasks.array);
  text += fmt::format(
      "# A task runs its part, or goes on with it if it was requeued.\n"
      "echo \"{5}$SLURM_ARRAY_TASK_ID/{3}, job $SLURM_JOB_ID on $HOSTNAME\"\n"
      "[ -r {0} ] || {{ echo {0}: cannot be read on \"$HOSTNAME\", but every node has to see it "
      ">&2; exit 2; }}\n"
      "cmp -s {0} {1} || {{ echo {0}: was edited after the sweep was submitted >&2; exit 2; }}\n"
      "exec {2} run {0} --shard \"$SLURM_ARRAY_TASK_ID/{3}\" \\\n"
      "  --resume {4}/part-\"$SLURM_ARRAY_TASK_ID\" --no-progress",
      original, shell_word((folder / run_files::kSpec).string()), shell_word(program_path()),
      tasks.parts, shell_word(folder.string()), kTaskBegins);
  for (const std::string& option : submission.options) text += ' ' + shell_word(option);
  return text + '\n';
}

/// The folder of a submission. Unless it is kept, what was written and made for it is removed.
class SubmissionFolder {
 public:
  /// Makes the folder. Throws RunDirectoryError if it cannot be made, or is not empty.
  explicit SubmissionFolder(fs::path path) : path_(std::move(path)) {
    try {
      if (fs::is_directory(path_) && !fs::is_empty(path_))
        throw RunDirectoryError(fmt::format(
            "{}: is not empty, and nothing is written over; choose another --out", path_.string()));
      for (fs::path at = path_; !fs::exists(at); at = at.parent_path()) made_.push_back(at);
      make_folder(path_);
    } catch (const std::system_error& error) {
      throw RunDirectoryError(
          fmt::format("{}: cannot make the folder ({}); choose another with --out", path_.string(),
                      error.code().message()));
    }
  }
  SubmissionFolder(const SubmissionFolder&) = delete;
  ~SubmissionFolder() {
    if (kept_) return;
    std::error_code none;  // the reason why nothing is kept is reported
    for (const std::string& name : written_) fs::remove(path_ / name, none);
    for (const fs::path& folder : made_) fs::remove(folder, none);
  }

  const fs::path& path() const { return path_; }
  void write(const std::string& name, const std::string& text) {
    try {
      PlainFolder(path_).replace(name, [&](std::ostream& out) { out << text; });
    } catch (const std::system_error& error) {
      throw RunDirectoryError(fmt::format("{}: cannot write there ({}); choose another with --out",
                                          path_.string(), error.code().message()));
    }
    written_.push_back(name);
  }
  void keep() { kept_ = true; }

 private:
  fs::path path_;
  std::vector<fs::path> made_;  // innermost first
  std::vector<std::string> written_;
  bool kept_ = false;
};

/// Submits the job. Returns the number that Slurm gives it.
std::string sbatch(const fs::path& job, const Tasks& tasks, const fs::path& head) {
  // An option outranks SBATCH_ARRAY_INX, which outranks the line of the script.
  ChildProcess process({"sbatch", "--parsable", "--array=" + tasks.array, job.string()},
                       own_variables(), STDERR_FILENO);
  process.end_input();
  constexpr std::size_t kLongest = 1000;
  const std::string line = process.line(kLongest).value_or("");
  while (process.line(kLongest)) {
  }
  constexpr double kOneMinute = 60e3;
  const std::optional<int> status = process.wait(now_ms() + kOneMinute);
  if (!status || !WIFEXITED(*status) || WEXITSTATUS(*status) != 0)
    throw NotSubmitted(fmt::format(
        "--submit: sbatch failed, so nothing is kept; {} and submit again",
        head.empty() ? "give the #SBATCH lines that it needs in a file, with --sbatch FILE,"
                     : "mend " + head.string()));
  return line.substr(0, line.find(';'));  // the job, then perhaps ";cluster"
}

}  // namespace

std::string part_log(const std::string& part) { return fmt::format("part-{}.log", part); }

int submit_to_slurm(const Spec& spec, const Submission& submission) {
  const std::vector<std::string> head = head_lines(submission.head);
  const Tasks tasks = tasks_of(spec, head);
  SubmissionFolder files(
      fs::absolute(submission.out.empty() ? fs::path(default_directory(spec)) : submission.out));
  const fs::path &folder = files.path(), job = folder / kJobScript;
  files.write(run_files::kSpec, spec.text);
  files.write(kJobScript, script(spec, submission, folder, tasks, head));
  const auto note = [&](const nlohmann::json& number) {
    files.write(kSubmission,
                json_text(nlohmann::json{{"job", number}, {"parts", tasks.parts}}, 1) + '\n');
  };
  note(nullptr);
  if (profiling::find_program("sbatch").empty()) {
    files.keep();
    throw NotSubmitted(
        fmt::format("--submit: there is no sbatch here; the job is written, submit it with: "
                    "sbatch {}",
                    shell_word(job.string())));
  }
  const std::string number = sbatch(job, tasks, submission.head);
  files.keep();
  note(number);
  if (submission.json) {
    std::cout << json_text(
                     nlohmann::ordered_json{
                         {"results", folder.string()}, {"job", number}, {"parts", tasks.parts}},
                     1)
              << '\n';
    return 0;
  }
  std::cerr << fmt::format("job {}: {} in {}; see: run_experiment --status {}\n",
                           for_terminal(number), counted(spec.points.size(), "point"),
                           counted(static_cast<std::size_t>(tasks.parts), "part"),
                           for_terminal(shell_word(folder.string())));
  std::cout << "results: " << for_terminal(folder.string()) << '\n';
  return 0;
}

}  // namespace lloyd
