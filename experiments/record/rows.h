// The rows of a run directory. Only this file knows their fields.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "experiments/spec/spec.h"
#include "experiments/text/or_null.h"

namespace lloyd {

using Row = nlohmann::ordered_json;

/// Schema 2: each sample is a row from the start (`launch`; no `repetitions`). It says what
/// disturbed the sample and how its answer was judged (`waited_ms`, `inertia_excess`,
/// `max_mean_error`). Schema 3: where a sample was taken (`node`, `shard`), how points and initial
/// centroids were drawn (`data_name`, `data_seed`, `init`, `init_seed`, `restart`), what the latter
/// cost (`init_ms`, `init_device`, `init_threads`), what the process spent once
/// (`process_setup_ms`), and further floors (`end_to_end_floor_ms`, `floor_sustained_ms`).
inline constexpr int kSchema = 3;

/// The fields that all rows of a point share. spec.resolved.json contains the same text and
/// numbers.
struct RowSource {
  std::string data;                   // result of Source::describe()
  std::optional<std::uint64_t> seed;  // of generated data
  int cores = 1;                      // that the run may use
  data::Extent file;                  // empty for generated data
  std::string binding;      // of MPI ranks: core, hwthread or none; empty for other workers
  std::string node, shard;  // where a part of a sweep runs, and which; may be empty
  std::vector<std::string> gpus = {};  // the UUIDs of those that the version uses
};

/// Describes which part of a data file a problem uses, such as "first 1,000 of 5,000 rows, first 2
/// of 20 columns". Empty if it uses the whole file, or if there is no file.
std::string data_part(const Point& point, const data::Extent& file);

/// A row of measurements.jsonl that contains the point's parameters. All measured fields are still
/// null.
Row measurement_row(const Point& point, const RowSource& source,
                    const std::optional<DeviceLimits>& device);

/// The row of a point that was not measured. Its status is one of unsupported, incorrect,
/// imprecise, failed, timeout.
Row unmeasured_row(const Point& point, const RowSource& source,
                   const std::optional<DeviceLimits>& device, const std::string& status,
                   const std::string& reason);

/// Where the row was measured: the node, else the host.
std::string place_of(const Row& row);
/// The UUID of the first GPU of the row. Empty on the CPU.
std::string first_gpu_of(const Row& row);

/// The current time, as 2026-01-31T12:00:00.123Z.
std::string utc_now();
std::string host_name();

}  // namespace lloyd
