// Records the kernels that a solve launches, in order and with their phases. Compiled only in a
// build with CUDA.
#pragma once

#include <cuda.h>

#include <array>
#include <set>
#include <string>
#include <vector>

#include "kernels/core/version.h"
#include "profiling/cupti.h"
#include "profiling/subject.h"

namespace lloyd::profiling {

/// Records which phases have begun and which are open.
class PhaseRecorder : public RangeObserver {
 public:
  void begin_phase(const char* name) override;
  void end_phase() override { open_.pop_back(); }
  void begin_iteration(int) override {}
  void end_iteration() override {}

  const std::vector<std::string>& open() const { return open_; }
  /// A name for each time that a phase began, in order.
  const std::vector<std::string>& ranges() const { return ranges_; }
  /// The greatest depth of nested phases.
  std::size_t depth() const { return depth_; }

 private:
  std::vector<std::string> open_, ranges_;
  std::size_t depth_ = 0;
};

struct Launch {
  std::string phase, kernel;  // the innermost phase; "" outside of any
  CUfunction function = nullptr;
  std::array<unsigned, 3> grid{}, block{};
  std::size_t dynamic_shared_bytes = 0;
};

struct Launches {
  std::vector<Launch> kernels;
  std::set<std::string> phases;     // phases that launched something
  std::size_t graphs = 0;           // launches of CUDA graphs; their kernels are not in `kernels`
  std::vector<std::string> ranges;  // as PhaseRecorder::ranges()
  std::size_t depth = 0;            // as PhaseRecorder::depth()
};

/// Runs the subject once, which must be prepared. Throws Unavailable when another CUPTI client
/// holds the callbacks.
Launches record_launches(const Cupti& cupti, Subject& subject);

}  // namespace lloyd::profiling
