// The possible outcomes of a point (kernels/core/statuses.inc).
#pragma once

#include <string_view>

namespace lloyd::status {

#define LLOYD_STATUS(name, failure) inline constexpr const char* name = #name;
#include "kernels/core/statuses.inc"

/// Whether a point of this status makes the run's exit status 1.
constexpr bool is_failure(std::string_view status) {
#define LLOYD_STATUS(name, failure) \
  if (status == #name) return failure;
#include "kernels/core/statuses.inc"
  return false;
}

}  // namespace lloyd::status
