// The JSON Schema of a spec, for editors and for docs/spec.md.
#pragma once

#include <nlohmann/json.hpp>

namespace lloyd {

/// JSON Schema, draft 2020-12, from the tables of keys and of axes. It accepts every spec that the
/// reader accepts, apart from unusual spellings (`yes` for true), and refuses what a schema can
/// express. It does not list the versions: a user's own version is a file more.
///
/// The annotation `x-type` says in words what a value must be.
nlohmann::ordered_json spec_schema();

}  // namespace lloyd
