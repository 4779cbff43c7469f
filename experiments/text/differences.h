// Describes in words where two JSON documents differ.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace lloyd {

/// Lists the first few places, such as "measure/repetitions: was 9, is 5". For long lists, names
/// the elements that only one of them has. Empty if the documents are equal.
std::string differences(const nlohmann::json& was, const nlohmann::json& is);

}  // namespace lloyd
