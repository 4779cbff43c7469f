// Writes a JSON list element by element, so that a long list is never complete in memory.
#pragma once

#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <string_view>

#include "experiments/text/text.h"

namespace lloyd {

/// Writes the same text as json_text(list, 1). Adds a newline at the end.
class JsonList {
 public:
  explicit JsonList(std::ostream& out) : out_(out) { out_ << '['; }
  JsonList(const JsonList&) = delete;
  ~JsonList() { out_ << (empty_ ? "]\n" : "\n]\n"); }

  void add(nlohmann::json element) {
    // Formats the element as a list of one and removes the brackets and line ends: "[\n", then
    // "\n]".
    nlohmann::json alone = nlohmann::json::array();
    alone.push_back(std::move(element));
    const std::string list = json_text(alone, 1);
    out_ << (empty_ ? "\n" : ",\n") << std::string_view(list).substr(2, list.size() - 4);
    empty_ = false;
  }

 private:
  std::ostream& out_;
  bool empty_ = true;
};

}  // namespace lloyd
