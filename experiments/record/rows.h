// The rows of a run directory. One place knows their fields.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "experiments/spec/spec.h"

namespace lloyd {

using Row = nlohmann::ordered_json;

/// 2: samples are rows of their own from the start (`launch`; no `repetitions`), and say what disturbed them
/// and how they were judged (`waited_ms`, `inertia_excess`, `max_mean_error`).
inline constexpr int kSchema = 2;

/// What a point's rows share, as text or numbers that spec.resolved.json also has.
struct RowSource {
  std::string data;                   // Source::describe()
  std::optional<std::uint64_t> seed;  // of generated data
  int cores = 1;                      // of the machine
  data::Extent file;                  // of the data file; none for generated data
  std::string binding;  // of MPI ranks: core, hwthread or none; empty for other workers
};

/// What of a data file a problem is made of, as "first 1,000 of 5,000 rows, first 2 of 20 columns"; empty when that is all
/// of it, or there is no file.
std::string data_part(const Point& point, const data::Extent& file);

/// A row of measurements.jsonl with the point's parameters filled in and everything measured still
/// null.
Row measurement_row(const Point& point, const RowSource& source,
                    const std::optional<DeviceLimits>& device);

/// The row of a point that was not measured: status is one of unsupported, incorrect, imprecise, failed,
/// timeout.
Row unmeasured_row(const Point& point, const RowSource& source,
                   const std::optional<DeviceLimits>& device, const std::string& status,
                   const std::string& reason);

/// Now, as 2026-01-31T12:00:00.123Z.
std::string utc_now();
std::string host_name();

}  // namespace lloyd
