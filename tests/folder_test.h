// A folder of its own for each test.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <stdexcept>
#include <string>

namespace lloyd {

/// The folder exists as long as the test.
class FolderTest : public testing::Test {
 protected:
  FolderTest() {
    std::string name = (std::filesystem::temp_directory_path() / "lloydbench-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make the folder " + name);
    folder_ = name;
  }
  ~FolderTest() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path folder_;
};

}  // namespace lloyd
