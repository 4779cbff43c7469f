// The rows of a profile, and what their fields are made of.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace lloyd::profiling {

using Row = nlohmann::ordered_json;

/// Null for an empty text.
inline Row text_or_null(const std::string& text) { return text.empty() ? Row(nullptr) : Row(text); }

}  // namespace lloyd::profiling
