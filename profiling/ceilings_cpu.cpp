// The CPU's ceilings on all cores, by McCalpin's STREAM loops and by chains of FMAs. The loops are
// compiled for each instruction set and chosen at run time, so that one program reaches the
// ceilings of every machine.
#include <fmt/format.h>
#include <omp.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "profiling/ceilings.h"

namespace lloyd::profiling {
namespace {

constexpr int kSamples = 15;
constexpr double kSampleMs = 30;

template <typename T, int bytes>
using Vector [[gnu::vector_size(bytes)]] = T;

// Two FMAs per cycle with a latency of four cycles need eight chains. Ten chains and the two
// factors fit 16 registers.
constexpr int kChains = 10;

template <typename T, int bytes>
[[gnu::always_inline]] inline double fma_chains(std::int64_t rounds) {
  using V = Vector<T, bytes>;
  V x[kChains], a = V{} + T(0.999), b = V{} + T(0.5);
  for (int i = 0; i < kChains; ++i) x[i] = V{} + T(i);
  for (std::int64_t round = 0; round < rounds; ++round)
    for (int i = 0; i < kChains; ++i) x[i] = x[i] * a + b;
  V sum = x[0];
  for (int i = 1; i < kChains; ++i) sum += x[i];
  return static_cast<double>(sum[0]);
}

template <int bytes>
[[gnu::always_inline]] inline float sum_of(const float* from, std::int64_t count) {
  using V = Vector<float, bytes>;
  constexpr std::int64_t kLanes = bytes / 4;
  V sums[4] = {};
  for (std::int64_t i = 0; i + 4 * kLanes <= count; i += 4 * kLanes)
    for (std::int64_t u = 0; u < 4; ++u) {
      V v;
      std::memcpy(&v, from + i + u * kLanes, sizeof v);
      sums[u] += v;
    }
  const V sum = sums[0] + sums[1] + sums[2] + sums[3];
  return sum[0];
}

[[gnu::always_inline]] inline void triad_of(float* a, const float* b, const float* c,
                                            std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) a[i] = b[i] + 0.4f * c[i];
}

struct Kernels {
  const char* instructions;
  int bytes;  // of a vector register
  double (*fma_fp32)(std::int64_t);
  double (*fma_fp64)(std::int64_t);
  float (*sum)(const float*, std::int64_t);
  void (*triad)(float*, const float*, const float*, std::int64_t);
};

#define LLOYD_KERNELS_FOR(suffix, bytes, ...)                                                    \
  __VA_ARGS__ double fma_fp32_##suffix(std::int64_t r) { return fma_chains<float, bytes>(r); }   \
  __VA_ARGS__ double fma_fp64_##suffix(std::int64_t r) { return fma_chains<double, bytes>(r); }  \
  __VA_ARGS__ float sum_##suffix(const float* f, std::int64_t n) { return sum_of<bytes>(f, n); } \
  __VA_ARGS__ void triad_##suffix(float* a, const float* b, const float* c, std::int64_t n) {    \
    triad_of(a, b, c, n);                                                                        \
  }                                                                                              \
  Kernels kernels_##suffix(const char* name) {                                                   \
    return {name, bytes, fma_fp32_##suffix, fma_fp64_##suffix, sum_##suffix, triad_##suffix};    \
  }

#if defined(__x86_64__)
LLOYD_KERNELS_FOR(avx512, 64, [[gnu::target("avx512f,avx2,fma")]])
LLOYD_KERNELS_FOR(avx2, 32, [[gnu::target("avx2,fma")]])
#endif
LLOYD_KERNELS_FOR(baseline, 16)
#undef LLOYD_KERNELS_FOR

Kernels best_kernels() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("fma"))
    return kernels_avx512("AVX-512");
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return kernels_avx2("AVX2");
  return kernels_baseline("SSE2, which has no FMA");
#else
  return kernels_baseline("the architecture's 16-byte vectors");
#endif
}

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

class Bench {
 public:
  Bench(int cores, const Announce& announce) : cores_(cores), announce_(announce) {}

