// Versions that each misbehave in one way. Only run_experiment_faulty contains them.
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <stdexcept>
#include <thread>

#include "kernels/core/chooser.h"
#include "kernels/core/version.h"

namespace lloyd {
namespace {

// Answers with zeros, which is wrong, unless the fault occurs first.
class Faulty : public Version {
 public:
  void prepare(const Problem& problem, Context&) override { problem_ = problem; }
  void run(Context&) override {}
  Solution fetch(Context&) override {
    return {std::vector<std::int32_t>(static_cast<std::size_t>(problem_.n)),
            std::vector<double>(problem_.centroids.size()), problem_.stop.iterations};
  }

 protected:
  Problem problem_;
};

struct Killed : Faulty {
  void run(Context&) override { raise(SIGKILL); }
};
struct Crashes : Faulty {
  void run(Context&) override {
    std::signal(SIGSEGV, SIG_DFL);
    raise(SIGSEGV);
  }
};
struct Hangs : Faulty {
  void run(Context&) override { std::this_thread::sleep_for(std::chrono::hours(1)); }
};
struct Exits : Faulty {
  void run(Context&) override { _exit(3); }
};
// Leaves a daemon that keeps every open descriptor of this process, including the pipe to the
// supervisor.
struct Forks : Faulty {
  void run(Context&) override {
    if (fork() != 0) return;
    setsid();
    if (fork() == 0) std::this_thread::sleep_for(std::chrono::hours(1));
    _exit(0);
  }
};
struct ForksAndDies : Forks {
  void run(Context& context) override {
    Forks::run(context);
    raise(SIGKILL);
  }
};
struct Throws : Faulty {
  void run(Context&) override { throw std::runtime_error("the flux is out of phase"); }
};
struct Wrong : Faulty {};
// Its labels are others in each solve, as those of a data race may be.
struct Races : Faulty {
  Solution fetch(Context& context) override {
    static int solves = 0;
    Solution solution = Faulty::fetch(context);
    solution.labels[0] = ++solves % problem_.k;
    return solution;
  }
};
struct NotANumber : Faulty {
  Solution fetch(Context& context) override {
    Solution s = Faulty::fetch(context);
    s.centroids[0] = std::numeric_limits<double>::quiet_NaN();
    return s;
  }
};
// Correct within any bound, but the last bits of one centroid differ from call to call.
struct Wanders : Version {
  void prepare(const Problem& problem, Context& context) override {
    version_->prepare(problem, context);
  }
  void run(Context& context) override { version_->run(context); }
  Solution fetch(Context& context) override {
    static int calls = 0;
    Solution s = version_->fetch(context);
    s.centroids[1] *= 1 + 0x1p-52 * (++calls % 8);
    return s;
  }

 private:
  std::unique_ptr<Version> version_ = find_version("cpu_sequential")->make();
};
// Correct, but slow enough that a test can kill it between two samples.
struct Slow : Version {
  void prepare(const Problem& problem, Context& context) override {
    version_->prepare(problem, context);
  }
  void run(Context& context) override {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    version_->run(context);
  }
  Solution fetch(Context& context) override { return version_->fetch(context); }

 private:
  std::unique_ptr<Version> version_ = find_version("cpu_sequential")->make();
};
// Correct in its first solve, and never done with the second.
struct HangsInTheSecondSolve : Version {
  void prepare(const Problem& problem, Context& context) override {
    version_->prepare(problem, context);
  }
  void run(Context& context) override {
    static int solves = 0;
    if (++solves > 1) std::this_thread::sleep_for(std::chrono::hours(1));
    version_->run(context);
  }
  Solution fetch(Context& context) override { return version_->fetch(context); }

 private:
  std::unique_ptr<Version> version_ = find_version("cpu_sequential")->make();
};
struct Greedy : Faulty {
  void prepare(const Problem&, Context&) override { throw std::bad_alloc(); }
};

// Correct in the first process that runs it, faulty in every later one. The file
// $LLOYDBENCH_TEST_FIRST stores the id of the first process.
template <typename Fault>
struct Later : Version {
  void prepare(const Problem& problem, Context& context) override {
    version_ = is_first() ? find_version("cpu_sequential")->make() : std::make_unique<Fault>();
    version_->prepare(problem, context);
  }
  void run(Context& context) override { version_->run(context); }
  Solution fetch(Context& context) override { return version_->fetch(context); }

