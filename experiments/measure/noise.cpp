#include "experiments/measure/noise.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "experiments/process/clock.h"
#include "kernels/core/limits.h"

namespace lloyd {
namespace {

namespace fs = std::filesystem;

constexpr double kWindowMs = 500;    // 50 ticks of /proc/stat on each core
constexpr double kShortestMs = 100;  // below this, ticks are too coarse
constexpr double kSwitchMs = 0.1, kSwitchShare = 0.01;
constexpr double kOtherCores = 0.2;
constexpr double kOtherGpuPercent = 5;

std::string read_text(const fs::path& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

std::optional<pid_t> pid_named(const fs::path& path) {
  const std::string name = path.filename().string();
  pid_t pid = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
  if (error != std::errc() || end != name.data() + name.size()) return std::nullopt;
  return pid;
}

// Fields of /proc/PID/stat (proc(5)). cpu_s includes children that have ended.
struct Stat {
  pid_t parent = 0;
  std::int64_t minor_faults = 0, major_faults = 0;
  double cpu_s = 0;
};

std::optional<Stat> read_stat(pid_t pid) {
  const std::string text = read_text(fmt::format("/proc/{}/stat", pid));
  const std::size_t name_end = text.rfind(')');  // the name may contain any character
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(text.substr(name_end + 1));
  std::string state, skipped;
  Stat stat;
  std::int64_t user = 0, system = 0, child_user = 0, child_system = 0;
  fields >> state >> stat.parent;
  for (int i = 0; i < 5; ++i) fields >> skipped;  // pgrp … flags
  fields >> stat.minor_faults >> skipped >> stat.major_faults >> skipped;
  fields >> user >> system >> child_user >> child_system;
  if (!fields) return std::nullopt;
  stat.cpu_s = static_cast<double>(user + system + child_user + child_system) /
               static_cast<double>(sysconf(_SC_CLK_TCK));
  return stat;
}

// `root` and its descendants.
std::map<pid_t, Stat> read_tree(pid_t root) {
  std::map<pid_t, Stat> all;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/proc", error))
    if (const auto pid = pid_named(entry.path()))
      if (const auto stat = read_stat(*pid)) all[*pid] = *stat;
  std::map<pid_t, Stat> tree;
  for (const auto& [pid, stat] : all) {
    pid_t at = pid;
    // The step limit ends the loop: a process that changed its parent between two reads can create
    // a cycle. A process that ended leaves a gap.
    for (std::size_t steps = 0; at != root && all.contains(at) && steps < all.size(); ++steps)
      at = all.at(at).parent;
    if (at == root) tree[pid] = stat;
  }
  return tree;
}

// Sums the number after `key` in `file` over all threads of a process.
std::optional<std::int64_t> sum_over_threads(pid_t pid, const char* file, std::string_view key) {
  std::optional<std::int64_t> sum;
  std::error_code error;
  for (const auto& thread : fs::directory_iterator(fmt::format("/proc/{}/task", pid), error)) {
    std::ifstream in(thread.path() / file);
    for (std::string line; std::getline(in, line);) {
      if (line.rfind(key, 0) != 0) continue;
      sum = sum.value_or(0) + std::strtoll(line.c_str() + line.find(':') + 1, nullptr, 10);
      break;
    }
  }
  return sum;
}

}  // namespace

std::optional<CpuReading> read_cpu(pid_t root) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(root, sizeof allowed, &allowed) != 0) return std::nullopt;
  CpuReading reading;
  std::ifstream in("/proc/stat");
  std::int64_t busy = 0;
  for (std::string line; std::getline(in, line) && line.rfind("cpu", 0) == 0;) {
    int cpu = 0;
    std::int64_t user = 0, nice = 0, system = 0, idle = 0, wait = 0, irq = 0, soft_irq = 0,
                 steal = 0;
    std::istringstream fields(line.substr(3));
    if (line[3] == ' ' || !(fields >> cpu) || cpu >= CPU_SETSIZE || !CPU_ISSET(cpu, &allowed))
      continue;
    fields >> user >> nice >> system >> idle >> wait >> irq >> soft_irq >> steal;
    busy += user + nice + system + irq + soft_irq + steal;  // steal: used by other guests
    ++reading.cores;
  }
  if (reading.cores == 0) return std::nullopt;
  reading.busy_s = static_cast<double>(busy) / static_cast<double>(sysconf(_SC_CLK_TCK));
  for (const auto& [pid, stat] : read_tree(root)) reading.own_s += stat.cpu_s;
  reading.at_ms = now_ms();
  return reading;
}

