// Versions that misbehave, one way each. They are in run_experiment_faulty only.
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <limits>
#include <stdexcept>
#include <thread>

#include "kernels/version.h"

namespace lloyd {
namespace {

// Answers with zeros, which is wrong, unless the fault strikes first.
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
struct Throws : Faulty {
  void run(Context&) override { throw std::runtime_error("the flux is out of phase"); }
};
struct Wrong : Faulty {};
struct NotANumber : Faulty {
  Solution fetch(Context& context) override {
    Solution s = Faulty::fetch(context);
    s.centroids[0] = std::numeric_limits<double>::quiet_NaN();
    return s;
  }
};
struct Greedy : Faulty {
  void prepare(const Problem&, Context&) override { throw std::bad_alloc(); }
};

VersionInfo info(const char* name) {
  return {.name = name, .family = "faulty", .summary = "misbehaves on purpose", .unsupported = {}};
}

[[maybe_unused]] const bool registered = [] {
  register_version(info("faulty_killed"),
                   []() -> std::unique_ptr<Version> { return std::make_unique<Killed>(); });
  register_version(info("faulty_crashes"),
                   []() -> std::unique_ptr<Version> { return std::make_unique<Crashes>(); });
  register_version(info("faulty_hangs"),
                   []() -> std::unique_ptr<Version> { return std::make_unique<Hangs>(); });
  register_version(info("faulty_exits"),
                   []() -> std::unique_ptr<Version> { return std::make_unique<Exits>(); });
  register_version(info("faulty_throws"),
                   []() -> std::unique_ptr<Version> { return std::make_unique<Throws>(); });
  register_version(info("faulty_wrong"),
                   []() -> std::unique_ptr<Version> { return std::make_unique<Wrong>(); });
  register_version(info("faulty_nan"),
                   []() -> std::unique_ptr<Version> { return std::make_unique<NotANumber>(); });
  register_version(info("faulty_greedy"),
                   []() -> std::unique_ptr<Version> { return std::make_unique<Greedy>(); });
  return true;
}();

}  // namespace
}  // namespace lloyd
