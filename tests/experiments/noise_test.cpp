#include "experiments/measure/noise.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>

#include "experiments/record/point_noise.h"
#include "tests/experiments/quiet_gpu.h"

namespace lloyd {
namespace {

Noise other_cpu(double cores) {
  Noise noise;
  noise.other_cpu = cores;
  return noise;
}

TEST(Disturbances, OfTheCpuCountWhenTheVersionNeedsTheCores) {
  EXPECT_TRUE(disturbances(other_cpu(1.0), 10, 1, 2).empty());  // one core for each
  EXPECT_EQ(disturbances(other_cpu(1.9), 10, 1, 2),
            std::vector<std::string>{"other processes used 1.9 of 2 cores"});
  EXPECT_FALSE(disturbances(other_cpu(0.5), 10, 2, 2).empty());
  EXPECT_TRUE(disturbances(other_cpu(0.1), 10, 2, 2).empty());  // services of a quiet machine
  // A GPU version needs one of the 16 cores. A CPU version with 16 threads needs all of them.
  EXPECT_TRUE(disturbances(other_cpu(1.0), 10, 1, 16).empty());
  EXPECT_FALSE(disturbances(other_cpu(1.0), 10, 16, 16).empty());
  // A version with more threads than cores needs all cores.
  EXPECT_FALSE(disturbances(other_cpu(0.3), 10, 64, 16).empty());
}

TEST(Disturbances, SwitchesCountByTheTimeTheyTake) {
  Noise noise;
  noise.involuntary_switches = 1;
  EXPECT_EQ(disturbances(noise, 0.28, 1, 2),
            std::vector<std::string>{"1 involuntary context switch in 0.28 ms"});
  EXPECT_TRUE(disturbances(noise, 100, 1, 2).empty());
  noise.involuntary_switches = 100;
  EXPECT_FALSE(disturbances(noise, 100, 1, 2).empty());
}

TEST(Disturbances, PagesCountWhenTheyWereRead) {
  Noise noise;
  // A version's first access to new memory is not a disturbance.
  noise.page_faults = 100'000;
  EXPECT_TRUE(disturbances(noise, 10, 1, 2).empty());
  noise.disk_page_faults = 3;
  EXPECT_EQ(disturbances(noise, 10, 1, 2), std::vector<std::string>{"3 pages read from disk"});
}

TEST(Disturbances, OfTheGpuNameThePercentage) {
  Noise noise;
  noise.other_gpu = 35;
  EXPECT_EQ(disturbances(noise, 10, 1, 16),
            std::vector<std::string>{"other processes used 35% of the GPU"});
  noise.other_gpu = 1;
  EXPECT_TRUE(disturbances(noise, 10, 1, 16).empty());
}

TEST(FillNoise, LeavesWhatWasNotSeenNull) {
  Row row;
  fill_noise(row, Noise{});
  EXPECT_EQ(row.at("noisy"), false);
  for (const char* field :
       {"involuntary_switches", "page_faults", "migrations", "other_cpu", "other_gpu"})
    EXPECT_TRUE(row.at("noise").at(field).is_null()) << field;
  EXPECT_EQ(row.at("noise").at("reasons"), Row::array());
}

std::string noise_of(const std::vector<SampleNoise>& samples, double max_noise) {
  std::vector<double> ms;
  for (const SampleNoise& sample : samples) ms.push_back(sample.iteration_ms);
  return point_noise(samples, median_interval(ms), max_noise);
}

TEST(PointNoise, AQuarterOfTheSamplesIsEnough) {
  std::vector<SampleNoise> samples(8, SampleNoise{1.0, false, "", ""});
  EXPECT_EQ(noise_of(samples, 0.02), "");
  samples[3] = {9.0, true, "why", ""};
  EXPECT_EQ(noise_of(samples, 10), "");
  samples[4] = {9.0, true, "another", ""};
  EXPECT_EQ(noise_of(samples, 10), "noisy: 2 of 8 samples (why)");
}

TEST(PointNoise, AWideIntervalIsNamedWithItsWidth) {
  std::vector<SampleNoise> samples;
  for (int i = 0; i < 6; ++i) samples.push_back({i < 3 ? 0.9 : 1.1, false, "", ""});
  EXPECT_EQ(noise_of(samples, 0.02), "still noisy: interval ±10% after 6 samples");
  EXPECT_EQ(noise_of(samples, 0.2), "");
  samples.resize(5);  // no interval, so the noise is unknown
  EXPECT_EQ(noise_of(samples, 0.02), "");
}

TEST(PointNoise, AThrottledClockIsNamed) {
  const std::vector<SampleNoise> samples(4, SampleNoise{1.0, false, "", "hw_thermal"});
  EXPECT_EQ(noise_of(samples, 0.02), "throttled (hw_thermal): 4 of 4 samples");
}

// Busy loops in threads. The meter counts them as somebody else's.
class Busy {
 public:
  explicit Busy(int threads) {
    for (int i = 0; i < threads; ++i)
      threads_.emplace_back([this] {
        while (!stop_) {
        }
      });
  }
  ~Busy() {
    stop_ = true;
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  std::atomic<bool> stop_ = false;
  std::vector<std::thread> threads_;
};

TEST(ReadCpu, TellsOursFromOthers) {
  const auto now = read_cpu(getpid());
  if (!now) GTEST_SKIP() << "/proc does not say";
  ASSERT_GT(now->cores, 0);
  const Busy busy(1);
  const auto others = [](pid_t root) {
    const auto first = read_cpu(root);
    std::this_thread::sleep_for(std::chrono::milliseconds(600));
    const auto last = read_cpu(root);
    return std::make_pair(last->own_s - first->own_s, others_between(*first, *last));
  };
  const auto [own, besides] = others(getpid());
  EXPECT_GT(own, 0.02);  // our loop gets part of a core even on a busy machine
  // For an unrelated process, everything is other processes' work.
  const pid_t nobody = fork();
  if (nobody == 0) {
    pause();
    _exit(0);
  }
  const auto [none, all] = others(nobody);
  kill(nobody, SIGKILL);
  EXPECT_EQ(none, 0);
  EXPECT_GT(all, 0.02);
  static_cast<void>(besides);
}

TEST(NoiseMeter, NamesABusyNeighbour) {
  const auto cores = read_cpu(getpid());
  if (!cores) GTEST_SKIP() << "/proc does not say";
  // A neighbour whose busy loops use all cores.
  const pid_t neighbour = fork();
  if (neighbour == 0) {
    const Busy busy(2 * cores->cores);
    sleep(30);
    _exit(0);
  }
  NoiseMeter::Watched watched;
  watched.run = getpid();
  // The neighbour is our child, so watch from a process that is not its parent.
  const pid_t bystander = fork();
  if (bystander == 0) {
    pause();
    _exit(0);
  }
  watched.run = bystander;
  NoiseMeter meter(watched);
  meter.begin(cores->cores);
  meter.start();
  std::this_thread::sleep_for(std::chrono::milliseconds(1000));
  meter.stop();
  const Noise noise = meter.noise();
  for (const pid_t child : {neighbour, bystander}) kill(child, SIGKILL);
  ASSERT_TRUE(noise.other_cpu);
  bool named = false;
  for (const std::string& reason : noise.reasons)
    named |= reason.rfind("other processes used ", 0) == 0;
  EXPECT_TRUE(named) << *noise.other_cpu << " of " << cores->cores;
}

// A GPU that processes use with so many percent.
struct SharedGpu : QuietGpu {
  std::optional<std::set<unsigned>> processes(const std::string&) override {
    std::set<unsigned> all;
    for (const auto& [process, percent] : use) all.insert(process);
    return all;
  }
  std::optional<double> others_percent(const std::string&, const std::set<unsigned>& own) override {
    double percent = 0;
    for (const auto& [process, used] : use) percent += own.contains(process) ? 0 : used;
    return percent;
  }
  std::map<unsigned, double> use;
};

TEST(NoiseMeter, KnowsSolversThatReachTheGpuLater) {
  constexpr unsigned kOther = 7, kPeer = 21, kLateOther = 30;
  const auto gpu = std::make_shared<SharedGpu>();
  gpu->use = {{kOther, 0}};
  NoiseMeter::Watched watched{.run = getpid(), .solvers = getpid()};
  watched.gpus = WatchedGpus{gpu, {"GPU-1"}, {}, {kOther}};
  const auto others = [&](NoiseMeter& meter) {
    meter.begin(1);
    meter.start();
    meter.stop();
    return meter.noise().other_gpu;
  };
  NoiseMeter meter(watched);
  EXPECT_EQ(others(meter), 0);
  gpu->use[kPeer] = 90;  // the solver's first solve
  EXPECT_EQ(others(meter), 0) << "the peer disturbs nobody";
  gpu->use[kLateOther] = 20;
  EXPECT_EQ(others(meter), 20) << "who comes later is no solver";
  gpu->use[kOther] = 30;
  EXPECT_EQ(others(meter), 50);

  watched.solvers = 0;
  NoiseMeter alone(watched);
  EXPECT_EQ(others(alone), 140) << "without solvers of its own, every other process is another's";
}

}  // namespace
}  // namespace lloyd