double others_between(const CpuReading& first, const CpuReading& last) {
  const double others = (last.busy_s - first.busy_s) - (last.own_s - first.own_s);
  return std::max(0.0, others / (last.at_ms - first.at_ms) * 1e3);
}

std::vector<std::string> disturbances(const Noise& noise, double ms, double needed, int cores) {
  std::vector<std::string> reasons;
  if (const std::int64_t switches = noise.involuntary_switches.value_or(0);
      static_cast<double>(switches) * kSwitchMs > kSwitchShare * ms)
    reasons.push_back(
        fmt::format("{} involuntary context switch{} in {} ms", switches, switches == 1 ? "" : "es",
                    ms < 1e3 ? fmt::format("{:.3g}", ms) : with_commas(std::llround(ms))));
  if (const std::int64_t faults = noise.disk_page_faults.value_or(0); faults > 0)
    reasons.push_back(fmt::format("{} page{} read from disk", faults, faults == 1 ? "" : "s"));
  if (const double others = noise.other_cpu.value_or(0);
      others > std::max(0.0, cores - needed) + kOtherCores)
    reasons.push_back(fmt::format("other processes used {:.1f} of {} core{}", others, cores,
                                  cores == 1 ? "" : "s"));
  if (const double percent = noise.other_gpu.value_or(0); percent >= kOtherGpuPercent)
    reasons.push_back(fmt::format("other processes used {:.0f}% of the GPU", percent));
  return reasons;
}

void fill_noise(Row& row, const Noise& noise) {
  row["noisy"] = !noise.reasons.empty();
  row["noise"] = {{"involuntary_switches", or_null(noise.involuntary_switches)},
                  {"page_faults", or_null(noise.page_faults)},
                  {"migrations", or_null(noise.migrations)},
                  {"other_cpu", or_null(noise.other_cpu)},
                  {"other_gpu", or_null(noise.other_gpu)},
                  {"reasons", noise.reasons}};
}

NoiseMeter::NoiseMeter(Watched watched) : watched_(std::move(watched)) {
  if (const auto reading = read_cpu(watched_.run)) readings_.push_back(*reading);
}

void NoiseMeter::begin(std::optional<double> needed, std::size_t gpus) {
  needed_ = needed;
  gpus_ = gpus;
  if (watched_.gpus && watched_.solvers != 0 && !solvers_found_) find_solvers_on_gpus();
  if (const auto reading = read_cpu(watched_.run)) readings_.push_back(*reading);
  migrations_ = sum_over_threads(getpid(), "sched", "se.nr_migrations");
}

void NoiseMeter::start() {
  before_ = read_solvers();
  started_ms_ = now_ms();
}

void NoiseMeter::stop() {
  stopped_ms_ = now_ms();
  after_ = read_solvers();
}

