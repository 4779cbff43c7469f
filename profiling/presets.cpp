#include "profiling/presets.h"

#include <algorithm>
#include <regex>
#include <stdexcept>

namespace lloyd::profiling {
namespace {

// A metric under its names on different chips, of which the first known one is taken. Without
// names: all metrics that match the pattern.
struct Entry {
  std::vector<std::string> names;
  std::string pattern, sub_metric;
};

const std::string kTime = "gpu__time_duration.sum";
const std::string kL1Bytes = "l1tex__t_bytes.sum";
const std::string kL2Bytes = "lts__t_bytes.sum";
const std::string kDramBytes = "dram__bytes.sum";
// Among the chips that CUPTI 13.0 knows, those that share memory with the CPU (GA10B, GB10B, GB20B)
// do not count DRAM traffic. Consumer Blackwell (GB20x) has other names for reads and writes.
const Entry kDramRead{{"dram__bytes_read.sum", "dram__bytes_op_read.sum"}, "", ""};
const Entry kDramWrite{{"dram__bytes_write.sum", "dram__bytes_op_write.sum"}, "", ""};

Entry one(const std::string& name) { return {{name}, "", ""}; }

std::string thread_instructions(const std::string& operation) {
  return "smsp__sass_thread_inst_executed_op_" + operation + "_pred_on.sum";
}

// Operations of the tensor cores by operand type, without the finer counters (sparsity, real-time
// samples).
const Entry kTensor{{}, "sm__ops_path_tensor_src_(?!.*(sparsity|realtime)).*", ".sum"};

const std::vector<std::pair<std::string, std::vector<Entry>>>& table() {
  static const std::vector<std::pair<std::string, std::vector<Entry>>> all = [] {
    std::vector<Entry> roofline = {one(kTime), one(kL1Bytes), one(kL2Bytes), one(kDramBytes)};
    for (const char* type : {"d", "f", "h"})
      for (const char* operation : {"add", "mul", "fma"})
        roofline.push_back(one(thread_instructions(std::string(type) + operation)));
    roofline.push_back(kTensor);
    return std::vector<std::pair<std::string, std::vector<Entry>>>{
        {"occupancy", {one("sm__warps_active.avg.pct_of_peak_sustained_active")}},
        {"l1",
         {one("l1tex__t_sector_hit_rate.pct"), one(kL1Bytes), one("l1tex__t_sectors.sum"),
          one("l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"),
          one("l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio"),
          one("l1tex__throughput.avg.pct_of_peak_sustained_active")}},
        {"l2",
         {one("lts__t_sector_hit_rate.pct"), one(kL2Bytes), one("lts__t_sectors_op_read.sum"),
          one("lts__t_sectors_op_write.sum"),
          one("lts__throughput.avg.pct_of_peak_sustained_elapsed")}},
        {"dram",
         {one(kDramBytes), kDramRead, kDramWrite, one("dram__bytes.sum.per_second"),
          one("dram__throughput.avg.pct_of_peak_sustained_elapsed")}},
        {"roofline", roofline},
        {"stalls",
         {one("smsp__average_warps_active_per_issue_active.ratio"),
          one("smsp__issue_active.avg.pct_of_peak_sustained_active"),
          {{}, "smsp__average_warps_issue_stalled_(?!.*_pipe_).*_per_issue_active", ".ratio"}}},
        {"atomics",
         {one("l1tex__t_requests_pipe_lsu_mem_global_op_atom.sum"),
          one("l1tex__t_requests_pipe_lsu_mem_global_op_red.sum"),
          one("lts__t_sectors_op_atom.sum"), one("lts__t_sectors_op_red.sum"),
          one("smsp__inst_executed_op_shared_atom.sum"),
          one("l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_atom.sum")}},
        {"bank_conflicts",
         {one("l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum"),
          one("l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum"),
          one("l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum"),
          one("l1tex__data_pipe_lsu_wavefronts_mem_shared.sum")}},
        {"speed_of_light",
         {one(kTime), one("sm__throughput.avg.pct_of_peak_sustained_elapsed"),
          one("gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"),
          one("l1tex__throughput.avg.pct_of_peak_sustained_active"),
          one("lts__throughput.avg.pct_of_peak_sustained_elapsed"),
          one("gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed")}}};
  }();
  return all;
}

const std::vector<Entry>& entries_of(const std::string& preset) {
  for (const auto& [name, entries] : table())
    if (name == preset) return entries;
  throw std::logic_error("no preset is called " + preset);
}

std::vector<std::string> matching(const Entry& entry, const Chip& chip) {
  std::vector<std::string> names;
  const std::regex pattern(entry.pattern);
  for (const MetricInfo& metric : chip.metrics())
    if (std::regex_match(metric.name, pattern)) names.push_back(metric.name + entry.sub_metric);
  return names;
}

}  // namespace

const std::vector<std::string>& presets() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list;
    for (const auto& [name, entries] : table()) list.push_back(name);
    return list;
  }();
  return names;
}

PresetMetrics metrics_of(const std::string& preset, const Chip& chip) {
  PresetMetrics result;
  for (const Entry& entry : entries_of(preset)) {
    if (entry.names.empty()) {
      const auto names = matching(entry, chip);
      result.metrics.insert(result.metrics.end(), names.begin(), names.end());
      continue;
    }
    const auto known = std::find_if(entry.names.begin(), entry.names.end(),
                                    [&](const std::string& name) { return chip.has(name); });
    if (known != entry.names.end())
      result.metrics.push_back(*known);
    else
      result.missing.push_back(entry.names.front());
  }
  return result;
}

std::vector<Derived> derived_of(const std::string& preset, const Chip& chip) {
  if (preset != "roofline") return {};
  std::vector<Derived> all;
  for (const auto& [name, type] :
       {std::pair{"flop_fp64", "d"}, std::pair{"flop_fp32", "f"}, std::pair{"flop_fp16", "h"}}) {
    const auto count = [t = std::string(type)](const char* operation) {
      return thread_instructions(t + operation);
    };
    all.push_back({name, "flop", {{count("add"), 1}, {count("mul"), 1}, {count("fma"), 2}}});
  }
  Derived tensor{"op_tensor", "op", {}};
  for (const std::string& name : matching(kTensor, chip)) tensor.terms.push_back({name, 1});
  all.push_back(tensor);
  return all;
}

}  // namespace lloyd::profiling
