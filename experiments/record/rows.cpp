#include "experiments/record/rows.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <set>

#include "kernels/core/limits.h"

namespace lloyd {
namespace {

// Whether the point uses more threads than there are cores for the run, or ranks share a GPU.
// nullopt for a version that takes no number of threads.
std::optional<bool> oversubscribed(const Point& point, const RowSource& source) {
  if (!point.threads && !point.processes) return std::nullopt;
  if (std::set(source.gpus.begin(), source.gpus.end()).size() < source.gpus.size()) return true;
  return std::int64_t{point.threads.value_or(1)} * point.processes.value_or(1) > source.cores;
}

// The columns of what a solve takes and gives, and how it is judged.
constexpr auto kResults = std::to_array<const char*>({"process_setup_ms",
                                                      "init_ms",
                                                      "init_device",
                                                      "init_threads",
                                                      "solve_ms",
                                                      "waited_ms",
                                                      "iteration_ms",
                                                      "setup_ms",
                                                      "transfer_ms",
                                                      "end_to_end_ms",
                                                      "iterations",
                                                      "inertia",
                                                      "inertia_excess",
                                                      "verified",
                                                      "verified_points",
                                                      "label_mismatches",
                                                      "max_regret",
                                                      "regret_bound",
                                                      "max_mean_error",
                                                      "timing_basis",
                                                      "floor_ms",
                                                      "floor_sustained_ms",
                                                      "end_to_end_floor_ms",
                                                      "chosen",
                                                      "chosen_by"});
// Those of the machine's state during a sample.
constexpr auto kReadings = std::to_array<const char*>(
    {"sm_mhz", "mem_mhz", "temp_c", "power_w", "throttle", "energy_j", "noisy", "noise"});

// The version and the point's place on each axis that it reads.
void put_parameters(Row& row, const Point& point) {
  const VersionInfo& info = find_version(point.version)->info;
  row["point"] = point.id;
  row["version"] = point.version;
  row["family"] = info.family;
  row["backend"] = to_string(info.backend);
  row["reproducible"] = info.reproducible;
  row["n"] = point.n;
  row["k"] = point.k;
  row["dim"] = point.dim;
  row["batch"] = point.batch;
  for (const PointTunable& axis : kPointTunables) row[axis.name] = or_null(point.*axis.value);
  row["precision"] = to_string(point.precision);
  row["host_memory"] = or_null(point.host_memory);
}

// The points and the initial centroids.
void put_inputs(Row& row, const Point& point, const RowSource& source) {
  row["data"] = source.data;
  row["data_name"] = or_null(point.data);
  row["data_part"] = or_null(data_part(point, source.file));
  row["seed"] = or_null(source.seed);
  row["data_seed"] = or_null(source.seed);
  row["init"] = point.init;
  row["init_seed"] = or_null(point.init_seed);
  row["restart"] = or_null(point.restart);
}

}  // namespace

std::string utc_now() {
  const auto now = std::chrono::system_clock::now();
  const auto ms =
      std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count() % 1000;
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03d}Z",
                     fmt::gmtime(std::chrono::system_clock::to_time_t(now)), ms);
}

std::string host_name() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

std::string place_of(const Row& row) {
  const auto node = row.find("node");  // older rows have none
  const bool named = node != row.end() && node->is_string();
  return (named ? *node : row.at("host")).get<std::string>();
}

std::string first_gpu_of(const Row& row) {
  const Row value = row.value("gpu_uuid", Row());
  const std::string gpus = value.is_string() ? value.get<std::string>() : "";
  return gpus.substr(0, gpus.find(','));
}

std::string data_part(const Point& point, const data::Extent& file) {
  std::string text;
  const auto part = [&](std::int64_t taken, std::int64_t all, const char* what) {
    if (taken >= all) return;
    text += fmt::format("{}first {} of {} {}", text.empty() ? "" : ", ", with_commas(taken),
                        with_commas(all), what);
  };
  part(point.n, file.n, "rows");
  part(point.dim, file.dim, "columns");
  return text;
}

Row measurement_row(const Point& point, const RowSource& source,
                    const std::optional<DeviceLimits>& device) {
  Row row;
  row["schema"] = kSchema;
  put_parameters(row, point);
  row["oversubscribed"] = or_null(oversubscribed(point, source));
  row["binding"] = or_null(source.binding);
  put_inputs(row, point, source);
  row["launch"] = 0;
  row["repetition"] = 0;
  row["status"] = nullptr;
  row["reason"] = nullptr;
  for (const char* field : kResults) row[field] = nullptr;
  const bool on_gpu = device && find_version(point.version)->info.backend == Backend::cuda;
  row["gpu"] = on_gpu ? Row(device->name) : Row(nullptr);
  row["gpu_uuid"] = on_gpu ? Row(fmt::format("{}", fmt::join(source.gpus, ","))) : Row(nullptr);
  for (const char* field : kReadings) row[field] = nullptr;
  row["host"] = host_name();
  row["node"] = or_null(source.node);
  row["shard"] = or_null(source.shard);
  row["t_utc"] = utc_now();
  row["null_reasons"] = nullptr;
  return row;
}

Row unmeasured_row(const Point& point, const RowSource& source,
                   const std::optional<DeviceLimits>& device, const std::string& status,
                   const std::string& reason) {
  Row row = measurement_row(point, source, device);
  row["status"] = status;
  row["reason"] = reason;
  row["verified"] = false;
  row["null_reasons"] = {{"*", "not measured: " + status}};
  return row;
}

}  // namespace lloyd
