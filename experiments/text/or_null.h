// JSON that is null where there is no value.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace lloyd {

template <typename Json = nlohmann::ordered_json, typename T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

/// Null for an empty text.
template <typename Json = nlohmann::ordered_json>
Json or_null(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(text);
}

}  // namespace lloyd
