#include "experiments/measure/ranks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <iostream>
#include <map>
#include <set>
#include <stdexcept>
#include <utility>

#include "experiments/process/clock.h"
#include "kernels/core/device.h"

#if LLOYD_CUDA
#include "kernels/core/nccl.h"
#endif

namespace lloyd {

// A session of a rank, which is opened on all of them at once.
struct OnRank {
  std::unique_ptr<Session> session = make_cpu_session();
  DeviceLimits device;             // its first GPU; `team` has all
  std::vector<std::string> uuids;  // of the GPUs of all ranks
};

namespace {

// A command from rank 0 to the others, sent as bytes.
struct Command {
  enum What { open, make, drop, prepare, run, fetch, evict, end } what = end;
  int instance = 0;
  char version[64] = "";
  int device = 0, gpus = 0;  // of open
  std::int64_t n = 0;
  int k = 0, dim = 0;
  Precision precision = Precision::fp32;
  Stop stop;
  bool spherical = false;
  Tunables tunables;
};
static_assert(std::is_trivially_copyable_v<Command>);

void broadcast(Command& command, Ranks& ranks) {
  ranks.broadcast(std::as_writable_bytes(std::span(&command, 1)));
}

// The milliseconds of the slowest rank.
double timed_run(Version& version, Context& context, Session& session) {
  session.synchronize();  // nothing may be under way before the first moment
  context.ranks->barrier();
  const double start = now_ms();
  version.run(context);
  session.synchronize();
  double spent = now_ms() - start;
  context.ranks->largest({&spent, 1});
  return spent;
}

// Set-up ends when the last rank is done.
void timed_prepare(Version& version, const Problem& problem, Context& context, Session& session) {
  version.prepare(problem, context);
  session.synchronize();
  context.ranks->barrier();
}

#if LLOYD_CUDA
const DeviceLimits& find_gpu(const DeviceQuery& query, int index, const Ranks& ranks) {
  if (const DeviceLimits* found = query.find(index)) return *found;
  throw std::runtime_error(fmt::format("rank {}: {}", ranks.rank(), query.why_no(index)));
}

std::vector<std::string> gathered(const std::vector<std::string>& own, Ranks& ranks) {
  using Text = std::array<char, 48>;  // a UUID has 40 characters
  std::vector<Text> mine(own.size());
  for (std::size_t i = 0; i < own.size(); ++i) own[i].copy(mine[i].data(), mine[i].size() - 1);
  const std::vector<std::byte> all = ranks.gather(std::as_bytes(std::span(mine)));
  std::vector<std::string> uuids;
  for (std::size_t at = 0; at < all.size(); at += sizeof(Text))
    uuids.emplace_back(reinterpret_cast<const char*>(all.data() + at));
  return uuids;
}

OnRank open_on_gpus(Ranks& ranks, int device, int gpus) {
  const DeviceQuery query = query_devices();
  OnRank opened;
  const std::vector<int> own =
      gpus_of_rank(find_gpu(query, device, ranks).team, ranks.local_rank(), gpus);
  opened.device = find_gpu(query, own.front(), ranks);
  opened.device.team = own;
  opened.session = make_cuda_session(own.front(), {own.begin() + 1, own.end()});
  opened.uuids = gathered(team_uuids(query, opened.device), ranks);
  cuda::prepare_team(own, &ranks);
  const bool by_nccl = cuda::nccl_reaches(own, ranks);
  if (ranks.rank() == 0)  // for log.txt
    std::cerr << fmt::format("{} ranks × {} GPUs: sums are added up by {}\n", ranks.size(), gpus,
                             by_nccl ? "NCCL" : "MPI, in host memory");
  return opened;
}
#else
OnRank open_on_gpus(Ranks&, int, int) { throw std::logic_error("built without CUDA"); }
#endif

}  // namespace

// The state that the leader, its sessions and their instances share.
struct Lead {
  Lead(Ranks& all, ompi_communicator_t* of_all) : ranks(all), communicator(of_all) {}

  Ranks& ranks;
  ompi_communicator_t* communicator;
  OnRank own;
  int instances = 0;
  double last_run_ms = 0;
  bool broken = false;

  void tell(Command command) const {
    if (!broken) broadcast(command, ranks);
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
    command_.spherical = problem.spherical;
    command_.tunables = context.tunables;
    tell(Command::prepare);
    lead_->attempt([&] { timed_prepare(*own_, problem, context, *lead_->own.session); });
  }

