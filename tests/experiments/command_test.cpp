// The tables of the command line, and what reads them.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "experiments/command/help.h"
#include "experiments/command/parse.h"

namespace lloyd {
namespace {

std::string refusal(const std::vector<std::string>& words) {
  try {
    parse_command_line(words);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Tables, NameEachOptionOnceAndSayWhatItDoes) {
  std::set<std::string_view> names;
  for (const OptionInfo& option : options()) {
    EXPECT_TRUE(names.insert(option.name).second) << option.name;
    if (option.group == Group::hidden) continue;
    EXPECT_FALSE(option.text.empty()) << option.name;
    EXPECT_FALSE(title_of(option.group).empty()) << option.name;
  }
  for (const ActionInfo& action : actions())
    EXPECT_TRUE(action.flag.empty() || names.insert(action.flag).second) << action.flag;
}

TEST(CommandLine, ASubcommandIsTheFlagThatDoesTheSame) {
  for (const ActionInfo& action : actions()) {
    std::vector<std::string> words{std::string(action.command)};
    if (!action.argument.empty()) words.emplace_back(action.argument);
    std::vector<std::string> flags;
    if (!action.flag.empty()) flags.emplace_back(action.flag);
    const bool takes_spec = action.takes == ActionInfo::Takes::spec;
    if (action.takes != ActionInfo::Takes::nothing) {
      words.emplace_back("x.yaml");
      flags.emplace_back("x.yaml");
    }
    const CommandLine by_word = parse_command_line(words);
    EXPECT_EQ(by_word.action, action.action);
    EXPECT_EQ(by_word.spec, takes_spec ? "x.yaml" : "");
    EXPECT_EQ(by_word.folders.size(), action.takes > ActionInfo::Takes::spec ? 1 : 0);
    if (flags.empty()) continue;
    EXPECT_EQ(parse_command_line(flags).action, action.action) << flags[0];
  }
  EXPECT_EQ(parse_command_line({"run", "x.yaml", "--dry-run"}).action, Action::plan);
  EXPECT_EQ(parse_command_line({"plan", "x.yaml", "--dry-run"}).action, Action::plan);
  EXPECT_EQ(parse_command_line({"--json", "list", "axes"}).action, Action::list_axes);
  // A file of that name is still to be had.
  EXPECT_EQ(parse_command_line({"./plan"}).spec, "./plan");
}

TEST(CommandLine, ReadsEveryOptionOfASweep) {
  const CommandLine line = parse_command_line({"s.yaml",
                                               "--set",
                                               "n=1,2",
                                               "--set",
                                               "k=3",
                                               "--only",
                                               "a*,b",
                                               "--only",
                                               "c",
                                               "--filter",
                                               "x",
                                               "--repetitions",
                                               "1e1",
                                               "--warmup",
                                               "0",
                                               "--timeout",
                                               "2.5",
                                               "--seed",
                                               "18446744073709551615",
                                               "--no-shuffle",
                                               "--profile",
                                               "none",
                                               "--device=1",
                                               "--out",
                                               "there",
                                               "--quiet",
                                               "--no-progress",
                                               "--json",
                                               "--nsys",
                                               "--ncu",
                                               "--lock-clocks"});
  EXPECT_EQ(line.overrides.set, (std::vector<std::string>{"n=1,2", "k=3"}));
  EXPECT_EQ(line.overrides.only, (std::vector<std::string>{"a*", "b", "c"}));
  EXPECT_EQ(line.overrides.filter, "x");
  EXPECT_EQ(line.overrides.repetitions, 10);
  EXPECT_EQ(line.overrides.warmup, 0);
  EXPECT_EQ(line.overrides.timeout, 2.5);
  EXPECT_EQ(line.overrides.seed, 18446744073709551615U);
  EXPECT_EQ(line.overrides.shuffle, false);
  EXPECT_EQ(line.overrides.profile, "none");
  EXPECT_EQ(line.options.device, 1);
  EXPECT_EQ(line.options.out, "there");
  EXPECT_TRUE(line.options.quiet && line.options.json && line.options.nsys && line.options.ncu);
  EXPECT_TRUE(line.lock_clocks);
  EXPECT_FALSE(line.options.progress);
  EXPECT_EQ(parse_command_line({"s.yaml"}).overrides.shuffle, std::nullopt);
  EXPECT_EQ(parse_command_line({"s.yaml", "--no-shuffle", "--shuffle"}).overrides.shuffle, true);
}

TEST(CommandLine, SaysWhatIsWrongAndWhatWasMeant) {
  EXPECT_EQ(refusal({"--dryrun"}), "unknown option '--dryrun'; did you mean '--dry-run'?");
  EXPECT_EQ(refusal({"-json"}), "unknown option '-json'; did you mean '--json'?");
  EXPECT_EQ(refusal({"--no-shufle", "x"}),
            "unknown option '--no-shufle'; did you mean '--no-shuffle'?");
  EXPECT_EQ(refusal({"list", "axis"}), "unknown list 'axis'; did you mean 'axes'?");
  EXPECT_EQ(refusal({"x.yaml", "plan"}), "the command comes first: run_experiment plan x.yaml");
  EXPECT_EQ(refusal({"x.yaml", "doctr", "--json"}),
            "one spec at a time: what is 'doctr'; did you mean '--doctor'?");
  EXPECT_EQ(refusal({"x.yaml", "y.yaml"}), "one spec at a time: what is 'y.yaml'?");
  EXPECT_EQ(refusal({"--out"}), "--out needs a value: DIR");
  EXPECT_EQ(refusal({"--out", "--json"}), "--out needs a value (DIR), but --json follows");
  EXPECT_EQ(refusal({"x.yaml", "--resume", ""}),
            "--resume needs a value (DIR), but an empty one is given");
  EXPECT_EQ(refusal({"--only=", "x.yaml"}),
            "--only needs a value (GLOB,...), but an empty one is given");
  EXPECT_EQ(refusal({"--json=1"}), "'--json=1': this option takes no value");
  EXPECT_EQ(refusal({"--doctor=1"}), "'--doctor=1': this option takes no value");
  EXPECT_EQ(refusal({"--seed", "1", "--seed", "2"}),
            "--seed is given twice: leave one of them out");
  EXPECT_EQ(refusal({"--device", "-1"}), "--device: must be from 0 to 2147483647, not -1");
  EXPECT_EQ(refusal({"--repetitions", "1.5"}), "--repetitions: '1.5' is not a whole number");
  EXPECT_EQ(refusal({"--timeout", "soon"}), "--timeout: 'soon' is not a number");
  EXPECT_EQ(refusal({"--seed", "18446744073709551616"}),
            "--seed: must be from 0 to 2^64 - 1, not '18446744073709551616'");
  EXPECT_EQ(refusal({"run", "--doctor"}),
            "run and --doctor are two things to do: give one of them");
  EXPECT_EQ(refusal({"doctor", "x.yaml"}), "doctor takes no spec, but 'x.yaml' is given");
  EXPECT_EQ(refusal({"list", "axes", "--device", "0"}),
            "list axes does not use --device: leave one of them out");
  EXPECT_EQ(refusal({"x.yaml", "--chip", "GH100"}), "--chip needs --list-metrics");
  EXPECT_EQ(refusal({"x.yaml", "--retry-failed"}), "--retry-failed needs --resume DIR");
  EXPECT_EQ(refusal({"--completion", "bsh"}),
            "--completion: unknown shell 'bsh'; did you mean 'bash'?");
  EXPECT_EQ(refusal({"x.yaml", "--filter", "\xff"}),
            "'\uFFFD' is not UTF-8: the command line is kept with the results");
  EXPECT_EQ(suggested_command("docter"), "; did you mean 'doctor'?");
  EXPECT_EQ(suggested_command("sweeps/x.yaml"), "");
}

TEST(Help, ShowsEveryOptionAndKeepsToTheWindow) {
  for (const std::size_t width : {40, 60, 80, 140}) {
    const std::string text = help_text("", {width, false, false});
    for (const OptionInfo& option : options())
      EXPECT_EQ(text.find(option.name) != std::string::npos, option.group != Group::hidden)
          << option.name;
    for (const ActionInfo& action : actions())
      EXPECT_NE(text.find(action.flag), std::string::npos) << action.flag;
    for (const Variable& variable : variables())
      EXPECT_NE(text.find(variable.name), std::string::npos) << variable.name;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      EXPECT_LE(columns(line), width) << line;
      EXPECT_FALSE(line.ends_with(' ')) << line;
    }
  }
  const std::string plan = help_text("plan", {80, false, false});
  EXPECT_NE(plan.find("--set"), std::string::npos);
  EXPECT_EQ(plan.find("--match"), std::string::npos);
  EXPECT_EQ(plan.find("--nsys"), std::string::npos);
}

TEST(Help, NamesTheVariablesThatTheProgramReads) {
  // What the bundle's launcher tells the program, and what others make of their own variables.
  const std::set<std::string> internal = {"LLOYDBENCH_EXEC", "LLOYDBENCH_BINARY"};
  std::set<std::string> listed;
  for (const Variable& variable : variables()) listed.emplace(variable.name);
  std::set<std::string> read;
  const std::regex call(R"re(getenv\("(LLOYDBENCH_\w+)"\))re"),
      name(R"re(variable\("(LLOYDBENCH_\w+)"\))re");
  for (const char* room : {"experiments", "profiling", "kernels", "data"})
    for (const auto& file : std::filesystem::recursive_directory_iterator(
             std::filesystem::path(LLOYD_SOURCE_DIR) / room)) {
      if (file.path().extension() != ".cpp") continue;
      std::ifstream in(file.path());
      const std::string text{std::istreambuf_iterator<char>(in), {}};
      for (const std::regex* pattern : {&call, &name})
        for (std::sregex_iterator at(text.begin(), text.end(), *pattern), end; at != end; ++at)
          read.insert((*at)[1]);
    }
  EXPECT_GE(read.size(), 8u);
  for (const std::string& each : read)
    EXPECT_TRUE(listed.contains(each) || internal.contains(each)) << each;
  for (const std::string& each : listed)
    EXPECT_TRUE(!each.starts_with("LLOYDBENCH_") || read.contains(each)) << each;
}

}  // namespace
}  // namespace lloyd
