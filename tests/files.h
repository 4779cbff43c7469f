// Files that a test needs beside its program.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

namespace lloyd {

/// In a bundle the file or folder `name`, otherwise `built`, where the build put it.
inline std::string file_of_tests(const std::string& name, const std::string& built) {
  const char* home = std::getenv("LLOYDBENCH_HOME");  // a bundle's programs have it set
  if (home == nullptr) return built;
  for (const char* folder : {"libexec/for_tests", "."}) {
    const std::filesystem::path file = std::filesystem::path(home) / folder / name;
    if (std::filesystem::exists(file)) return file.string();
  }
  return built;
}

}  // namespace lloyd