  void run(Context& context) override {
    tell(Command::run);
    lead_->last_run_ms =
        lead_->attempt([&] { return timed_run(*own_, context, *lead_->own.session); });
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

// The session of rank 0, with the clock of all ranks.
class RankSession : public Session {
 public:
  explicit RankSession(std::shared_ptr<Lead> lead) : lead_(std::move(lead)) {}

  CUstream_st* stream() const override { return own().stream(); }
  std::string timing_basis() const override { return "mpi_max"; }
  void start() override {}
  double stop() override { return lead_->last_run_ms; }
  void synchronize() override { own().synchronize(); }
  void evict_caches() override {
    lead_->tell({.what = Command::evict});
    own().evict_caches();
  }
  bool mark(std::size_t slot) override { return own().mark(slot); }
  double between_marks(std::size_t first, std::size_t second) const override {
    return own().between_marks(first, second);
  }
  std::unique_ptr<Reference> reference(std::span<const float> points, std::int64_t n,
                                       int dim) const override {
    return own().reference(points, n, dim);
  }
  std::shared_ptr<const void> pin(std::span<const std::byte> memory) override {
    return own().pin(memory);
  }
  VersionFactory factory(const RegisteredVersion& version) override {
    return [lead = lead_, &version]() -> std::unique_ptr<Version> {
      return std::make_unique<LeadVersion>(lead, version);
    };
  }
  Ranks* ranks() const override { return &lead_->ranks; }
  ompi_communicator_t* communicator() const override { return lead_->communicator; }
  std::vector<std::string> gpus() const override { return lead_->own.uuids; }
  bool usable() const override { return !lead_->broken; }

 private:
  Session& own() const { return *lead_->own.session; }

  std::shared_ptr<Lead> lead_;
};

}  // namespace

Leader::Leader(Ranks& ranks, ompi_communicator_t* communicator)
    : lead_(std::make_shared<Lead>(ranks, communicator)) {}

Leader::~Leader() {
  if (lead_->broken) lead_->ranks.abort(1);
  lead_->tell({.what = Command::end});
}

std::unique_ptr<Session> Leader::session() { return std::make_unique<RankSession>(lead_); }

std::unique_ptr<Session> Leader::session_on_gpus(int device, int gpus, bool shared) {
  lead_->tell({.what = Command::open, .device = device, .gpus = gpus});
  lead_->attempt([&] { lead_->own = open_on_gpus(lead_->ranks, device, gpus); });
  const std::vector<std::string>& uuids = lead_->own.uuids;
  if (!shared && std::set(uuids.begin(), uuids.end()).size() < uuids.size())
    throw std::runtime_error(fmt::format("the GPUs of the {} ranks are not different ones: {}",
                                         lead_->ranks.size(), fmt::join(uuids, ", ")));
  return session();
}

void follow_rank_0(Ranks& ranks, ompi_communicator_t* communicator) {
  OnRank own;
  std::map<int, std::unique_ptr<Version>> instances;
  Context context;
  context.ranks = &ranks;
  context.communicator = communicator;
  try {
    while (true) {
      Command command;
      broadcast(command, ranks);
      if (command.what == Command::end) return;
      if (command.what == Command::open) {
        own = open_on_gpus(ranks, command.device, command.gpus);
        context.device = own.device;
        context.stream = own.session->stream();
        continue;
      }
      if (command.what == Command::evict) {
        own.session->evict_caches();
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
          problem.spherical = command.spherical;
          context.tunables = command.tunables;
          timed_prepare(*version, problem, context, *own.session);
          break;
        }
        case Command::run:
          timed_run(*version, context, *own.session);
          break;
        case Command::fetch:
          version->fetch(context);
          break;
        default:
          instances.erase(command.instance);
      }
    }
  } catch (const std::exception& error) {
    std::cerr << fmt::format("rank {}: {}\n", ranks.rank(), error.what());
    ranks.abort(1);
  }
}

std::vector<int> gpus_of_rank(std::span<const int> team, int local_rank, int gpus) {
  std::vector<int> own;
  for (int gpu = local_rank * gpus; gpu < (local_rank + 1) * gpus; ++gpu)
    own.push_back(team[static_cast<std::size_t>(gpu) % team.size()]);
  return own;
}

}  // namespace lloyd
