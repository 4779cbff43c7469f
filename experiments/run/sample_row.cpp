#include "experiments/run/sample_row.h"

#include <optional>

#include "experiments/record/rows.h"
#include "kernels/core/status.h"

namespace lloyd {
namespace {

Row null_reasons(const Workbench& bench, const Row& row, const Sample& s, const Verdict& verdict) {
  Row why;
  const std::string& no_energy = bench.job().no_energy;
  why["energy_j"] = no_energy.empty() ? "not measured yet" : no_energy;
  if (!s.noise.other_cpu)
    why["noise.other_cpu"] = "the worker was younger than 100 ms, or /proc does not say";
  if (!s.noise.migrations) why["noise.migrations"] = "/proc/self/sched does not say";
  if (!s.noise.other_gpu)
    why["noise.other_gpu"] = !bench.on_gpu() ? "runs on the CPU"
                             : bench.nvml()  ? "the driver does not say who uses the GPU"
                                             : bench.no_nvml();
  if (!verdict.verified_points)
    for (const char* field : {"inertia", "inertia_excess", "verified", "verified_points",
                              "label_mismatches", "max_regret", "regret_bound", "max_mean_error"})
      why[field] = "verify: false";
  else if (!verdict.inertia)
    why["inertia"] = why["inertia_excess"] = verdict.no_inertia;
  else if (!verdict.inertia_excess)
    why["inertia_excess"] = verdict.no_excess;
  if (!verdict.unverified.empty()) why["verified"] = verdict.unverified;
  for (const char* field : {"process_setup_ms", "setup_ms", "transfer_ms", "end_to_end_ms"})
    if (row[field].is_null()) why[field] = "the external version does not report it";
  for (const char* field :
       {"gpu", "gpu_uuid", "sm_mhz", "mem_mhz", "temp_c", "power_w", "throttle"})
    if (!bench.on_gpu())
      why[field] = "runs on the CPU";
    else if (row[field].is_null())
      why[field] = bench.nvml() ? "the driver does not say" : bench.no_nvml();
  return why;
}

}  // namespace

void fill_verdict(Row& row, const Verdict& verdict) {
  row["inertia"] = or_null(verdict.inertia);
  row["inertia_excess"] = or_null(verdict.inertia_excess);
  row["verified"] = verdict.verified();
  row["verified_points"] = or_null(verdict.verified_points);
  row["label_mismatches"] = or_null(verdict.label_mismatches);
  row["max_regret"] = or_null(verdict.max_regret);
  row["regret_bound"] = or_null(verdict.regret_bound);
  row["max_mean_error"] = or_null(verdict.max_mean_error);
}

Row sample_row(const Workbench& bench, const Point& point, int launch, const Sample& s,
               const Verdict& verdict) {
  Row row = measurement_row(point, row_source(bench.job(), point), bench.job().device);
  row["launch"] = launch;
  row["repetition"] = s.repetition;
  row["status"] = status::ok;
  const bool external = s.timing_basis == kSelfReported;
  row["process_setup_ms"] = external ? Row(nullptr) : Row(bench.process_setup_ms());
  row["init_ms"] = bench.init_ms(point);
  const std::string init_device = bench.init_device(point);
  row["init_device"] = init_device;
  row["init_threads"] = init_device == "cpu" ? Row(data::init_threads(point.init)) : Row(nullptr);
  row["solve_ms"] = s.solve_ms;
  row["waited_ms"] = s.waited_ms;
  row["iteration_ms"] = s.solve_ms / s.iterations;
  row["setup_ms"] = or_null(s.setup_ms);
  row["transfer_ms"] = or_null(s.transfer_ms);
  row["end_to_end_ms"] =
      s.setup_ms && s.fetch_ms ? Row(*s.setup_ms + s.solve_ms + *s.fetch_ms) : Row(nullptr);
  row["iterations"] = s.iterations;
  fill_verdict(row, verdict);
  row["timing_basis"] = s.timing_basis;
  row["chosen"] = or_null(s.chosen);
  row["chosen_by"] = or_null(s.chosen_by);
  row["sm_mhz"] = or_null(s.gpu.sm_mhz);
  row["mem_mhz"] = or_null(s.gpu.mem_mhz);
  row["temp_c"] = or_null(s.gpu.temp_c);
  row["power_w"] = or_null(s.gpu.power_w);
  row["throttle"] = or_null(s.gpu.throttle);
  fill_noise(row, s.noise);
  row["t_utc"] = s.t_utc;
  row["null_reasons"] = null_reasons(bench, row, s, verdict);
  return row;
}

std::vector<Row> phase_rows(const Point& point, const char* part, PhaseTimes& times) {
  std::vector<Row> rows;
  for (const auto& [phase, spent] : times.collect()) {
    Row row;
    row["point"] = point.id;
    row["version"] = point.version;
    row["part"] = part;
    row["phase"] = phase;
    row["calls"] = spent.calls;
    row["device_ms"] = times.has_device_times() ? Row(spent.device_ms) : Row(nullptr);
    row["host_ms"] = spent.host_ms;
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace lloyd
