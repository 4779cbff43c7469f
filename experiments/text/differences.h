// Where two JSON documents differ, in words.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace lloyd {

/// The first few places, as "measure/repetitions: was 9, is 5"; of long lists what is in one of them alone. Empty when
/// the documents are equal.
std::string differences(const nlohmann::json& was, const nlohmann::json& is);

}  // namespace lloyd
