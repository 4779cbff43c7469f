#include "experiments/spec/errors.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <unordered_set>

namespace lloyd {

void Errors::add(const Place& place, const std::string& message) {
  errors_.push_back({place, message});
}

std::vector<std::string> Errors::sorted() const {
  std::vector<Error> ordered = errors_;
  std::stable_sort(ordered.begin(), ordered.end(), [](const Error& a, const Error& b) {
    const auto key = [](const Error& error) {
      return std::tuple(!error.place.option.empty(), error.place.line, error.place.column);
    };
    return key(a) < key(b);
  });
  std::vector<std::string> lines;
  std::unordered_set<std::string> told;
  for (const auto& [place, message] : ordered) {
    std::string line = place.option.empty()
                           ? fmt::format("{}:{}:{}: {}", file_, place.line, place.column, message)
                           : fmt::format("{}: {}", place.option, message);
    if (told.insert(line).second) lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace lloyd
