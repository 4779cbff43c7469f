// Shared by several tests.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <string>
#include <string_view>

#include "data/sources/dataset.h"

namespace lloyd::data {

/// Gives each test its own folder and removes it afterwards.
class FileTest : public testing::Test {
 protected:
  FileTest() {
    std::string name = (std::filesystem::temp_directory_path() / "lloyd-data-XXXXXX").string();
    if (!mkdtemp(name.data())) throw std::runtime_error("cannot make a folder in " + name);
    folder_ = name;
    // mkdtemp makes the folder private. A test that gives up the rights of root must still have
    // access.
    std::filesystem::permissions(folder_, std::filesystem::perms{0755});
  }
  ~FileTest() override { std::filesystem::remove_all(folder_); }

  Source write(const std::string& name, std::string_view content) const {
    const std::filesystem::path path = folder_ / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << content;
    Source source;
    source.file = path;
    return source;
  }

  /// The message of the error that `action` throws. "D" replaces the name of the folder.
  template <class Action>
  std::string error_of(const Action& action) const {
    try {
      action();
    } catch (const DataError& error) {
      std::string text = error.what();
      const std::size_t at = text.find(folder_.string());
      return at == std::string::npos ? text : text.replace(at, folder_.string().size(), "D");
    }
    return "no error";
  }

  std::string read_error(const Source& source, int threads = 2) const {
    return error_of([&] { read_file(source, threads); });
  }

  std::filesystem::path folder_;
};

inline std::vector<float> values_of(const Dataset& data) {
  return {data.values().begin(), data.values().end()};
}

using Values = std::vector<float>;

template <class T>
std::string raw(T value) {
  std::string bytes(sizeof(T), '\0');
  std::memcpy(bytes.data(), &value, sizeof(T));
  return bytes;
}

/// An npy file in the form that numpy writes.
inline std::string npy(const std::string& descr, const std::string& shape, const std::string& data,
                       bool fortran = false, char version = 1) {
  std::string header = "{'descr': '" + descr +
                       "', 'fortran_order': " + (fortran ? "True" : "False") +
                       ", 'shape': " + shape + ", }";
  const std::size_t before = version == 1 ? 10 : 12;
  header.resize((before + header.size() + 64) / 64 * 64 - before - 1, ' ');
  header += '\n';
  std::string file = "\x93NUMPY";
  file += version;
  file += '\0';
  file += version == 1 ? raw(static_cast<std::uint16_t>(header.size()))
                       : raw(static_cast<std::uint32_t>(header.size()));
  return file + header + data;
}

template <class T>
std::string raw_all(std::initializer_list<T> values, bool swap = false) {
  std::string bytes;
  for (const T value : values) {
    std::string one = raw(value);
    if (swap) std::reverse(one.begin(), one.end());
    bytes += one;
  }
  return bytes;
}

}  // namespace lloyd::data
