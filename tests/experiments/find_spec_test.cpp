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

std::string find_error(const std::string& name, const std::string& otherwise = "") {
  try {
    return "found " + find_spec(name, otherwise).string();
  } catch (const SpecError& error) {
    return error.what();
  }
}

TEST(FindSpec, SaysWhereItLookedAndWhatWasMeantOrWhatThereIs) {
  const Folder folder;
  const Environment home("LLOYDBENCH_HOME", (folder.path() / "home").string());
  folder.write("home/experiments/sweeps/mine.yaml", "");
  folder.write("home/experiments/sweeps/notes.txt", "");
  folder.write("here.yaml", "");
  const auto looked = [&](const std::string& name) {
    const std::string root = folder.path().string();
    return "\n  looked for " + root + "/" + name + ", " + root + "/home/experiments/" + name;
  };
  EXPECT_EQ(find_error("sweeps/mini.yaml"),
            "sweeps/mini.yaml: no such spec; did you mean 'sweeps/mine.yaml'?" +
                looked("sweeps/mini.yaml"));
  EXPECT_EQ(find_error("nothing"), "nothing: no such spec" + looked("nothing") +
                                       "\n  there are here.yaml, sweeps/mine.yaml");
  EXPECT_EQ(find_error("sweeps/abcd.yaml"), "sweeps/abcd.yaml: no such spec" +
                                                looked("sweeps/abcd.yaml") +
                                                "\n  there are sweeps/mine.yaml");

  EXPECT_EQ(find_error("mine").rfind("mine: no such spec; did you mean 'sweeps/mine.yaml'?\n", 0),
            0u);
  EXPECT_NE(find_error("her.yaml").find("did you mean 'here.yaml'?"), std::string::npos);
  EXPECT_EQ(find_error("home").rfind("home: is a folder, not a spec", 0), 0u);

  std::filesystem::remove_all(folder.path() / "home");
  EXPECT_EQ(find_error("zzz"), "zzz: no such spec" + looked("zzz") + "\n  there is no " +
                                   folder.path().string() +
                                   "/home/experiments, where the program expects its specs and "
                                   "Python versions; name the tree that has them in "
                                   "LLOYDBENCH_HOME\n  there are here.yaml");
  folder.write("home/experiments/sweeps/mine.yaml", "");

  const std::string doctor = "; did you mean 'doctor'?";
  EXPECT_EQ(find_error("docter", doctor), "docter: no such spec" + doctor + looked("docter"));
  EXPECT_EQ(find_error("her.yaml", doctor), find_error("her.yaml"));
}

}  // namespace
}  // namespace lloyd::testing
