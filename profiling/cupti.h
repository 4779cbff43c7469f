// Opens CUPTI at run time, so that a machine without it or without a driver gets a reason instead
// of a link error. Only for code built with CUDA, whose headers declare the functions called here.
#pragma once

#include <cupti_result.h>

#include <string>

#include "profiling/subject.h"

namespace lloyd::profiling {

class Cupti {
 public:
  /// Opens the library that LLOYDBENCH_CUPTI names. If that is not set, searches for libcupti on
  /// the loader's path (LD_LIBRARY_PATH, a bundle's lib/), in $CUDA_HOME, in the build's toolkit
  /// and in /usr/local/cuda. The library stays open until the process ends. Throws Unavailable.
  static const Cupti& open();
  /// Opens `path` and searches nowhere else. Throws Unavailable.
  explicit Cupti(const std::string& path);

  /// Calls the function and returns its result. Throws Unavailable when this CUPTI lacks it.
  template <typename... Arguments>
  CUptiResult result(const char* name, Arguments... arguments) const {
    return reinterpret_cast<CUptiResult (*)(Arguments...)>(function(name))(arguments...);
  }
  /// Calls the function. If it fails, throws Unavailable with the cause and a remedy.
  template <typename... Arguments>
  void call(const char* name, Arguments... arguments) const {
    if (const CUptiResult code = result(name, arguments...); code != CUPTI_SUCCESS)
      throw Unavailable(explain(name, code));
  }

  /// Explains to the user why `function` failed, with the remedy where there is one.
  std::string explain(const std::string& function, CUptiResult code) const;
  /// For example "13.0.1".
  std::string version() const;
  const std::string& path() const { return path_; }

 private:
  Cupti() = default;
  void* function(const char* name) const;
  void* library_ = nullptr;
  std::string path_;
};

}  // namespace lloyd::profiling
