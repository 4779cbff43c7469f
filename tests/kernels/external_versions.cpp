#include "experiments/measure/external.h"
#include "kernels/core/version.h"
#include "tests/kernels/tested_versions.h"

namespace lloyd {

std::vector<std::string> tested_versions() {
  static const std::vector<std::string> tested = [] {  // gtest calls this for every suite
    discover_external_versions();
    std::vector<std::string> names;
    for (const RegisteredVersion& version : versions())
      if (external_file(version.info.name)) names.push_back(version.info.name);
    return names;
  }();
  return tested;
}

std::unique_ptr<Session> tested_session() { return make_cpu_session(); }

}  // namespace lloyd
