// CUPTI, opened at run time: a machine without it, or without a driver, gets a reason and never a link error.
// Only for code built with CUDA, whose headers declare what is called here.
#pragma once

#include <cupti_result.h>

#include <string>

#include "profiling/subject.h"

namespace lloyd::profiling {

class Cupti {
 public:
  /// Opens the library that LLOYDBENCH_CUPTI names; else libcupti as the loader finds it (LD_LIBRARY_PATH, a bundle's
  /// lib/), in $CUDA_HOME, in the toolkit of the build, or in /usr/local/cuda. Stays open to the end of the process.
  /// Throws Unavailable.
  static const Cupti& open();
  /// Opens `path` alone.
  explicit Cupti(const std::string& path);

  /// The function's own answer. Throws Unavailable when this CUPTI does not have it.
  template <typename... Arguments>
  CUptiResult result(const char* name, Arguments... arguments) const {
    return reinterpret_cast<CUptiResult (*)(Arguments...)>(function(name))(arguments...);
  }
  /// Throws Unavailable with what the failure means and what helps.
  template <typename... Arguments>
  void call(const char* name, Arguments... arguments) const {
    if (const CUptiResult code = result(name, arguments...); code != CUPTI_SUCCESS)
      throw Unavailable(explain(name, code));
  }

  /// Why `function` failed, in a user's words, with the remedy where there is one.
  std::string explain(const std::string& function, CUptiResult code) const;
  /// As "13.0.1".
  std::string version() const;
  const std::string& path() const { return path_; }

 private:
  Cupti() = default;
  void* function(const char* name) const;
  void* library_ = nullptr;
  std::string path_;
};

}  // namespace lloyd::profiling
