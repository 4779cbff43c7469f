// Parses a spec's text into the one YAML document that it must be.
#pragma once

#include <yaml-cpp/yaml.h>

#include <optional>
#include <string>

#include "experiments/spec/errors.h"

namespace lloyd {

/// The one document in `text`, or nullopt and an error.
std::optional<YAML::Node> parse_document(const std::string& text, Errors& errors);

}  // namespace lloyd
