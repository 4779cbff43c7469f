// Tests where a spec is looked for.
#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <string>

#include "experiments/process/program_files.h"
#include "tests/experiments/spec_text.h"

namespace lloyd::testing {
namespace {

class Environment {
 public:
  Environment(const char* name, const std::string& value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    setenv(name, value.c_str(), 1);
  }
  Environment(const Environment&) = delete;
  ~Environment() {
    if (before_)
      setenv(name_, before_->c_str(), 1);
    else
      unsetenv(name_);
  }

 private:
  const char* name_;
  std::optional<std::string> before_;
};

TEST(FindSpec, CurrentFolderThenTheHomeDirectory) {
  const Folder folder;
  EXPECT_EQ(find_spec("sweeps/quickstart.yaml"),
            home_directory() / "experiments/sweeps/quickstart.yaml");
  const Environment home("LLOYDBENCH_HOME", (folder.path() / "home").string());
  folder.write("home/experiments/sweeps/quickstart.yaml", "");
  EXPECT_EQ(find_spec("sweeps/quickstart.yaml"),
            folder.path() / "home/experiments/sweeps/quickstart.yaml");
  folder.write("sweeps/quickstart.yaml", "");
  EXPECT_EQ(find_spec("sweeps/quickstart.yaml"), "sweeps/quickstart.yaml");
  EXPECT_EQ(find_spec((folder.path() / "sweeps/quickstart.yaml").string()),
            folder.path() / "sweeps/quickstart.yaml");
}

std::string find_error(const std::string& name) {
  try {
    return "found " + find_spec(name).string();
  } catch (const SpecError& error) {
    return error.what();
  }
}

TEST(FindSpec, SaysWhereItLookedAndWhatThereIs) {
  const Folder folder;
  const Environment home("LLOYDBENCH_HOME", (folder.path() / "home").string());
  folder.write("home/experiments/sweeps/mine.yaml", "");
  folder.write("home/experiments/sweeps/notes.txt", "");
  folder.write("here.yaml", "");
  const std::string error = find_error("sweeps/mini.yaml");
  const auto line = [&](int number) {
    std::size_t begin = 0;
    while (number-- > 0) begin = error.find('\n', begin) + 1;
    return error.substr(begin, error.find('\n', begin) - begin);
  };
  const std::string root = folder.path().string();
  EXPECT_EQ(line(0), "sweeps/mini.yaml: no such spec; did you mean 'sweeps/mine.yaml'?");
  EXPECT_EQ(line(1), "  looked for " + root + "/sweeps/mini.yaml, " + root +
                         "/home/experiments/sweeps/mini.yaml");
  EXPECT_EQ(line(2).rfind("  there are sweeps/mine.yaml", 0), 0u) << line(2);

  EXPECT_EQ(find_error("mine").rfind("mine: no such spec; did you mean 'sweeps/mine.yaml'?\n", 0),
            0u);
  EXPECT_NE(find_error("her.yaml").find("did you mean 'here.yaml'?"), std::string::npos);
  EXPECT_EQ(find_error("home").rfind("home: is a folder, not a spec", 0), 0u);
}

}  // namespace
}  // namespace lloyd::testing
