#include "kernels/core/version.h"
#include "tests/kernels/tested_versions.h"

namespace lloyd {

std::vector<std::string> tested_versions() {
  std::vector<std::string> names;
  for (const RegisteredVersion& version : versions())
    if (!version.launched) names.push_back(version.info.name);
  return names;
}

std::unique_ptr<Session> tested_session() { return make_cpu_session(); }

}  // namespace lloyd