  std::vector<Ceiling> run() {
    memory();
    fma();
    caches();
    fma();
    return std::move(results_);
  }

 private:
  // body(core, times) does the work `times` times on one core. What is measured again adds samples.
  template <typename Body>
  void take(const std::string& name, const char* unit, std::string method, double work,
            Body&& body) {
    announce_(fmt::format("{}: {}", name, method));
    auto ceiling = std::ranges::find_if(
        results_, [&](const Ceiling& c) { return c.name == name && c.method == method; });
    if (ceiling == results_.end())
      ceiling = results_.insert(ceiling, {name, unit, std::move(method), {}, {}, {}});
    const double scale = std::string_view(unit) == "GB/s" ? 1e9 : 1e12;
    std::int64_t times = 1;
    double spent = timed(times, body).seconds;
    for (; spent < kSampleMs / 1e3; spent = timed(times, body).seconds)
      times = std::max(times * 2, static_cast<std::int64_t>(static_cast<double>(times) * kSampleMs /
                                                            1e3 / std::max(spent, 1e-6)));
    for (int sample = 0; sample < kSamples; ++sample)
      ceiling->samples.push_back(work * timed(times, body).per_second / scale);
  }

  struct Timed {
    double seconds;     // until the last core is done
    double per_second;  // the rates of all cores together
  };

  // All cores start together. Their rates are added, so that a core which another machine uses too
  // does not lower those of the others.
  template <typename Body>
  Timed timed(std::int64_t times, Body& body) const {
    double longest = 0, rates = 0;
#pragma omp parallel num_threads(cores_) reduction(max : longest) reduction(+ : rates)
    {
#pragma omp barrier
      const double start = now();
      body(omp_get_thread_num(), times);
      longest = now() - start;
      rates = static_cast<double>(times) / longest;
    }
    return {longest, rates};
  }

  void memory() {
    // STREAM requires each array to be at least four times as large as the caches. A sixteenth of
    // the memory is a limit that takes precedence.
    const std::int64_t memory =
        static_cast<std::int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
    const std::int64_t wanted = std::max(4 * cpu_cache_bytes(), std::int64_t{256} << 20);
    const std::int64_t each =
        std::min(wanted, memory / 16) / cores_ / 4096 * 1024;  // floats per core
    const auto floats = static_cast<std::size_t>(each);
    // Each core touches its pages first, which places them in its own NUMA node.
    std::vector<std::unique_ptr<float[]>> a(static_cast<std::size_t>(cores_)), b(a.size()),
        c(a.size());
#pragma omp parallel num_threads(cores_)
    {
      const auto core = static_cast<std::size_t>(omp_get_thread_num());
      for (auto* array : {&a, &b, &c}) {
        (*array)[core] = std::make_unique_for_overwrite<float[]>(floats);
        std::fill_n((*array)[core].get(), floats, 1.0f);
      }
    }
    const double bytes = 4.0 * static_cast<double>(each);
    const std::string size =
        fmt::format("arrays of {} MiB, {} cores", each * 4 * cores_ >> 20, cores_);
    const auto at = [](auto& arrays, int core) {
      return arrays[static_cast<std::size_t>(core)].get();
    };
    take("cpu_copy", "GB/s", "memcpy, bytes read and written, " + size, 2 * bytes,
         [&](int core, std::int64_t times) {
           for (; times > 0; --times) std::memcpy(at(a, core), at(b, core), floats * 4);
         });
    take("cpu_triad", "GB/s",
         fmt::format("STREAM triad a = b + s·c, {}, bytes read and written, {}",
                     kernels_.instructions, size),
         3 * bytes, [&](int core, std::int64_t times) {
           for (; times > 0; --times) kernels_.triad(at(a, core), at(b, core), at(c, core), each);
         });
    take("cpu_read", "GB/s", fmt::format("sum, {}, {}", kernels_.instructions, size), bytes,
         [&](int core, std::int64_t times) {
           for (; times > 0; --times) keep(kernels_.sum(at(b, core), each));
         });
  }

