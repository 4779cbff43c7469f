#include "experiments/measure/ranks.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstring>
#include <iostream>
#include <map>

namespace lloyd {
namespace {

// A command from rank 0 to the others, sent as bytes.
struct Command {
  enum What { make, drop, prepare, run, fetch, evict, end } what = end;
  int instance = 0;
  char version[64] = "";
  std::int64_t n = 0;
  int k = 0, dim = 0;
  Precision precision = Precision::fp32;
  Stop stop;
  Tunables tunables;
};
static_assert(std::is_trivially_copyable_v<Command>);

// Waiting ranks sleep between two tests, so that rank 0 has the cores for data and verification.
constexpr int kNapMicroseconds = 100;

void broadcast(Command& command, MPI_Comm communicator) {
  MPI_Request request{};
  MPI_Ibcast(&command, sizeof command, MPI_BYTE, 0, communicator, &request);
  for (int arrived = 0; MPI_Test(&request, &arrived, MPI_STATUS_IGNORE), !arrived;)
    usleep(kNapMicroseconds);
}

// The milliseconds of the slowest rank.
double timed_run(Version& version, Context& context) {
  MPI_Barrier(context.communicator);
  const double start = now_ms();
  version.run(context);
  double spent = now_ms() - start;
  MPI_Allreduce(MPI_IN_PLACE, &spent, 1, MPI_DOUBLE, MPI_MAX, context.communicator);
  return spent;
}

}  // namespace

// The state that the leader, its sessions and their instances share.
struct Lead {
  MPI_Comm communicator = MPI_COMM_NULL;
  int instances = 0;
  double last_run_ms = 0;
  bool broken = false;

  void tell(Command command) const {
    if (!broken) broadcast(command, communicator);
  }

  template <typename Body>
  auto attempt(Body&& body) {
    try {
      return body();
    } catch (...) {
      broken = true;
      throw;
    }
  }
};

namespace {

class LeadVersion : public Version {
 public:
  LeadVersion(std::shared_ptr<Lead> lead, const RegisteredVersion& version)
      : lead_(std::move(lead)), own_(version.make()) {
    const std::string& name = version.info.name;
    if (name.size() >= sizeof command_.version)
      throw std::logic_error("the name of " + name + " is too long for the ranks");
    std::memcpy(command_.version, name.c_str(), name.size() + 1);
    command_.instance = lead_->instances++;
    tell(Command::make);
  }
  ~LeadVersion() override { tell(Command::drop); }

  void prepare(const Problem& problem, Context& context) override {
    command_.n = problem.n;
    command_.k = problem.k;
    command_.dim = problem.dim;
    command_.precision = problem.precision;
    command_.stop = problem.stop;
    command_.tunables = context.tunables;
    tell(Command::prepare);
    lead_->attempt([&] {
      own_->prepare(problem, context);
      MPI_Barrier(lead_->communicator);  // set-up ends when the last rank is done
    });
  }

  void run(Context& context) override {
    tell(Command::run);
    lead_->last_run_ms = lead_->attempt([&] { return timed_run(*own_, context); });
  }

  Solution fetch(Context& context) override {
    tell(Command::fetch);
    return lead_->attempt([&] { return own_->fetch(context); });
  }

 private:
  void tell(Command::What what) {
    command_.what = what;
    lead_->tell(command_);
  }

  std::shared_ptr<Lead> lead_;
  std::unique_ptr<Version> own_;
  Command command_;
};

class RankSession : public CpuSession {
 public:
  explicit RankSession(std::shared_ptr<Lead> lead) : lead_(std::move(lead)) {}

  std::string timing_basis() const override { return "mpi_max"; }
  void start() override {}
  double stop() override { return lead_->last_run_ms; }
  void evict_caches() override {
    lead_->tell({.what = Command::evict});
    CpuSession::evict_caches();
  }
  VersionFactory factory(const RegisteredVersion& version) override {
    return [lead = lead_, &version]() -> std::unique_ptr<Version> {
      return std::make_unique<LeadVersion>(lead, version);
    };
  }
  MPI_Comm communicator() const override { return lead_->communicator; }
  bool usable() const override { return !lead_->broken; }

 private:
  std::shared_ptr<Lead> lead_;
};

}  // namespace

Leader::Leader(MPI_Comm communicator) : lead_(std::make_shared<Lead>()) {
  lead_->communicator = communicator;
}

Leader::~Leader() {
  if (lead_->broken) MPI_Abort(lead_->communicator, 1);
  lead_->tell({.what = Command::end});
}

std::unique_ptr<Session> Leader::session() { return std::make_unique<RankSession>(lead_); }

void follow_rank_0(MPI_Comm communicator) {
  std::map<int, std::unique_ptr<Version>> instances;
  Context context;
  context.communicator = communicator;
  CpuSession session;
  try {
    while (true) {
      Command command;
      broadcast(command, communicator);
      if (command.what == Command::end) return;
      if (command.what == Command::evict) {
        session.evict_caches();
        continue;
      }
      std::unique_ptr<Version>& version = instances[command.instance];
      switch (command.what) {
        case Command::make:
          version = find_version(command.version)->make();
          break;
        case Command::prepare: {
          Problem problem{.n = command.n, .k = command.k, .dim = command.dim};
          problem.precision = command.precision;
          problem.stop = command.stop;
          context.tunables = command.tunables;
          version->prepare(problem, context);
          MPI_Barrier(communicator);
          break;
        }
        case Command::run:
          timed_run(*version, context);
          break;
        case Command::fetch:
          version->fetch(context);
          break;
        default:
          instances.erase(command.instance);
      }
    }
  } catch (const std::exception& error) {
    int rank = 0;
    MPI_Comm_rank(communicator, &rank);
    std::cerr << fmt::format("rank {}: {}\n", rank, error.what());
    MPI_Abort(communicator, 1);
  }
}

}  // namespace lloyd
