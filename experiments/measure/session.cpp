#include "experiments/measure/session.h"

#include <algorithm>
#include <cstddef>

#include "experiments/process/clock.h"
#include "kernels/core/point_rows.h"

namespace lloyd {

void CpuSession::start() { start_ = now_ms(); }

double CpuSession::stop() { return now_ms() - start_; }

void CpuSession::evict_caches() {
  // One thread writes more than most last-level caches hold. The private caches of other cores keep
  // their lines.
  sweep_.assign(std::size_t{512} << 20, static_cast<char>(sweep_.empty() ? 0 : sweep_[0] + 1));
}

std::unique_ptr<Reference> CpuSession::reference(std::span<const float> points, std::int64_t n,
                                                 int dim) const {
  return make_cpu_reference(points, n, dim);
}

namespace {

class ChunkedReference : public Reference {
 public:
  ChunkedReference(const Session& session, const Problem& problem)
      : session_(session), problem_(problem) {}

  void nearest(std::span<const double> centroids, int k, std::span<std::int32_t> labels,
               std::span<double> distances) override {
    for_all_points(
        problem_, [&](std::int64_t first, std::int64_t count, std::span<const float> values) {
          const auto at = static_cast<std::size_t>(first), size = static_cast<std::size_t>(count);
          session_.reference(values, count, problem_.dim)
              ->nearest(centroids, k, labels.subspan(at, size), distances.subspan(at, size));
        });
  }

 private:
  const Session& session_;
  Problem problem_;
};

}  // namespace

std::unique_ptr<Reference> reference_of(const Session& session, const Problem& problem) {
  if (problem.rows == nullptr) return session.reference(problem.points, problem.n, problem.dim);
  return std::make_unique<ChunkedReference>(session, problem);
}

std::unique_ptr<Session> make_cpu_session() { return std::make_unique<CpuSession>(); }

void PhaseTimes::begin_phase(const char* name) {
  has_device_ = session_.mark(marks_);
  open_.push_back({name, now_ms(), marks_++});
}

void PhaseTimes::end_phase() {
  const Open& phase = open_.back();
  session_.mark(marks_);
  closed_.push_back({phase.name, now_ms() - phase.host_start, phase.mark, marks_++});
  open_.pop_back();
}

std::vector<std::pair<std::string, PhaseTimes::Times>> PhaseTimes::collect() {
  session_.synchronize();
  std::vector<std::pair<std::string, Times>> phases;
  for (const Closed& call : closed_) {
    auto at = std::find_if(phases.begin(), phases.end(),
                           [&](const auto& known) { return known.first == call.name; });
    if (at == phases.end()) at = phases.insert(phases.end(), {call.name, {}});
    ++at->second.calls;
    at->second.host_ms += call.host_ms;
    if (has_device_) at->second.device_ms += session_.between_marks(call.first, call.second);
  }
  return phases;
}

}  // namespace lloyd
