#include "kernels/core/control_groups.h"

#include <fmt/format.h>

#include <fstream>
#include <string>

namespace lloyd {
namespace fs = std::filesystem;

void for_each_group(const fs::path& root, std::string_view controller,
                    const std::function<void(const fs::path&, bool v2)>& look) {
  std::ifstream groups(root / "proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {  // "0::/user.slice" or "4:memory:/docker/…"
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = fmt::format(",{},", line.substr(first + 1, second - first - 1));
    const bool v2 = controllers == ",,";
    if (!v2 && controllers.find(fmt::format(",{},", controller)) == std::string::npos) continue;
    const fs::path all = root / "sys/fs/cgroup", mount = v2 ? all : all / controller;
    // In a container the path may not exist here; then the root of the mount has the limit.
    fs::path group = fs::path(line.substr(second + 1)).relative_path();
    while (true) {
      look(mount / group, v2);
      if (group.empty()) break;
      group = group.parent_path();
    }
  }
}

}  // namespace lloyd
