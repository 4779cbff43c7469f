#include "kernels/limits.h"

#include <fmt/format.h>

namespace lloyd {

std::string with_commas(std::int64_t value) {
  std::string digits = std::to_string(value);
  const std::ptrdiff_t first = value < 0 ? 1 : 0;
  for (std::ptrdiff_t at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > first; at -= 3)
    digits.insert(static_cast<std::size_t>(at), ",");
  return digits;
}

std::optional<std::string> static_shared_shortfall(std::int64_t bytes_per_block,
                                                   const DeviceLimits& device) {
  if (bytes_per_block <= device.shared_bytes) return std::nullopt;
  return fmt::format("needs {} B of shared memory per block, device allows {} B (static)",
                     with_commas(bytes_per_block), with_commas(device.shared_bytes));
}

std::optional<std::string> no_change_count(const Stop& stop) {
  if (stop.min_changes <= 0) return std::nullopt;
  return fmt::format("does not count the points that change cluster (min_changes = {})",
                     stop.min_changes);
}

std::optional<std::string> only_a_change_flag(const Stop& stop) {
  if (stop.min_changes <= 1) return std::nullopt;
  return fmt::format(
      "keeps a flag, not a count, of points that change cluster: min_changes can be 0 or 1, not {}",
      stop.min_changes);
}

}  // namespace lloyd