Noise NoiseMeter::noise() {
  Noise noise;
  noise.involuntary_switches = std::max<std::int64_t>(0, after_.switches - before_.switches);
  noise.page_faults = std::max<std::int64_t>(0, after_.faults - before_.faults);
  noise.disk_page_faults = std::max<std::int64_t>(0, after_.disk_faults - before_.disk_faults);
  if (const auto now = sum_over_threads(getpid(), "sched", "se.nr_migrations"); now && migrations_)
    noise.migrations = std::max<std::int64_t>(0, *now - *migrations_);
  int cores = 0;
  if (const auto now = read_cpu(watched_.run)) {
    cores = now->cores;
    // Use the latest reading that is at least kWindowMs old, else the earliest reading.
    while (readings_.size() > 1 && now->at_ms - readings_[1].at_ms >= kWindowMs)
      readings_.pop_front();
    if (!readings_.empty() && now->at_ms - readings_.front().at_ms >= kShortestMs) {
      const CpuReading& then = readings_.front();
      noise.other_cpu = others_between(then, *now);
      noise.own_cpu = (now->own_s - then.own_s) / (now->at_ms - then.at_ms) * 1e3;
    }
    readings_.push_back(*now);
  }
  if (const auto& gpus = watched_.gpus)
    for (std::size_t i = 0; i < std::min(gpus_, gpus->uuids.size()); ++i)
      if (const auto used = gpus->nvml->others_percent(gpus->uuids[i], gpus->own))
        noise.other_gpu = std::max(noise.other_gpu.value_or(0), *used);
  const double needed = needed_.value_or(std::max(1.0, noise.own_cpu.value_or(1)));
  noise.reasons = disturbances(noise, stopped_ms_ - started_ms_, needed, cores);
  return noise;
}

// Called at every sample until it finds some, because a solver reaches the GPU in its first solve.
void NoiseMeter::find_solvers_on_gpus() {
  WatchedGpus& gpus = *watched_.gpus;
  for (const std::string& uuid : gpus.uuids)
    for (const unsigned process : gpus.nvml->processes(uuid).value_or(std::set<unsigned>{}))
      if (!gpus.others.contains(process) && gpus.own.insert(process).second) solvers_found_ = true;
}

NoiseMeter::Solvers NoiseMeter::read_solvers() const {
  rusage self{};
  getrusage(RUSAGE_SELF, &self);  // includes threads that have ended
  Solvers solvers{self.ru_nivcsw, self.ru_minflt + self.ru_majflt, self.ru_majflt};
  if (watched_.solvers == 0) return solvers;
  for (const auto& [pid, stat] : read_tree(watched_.solvers)) {
    if (pid == getpid()) continue;
    solvers.switches += sum_over_threads(pid, "status", "nonvoluntary_ctxt_switches").value_or(0);
    solvers.faults += stat.minor_faults + stat.major_faults;
    solvers.disk_faults += stat.major_faults;
  }
  return solvers;
}

Load measure_load(profiling::Nvml* nvml, const std::vector<std::string>& gpus) {
  Load load;
  const auto first = read_cpu(getpid());
  usleep(static_cast<useconds_t>(kWindowMs * 1e3));
  const auto last = read_cpu(getpid());
  if (first && last) {
    load.other_cpu = others_between(*first, *last);
    load.cores = last->cores;
  }
  std::set<unsigned> all;
  for (const std::string& gpu : gpus)
    if (const auto running = nvml == nullptr ? std::nullopt : nvml->processes(gpu)) {
      all.insert(running->begin(), running->end());
      load.gpu_processes = all.size();
    }
  return load;
}

nlohmann::ordered_json to_json(const Load& load) {
  return {{"other_cpu", or_null(load.other_cpu)},
          {"cores", load.cores},
          {"seconds", kWindowMs / 1e3},
          {"gpu_processes", or_null(load.gpu_processes)}};
}

std::string to_text(const Load& load) {
  std::string text = load.other_cpu ? fmt::format("others use {:.1f} of {} core{}", *load.other_cpu,
                                                  load.cores, load.cores == 1 ? "" : "s")
                                    : "of the CPU unknown (/proc does not say)";
  if (load.gpu_processes)
    text += *load.gpu_processes == 0 ? ", no process on the GPU"
            : *load.gpu_processes == 1
                ? ", 1 process on the GPU"
                : fmt::format(", {} processes on the GPU", *load.gpu_processes);
  return text;
}

}  // namespace lloyd