  // Every core reads a part of its own, which the level above cannot hold. A shared cache may hold
  // less than it reports, because other machines use it too: so a small part is tried as well.
  void caches() {
    std::int64_t above = 0;
    for (const CacheLevel& cache : cpu_caches()) {
      const std::int64_t share = cache.bytes / cores_;
      const std::int64_t large = above + share / 2;
      cache_read(cache.level, large);
      if (above > 0 && 2 * above < large) cache_read(cache.level, 2 * above);
      above = share;
    }
  }

  void cache_read(int level, std::int64_t bytes) {
    const auto floats = static_cast<std::size_t>(bytes / 4);
    std::vector<std::unique_ptr<float[]>> parts(static_cast<std::size_t>(cores_));
#pragma omp parallel num_threads(cores_)
    {
      auto& part = parts[static_cast<std::size_t>(omp_get_thread_num())];
      part = std::make_unique_for_overwrite<float[]>(floats);
      std::fill_n(part.get(), floats, 1.0f);
    }
    take(fmt::format("cpu_l{}_read", level), "GB/s",
         fmt::format("sum of {} KiB per core that stay in L{}, {}, {} cores", bytes >> 10, level,
                     kernels_.instructions, cores_),
         4.0 * static_cast<double>(floats), [&](int core, std::int64_t times) {
           const float* from = parts[static_cast<std::size_t>(core)].get();
           for (; times > 0; --times) {
             asm volatile("" : "+r"(from) : : "memory");
             keep(kernels_.sum(from, static_cast<std::int64_t>(floats)));
           }
         });
  }

  // Measured at two times, because the clock of a machine that others share changes.
  void fma() {
    fma("cpu_fp32_fma", kernels_.fma_fp32, 4);
    fma("cpu_fp64_fma", kernels_.fma_fp64, 8);
  }

  void fma(const char* name, double (*chains)(std::int64_t), int element_bytes) {
    constexpr std::int64_t kRounds = 1 << 16;
    const int lanes = kernels_.bytes / element_bytes;
    take(name, "TFLOP/s",
         fmt::format("{} chains of FMAs of {} lanes, {}, {} cores", kChains, lanes,
                     kernels_.instructions, cores_),
         2.0 * kChains * lanes * kRounds,
         [&](int, std::int64_t times) { keep(chains(times * kRounds)); });
  }

  template <typename T>
  static void keep(T value) {
    asm volatile("" : : "m"(value));
  }

  int cores_;
  const Announce& announce_;
  Kernels kernels_ = best_kernels();
  std::vector<Ceiling> results_;
};

}  // namespace

std::vector<Ceiling> measure_cpu_ceilings(int cores, const Announce& announce) {
  return Bench(cores, announce).run();
}

std::vector<CacheLevel> cpu_caches() {
  cpu_set_t own;
  if (sched_getaffinity(0, sizeof own, &own) != 0) return {};
  std::set<std::string> seen;  // every core that shares a cache lists it
  std::map<int, std::int64_t> bytes;
  for (int core = 0; core < CPU_SETSIZE; ++core)
    for (int index = 0; CPU_ISSET(core, &own); ++index) {
      const std::string folder =
          fmt::format("/sys/devices/system/cpu/cpu{}/cache/index{}/", core, index);
      std::string sharers, size, type;
      int level = 0;
      std::ifstream(folder + "level") >> level;
      std::ifstream(folder + "type") >> type;
      std::ifstream(folder + "shared_cpu_list") >> sharers;
      std::ifstream(folder + "size") >> size;  // "1024K"
      if (size.empty()) break;
      if (type != "Instruction" && seen.insert(fmt::format("{} {}", level, sharers)).second)
        bytes[level] += std::stoll(size) << 10;
    }
  std::vector<CacheLevel> levels;
  for (const auto& [level, sum] : bytes) levels.push_back({level, sum});
  return levels;
}

std::int64_t cpu_cache_bytes() {
  std::int64_t sum = 0;
  for (const CacheLevel& cache : cpu_caches())
    if (cache.level >= 2) sum += cache.bytes;
  return sum;
}

}  // namespace lloyd::profiling
