// The rows of a run directory. One place knows their fields.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "experiments/spec.h"

namespace lloyd {

using Row = nlohmann::ordered_json;

inline constexpr int kSchema = 1;

/// What a point's rows share, as text or numbers that spec.resolved.json also has.
struct RowSource {
  std::string data;                   // Source::describe()
  std::optional<std::uint64_t> seed;  // of generated data
  int cores = 1;                      // of the machine
  std::string binding;  // of MPI ranks: core, hwthread or none; empty for other workers
};

/// A row of measurements.jsonl with the point's parameters filled in and everything measured still
/// null.
Row measurement_row(const Point& point, const RowSource& source,
                    const std::optional<DeviceLimits>& device);

/// The row of a point that was not measured: status is one of unsupported, incorrect, failed,
/// timeout.
Row unmeasured_row(const Point& point, const RowSource& source,
                   const std::optional<DeviceLimits>& device, const std::string& status,
                   const std::string& reason);

/// Now, as 2026-01-31T12:00:00.123Z.
std::string utc_now();
std::string host_name();

}  // namespace lloyd
