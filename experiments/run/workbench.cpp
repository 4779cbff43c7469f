#include "experiments/run/workbench.h"

#include <unistd.h>

#include <utility>

#include "experiments/measure/external.h"
#include "experiments/measure/rounding.h"
#include "experiments/process/clock.h"
#include "experiments/record/environment.h"

namespace lloyd {

Workbench::Workbench(Job job, const OpenSession& open, Inputs& inputs)
    : job_(std::move(job)),
      version_(*find_version(job_.points.at(0).version)),
      inputs_(inputs),
      on_gpu_(version_.info.backend == Backend::cuda),
      gpus_(on_gpu_ ? first_gpus(job_.team, most_gpus(job_.points)) : std::vector<std::string>{}),
      nvml_(on_gpu_ ? profiling::Nvml::open(no_nvml_) : nullptr),
      others_(processes_on_gpus()),
      session_(opened(open)),
      make_(session_->factory(version_)),
      noise_(watched()),
      trials_(trial_file(), on_gpu_ ? job_.device->name : cpu_model()) {}

std::unique_ptr<Session> Workbench::opened(const OpenSession& open) {
  const double start = now_ms();
  std::unique_ptr<Session> session = open(job_);
  process_setup_ms_ = now_ms() - start;
  if (on_gpu_ && session->ranks() != nullptr) job_.team = session->gpus();
  return session;
}

Problem Workbench::problem(const Point& point) {
  pinned_.reset();  // before `inputs_` releases its memory
  Problem problem = point.problem(job_.stop);
  problem.points = inputs_.points(point);
  problem.centroids = inputs_.centroids(point);
  problem.rows = inputs_.rows(point);
  if (on_gpu_ && !version_.info.external) problem.halves = inputs_.halves(point);
  if (point.host_memory == kPinned)  // what is uploaded: of a 16-bit problem 16 bits
    pinned_ = problem.halves.empty() ? session_->pin(std::as_bytes(problem.points))
                                     : session_->pin(std::as_bytes(problem.halves));
  generator_ = data::make_generator(point.source(job_.data));
  problem.spherical = point.source(job_.data).unit_length;
  // Rounded or scaled points are no longer what the generator draws, and those of a batch come from
  // several.
  if (storage_precision(point.precision) == Precision::fp32 && !problem.spherical &&
      problem.batch == 1)
    problem.generator = generator_.get();
  return problem;
}

Context Workbench::context(const Point& point) {
  Context context;
  context.tunables = point.tunables();
  if (on_gpu_) context.device = *job_.device;
  context.stream = session_->stream();
  context.ranks = session_->ranks();
  context.communicator = session_->communicator();
  if (trials_.keeps()) context.trial_memory = &trials_;
  if (job_.profile.nvtx) context.observers.push_back(&nvtx_);
  return context;
}

std::optional<double> Workbench::needed_cores(const Point& point) const {
  if (point.gpus) return point.all_gpus();  // a thread for each
  if (point.threads || point.processes)
    return double{1} * point.threads.value_or(1) * point.processes.value_or(1);
  if (!on_gpu_ && external_file(point.version)) return std::nullopt;
  return 1;
}

std::vector<std::string> Workbench::gpus(const Point& point) const {
  return first_gpus(gpus_, point.all_gpus());
}

std::set<unsigned> Workbench::processes_on_gpus() const {
  std::set<unsigned> all;
  if (nvml_)
    for (const std::string& gpu : gpus_)
      if (const auto running = nvml_->processes(gpu)) all.insert(running->begin(), running->end());
  return all;
}

NoiseMeter::Watched Workbench::watched() const {
  NoiseMeter::Watched watched;
  watched.run = job_.supervisor;
  if (!job_.binding.empty())
    watched.solvers = getppid();  // mpirun, whose children are the ranks
  else if (external_file(version_.info.name))
    watched.solvers = getpid();
  if (!nvml_) return watched;
  std::set<unsigned> own = processes_on_gpus();
  for (const unsigned other : others_) own.erase(other);
  own.insert(static_cast<unsigned>(getpid()));
  watched.gpus = WatchedGpus{nvml_, gpus_, own, others_};
  return watched;
}

}  // namespace lloyd
