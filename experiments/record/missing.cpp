#include "experiments/record/missing.h"

#include <fmt/format.h>

#include <algorithm>

#include "experiments/text/text.h"

namespace lloyd {
namespace {

// More than these are counted.
constexpr std::size_t kNamedPoints = 3;

struct Members {
  std::string status, reason;
  std::vector<std::string> versions, points;
  std::size_t count = 0;
};

std::string what_of(const Members& members) {
  if (members.points.empty()) return join(members.versions);
  if (members.points.size() <= kNamedPoints) return join(members.points);
  return fmt::format("{} points of {}", members.points.size(), join(members.versions));
}

}  // namespace

std::vector<MissingGroup> grouped(const std::vector<Missing>& missing) {
  std::vector<Members> groups;
  for (const Missing& each : missing) {
    auto group = std::ranges::find_if(groups, [&](const Members& other) {
      return other.status == each.status && other.reason == each.reason;
    });
    if (group == groups.end()) group = groups.insert(group, {each.status, each.reason, {}, {}});
    if (!contains(group->versions, each.version)) group->versions.push_back(each.version);
    if (!each.point.empty()) group->points.push_back(each.point);
    ++group->count;
  }
  std::vector<MissingGroup> result;
  for (const Members& group : groups)
    result.push_back({group.status, group.reason, group.count, what_of(group)});
  return result;
}

std::string missing_text(const std::vector<Missing>& missing, const Terminal& terminal) {
  const std::vector<MissingGroup> groups = grouped(missing);
  std::size_t indent = 0;
  for (const MissingGroup& group : groups) indent = std::max(indent, columns(group.status) + 2);
  std::string text;
  for (const MissingGroup& group : groups) {
    const std::string lines = hanging(group.status, indent, group.what, terminal.width);
    text += coloured(group.status, colour_of(group.status), terminal);
    text += lines.substr(group.status.size());
    if (!group.reason.empty())
      text += hanging("", indent, for_terminal(group.reason), terminal.width);
  }
  return text;
}

}  // namespace lloyd
