// Writes specs to temporary folders, for the tests of the spec and of the plan.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "experiments/spec/spec.h"

namespace lloyd::testing {

using Words = std::vector<std::string>;

/// A folder that exists as long as this object and is the current directory during that time.
class Folder {
 public:
  Folder() : before_(std::filesystem::current_path()) {
    static int count = 0;
    path_ = std::filesystem::temp_directory_path() /
            ("lloyd-spec-" + std::to_string(getpid()) + "-" + std::to_string(count++));
    std::filesystem::create_directories(path_);
    std::filesystem::current_path(path_);
  }
  Folder(const Folder&) = delete;
  ~Folder() {
    std::error_code ignored;
    std::filesystem::current_path(before_, ignored);
    std::filesystem::remove_all(path_, ignored);
  }
  void write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name, std::ios::binary) << text;
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path before_, path_;
};

/// A correct spec whose lines the tests replace. Line 8 is the first free one.
inline std::vector<std::string> good_lines() {
  return {"name: t",                                     // 1
          "versions: [cpu_sequential, luigi_v1_fused]",  // 2
          "axes:",                                       // 3
          "  n: [1000]",                                 // 4
          "  k: [5]",                                    // 5
          "  dim: [2]",                                  // 6
          "data: {generator: uniform}",                  // 7
          ""};                                           // 8
}

/// The good spec with line `number` (from 1) replaced. 0 replaces everything.
inline std::string spec_with(int number, const std::string& text) {
  if (number == 0) return text;
  std::vector<std::string> lines = good_lines();
  lines[static_cast<std::size_t>(number) - 1] = text;
  std::string whole;
  for (const std::string& line : lines) whole += line + "\n";
  return whole;
}

inline Spec load_text(const std::string& text, const Overrides& overrides = {}) {
  const Folder folder;
  folder.write("s.yaml", text);
  return load_spec("s.yaml", overrides);
}

/// The errors of a spec. Empty if it loads.
inline std::vector<std::string> errors_of(const std::string& text,
                                          const Overrides& overrides = {}) {
  try {
    load_text(text, overrides);
    return {};
  } catch (const SpecError& error) {
    return error.errors;
  }
}

inline std::vector<std::string> ids_of(const Spec& spec) {
  std::vector<std::string> ids;
  for (const Point& point : spec.points) ids.push_back(point.id);
  return ids;
}

inline std::vector<std::string> ids_of(const std::string& text, const Overrides& overrides = {}) {
  return ids_of(load_text(text, overrides));
}

}  // namespace lloyd::testing