 private:
  static bool is_first() {
    const char* file = std::getenv("LLOYDBENCH_TEST_FIRST");
    pid_t first = 0;
    if (std::ifstream(file) >> first) return first == getpid();
    std::ofstream(file) << getpid();
    return true;
  }
  std::unique_ptr<Version> version_;
};

// Has no fault: does what fast_auto does, but needs no GPU.
struct Delegates : Version, Chooser {
  void prepare(const Problem& problem, Context& context) override {
    version_->prepare(problem, context);
  }
  void run(Context& context) override { version_->run(context); }
  Solution fetch(Context& context) override { return version_->fetch(context); }
  std::string chosen() const override { return "cpu_sequential"; }
  std::string chosen_by() const override { return "estimated"; }

 private:
  std::unique_ptr<Version> version_ = find_version("cpu_sequential")->make();
};

VersionInfo info(const char* name) {
  return {.name = name, .family = "faulty", .summary = "misbehaves on purpose", .unsupported = {}};
}

[[maybe_unused]] const bool registered = [] {
  register_version(info("faulty_killed"),
                   []() -> std::unique_ptr<Version> { return std::make_unique<Killed>(); });
  register_version(info("faulty_forks"),
                   []() -> std::unique_ptr<Version> { return std::make_unique<Forks>(); });
  register_version(info("faulty_forks_and_dies"),
                   []() -> std::unique_ptr<Version> { return std::make_unique<ForksAndDies>(); });
  register_version(info("faulty_crashes"),
                   []() -> std::unique_ptr<Version> { return std::make_unique<Crashes>(); });
  register_version(info("faulty_hangs"),
                   []() -> std::unique_ptr<Version> { return std::make_unique<Hangs>(); });
  register_version(info("faulty_hangs_in_the_second_solve"), []() -> std::unique_ptr<Version> {
    return std::make_unique<HangsInTheSecondSolve>();
  });
  register_version(info("faulty_exits"),
                   []() -> std::unique_ptr<Version> { return std::make_unique<Exits>(); });
  register_version(info("faulty_throws"),
                   []() -> std::unique_ptr<Version> { return std::make_unique<Throws>(); });
  register_version(info("faulty_wrong"),
                   []() -> std::unique_ptr<Version> { return std::make_unique<Wrong>(); });
  register_version(info("faulty_races"),
                   []() -> std::unique_ptr<Version> { return std::make_unique<Races>(); });
  register_version(info("faulty_nan"),
                   []() -> std::unique_ptr<Version> { return std::make_unique<NotANumber>(); });
  for (const bool reproducible : {false, true}) {
    VersionInfo wanders = info(reproducible ? "faulty_promises" : "faulty_wanders");
    wanders.reproducible = reproducible;
    register_version(wanders,
                     []() -> std::unique_ptr<Version> { return std::make_unique<Wanders>(); });
  }
  register_version(info("faulty_slow"),
                   []() -> std::unique_ptr<Version> { return std::make_unique<Slow>(); });
  register_version(info("faulty_wrong_later"),
                   []() -> std::unique_ptr<Version> { return std::make_unique<Later<Wrong>>(); });
  register_version(info("faulty_greedy"),
                   []() -> std::unique_ptr<Version> { return std::make_unique<Greedy>(); });
  register_version(info("faulty_delegates"),
                   []() -> std::unique_ptr<Version> { return std::make_unique<Delegates>(); });
  register_version(info("faulty_crashes_later"),
                   []() -> std::unique_ptr<Version> { return std::make_unique<Later<Crashes>>(); });
  register_version(info("faulty_hangs_later"),
                   []() -> std::unique_ptr<Version> { return std::make_unique<Later<Hangs>>(); });
  return true;
}();

}  // namespace
}  // namespace lloyd
