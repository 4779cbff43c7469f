#include "experiments/text/differences.h"

#include <fmt/format.h>

#include <set>
#include <vector>

#include "experiments/text/text.h"

namespace lloyd {
namespace {

constexpr std::size_t kShown = 3, kShortList = 4, kShortText = 80;

std::string shown(const nlohmann::json* value) {
  if (value == nullptr) return "absent";
  const std::string text = json_text(*value);
  return shortened(text, kShortText);
}

// Describes the elements of `of` that are not in `others`.
std::string alone(const nlohmann::json& of, const std::set<nlohmann::json>& others) {
  const nlohmann::json* first = nullptr;
  std::size_t count = 0;
  for (const nlohmann::json& element : of) {
    if (others.contains(element)) continue;
    if (first == nullptr) first = &element;
    ++count;
  }
  if (count == 0) return "none";
  return count == 1 ? shown(first) : fmt::format("{} of them, as {}", count, shown(first));
}

class Comparison {
 public:
  void compare(const std::string& path, const nlohmann::json* was, const nlohmann::json* is) {
    if (was != nullptr && is != nullptr) {
      if (*was == *is) return;
      if (was->is_object() && is->is_object()) return compare_objects(path, *was, *is);
      if (was->is_array() && is->is_array() && std::max(was->size(), is->size()) > kShortList)
        return compare_lists(path, *was, *is);
    }
    tell(path, fmt::format("was {}, is {}", shown(was), shown(is)));
  }

  std::string text() const {
    return fmt::format("{}{}", fmt::join(found_, "; "), more_ ? "; …" : "");
  }

 private:
  void compare_objects(const std::string& path, const nlohmann::json& was,
                       const nlohmann::json& is) {
    const auto below = [&](const std::string& key) {
      return path.empty() ? key : path + "/" + key;
    };
    const auto at = [](const nlohmann::json& object, const std::string& key) {
      return object.contains(key) ? &object.at(key) : nullptr;
    };
    for (const auto& [key, value] : was.items()) compare(below(key), &value, at(is, key));
    for (const auto& [key, value] : is.items())
      if (!was.contains(key)) compare(below(key), nullptr, &value);
  }

  void compare_lists(const std::string& path, const nlohmann::json& was, const nlohmann::json& is) {
    const std::string gone = alone(was, {is.begin(), is.end()});
    const std::string come = alone(is, {was.begin(), was.end()});
    tell(path, gone == "none" && come == "none" ? "the same in another order"
                                                : fmt::format("{} instead of {}; gone: {}; new: {}",
                                                              is.size(), was.size(), gone, come));
  }

  void tell(const std::string& path, const std::string& what) {
    if (found_.size() == kShown)
      more_ = true;
    else
      found_.push_back(path + ": " + what);
  }

  std::vector<std::string> found_;
  bool more_ = false;
};

}  // namespace

std::string differences(const nlohmann::json& was, const nlohmann::json& is) {
  Comparison comparison;
  comparison.compare("", &was, &is);
  return comparison.text();
}

}  // namespace lloyd
