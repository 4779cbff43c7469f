#include "kernels/version.h"
#include "tests/kernels/tested_versions.h"

namespace lloyd {

std::vector<std::string> tested_versions() {
  std::vector<std::string> names;
  for (const RegisteredVersion& version : versions()) names.push_back(version.info.name);
  return names;
}

}  // namespace lloyd
