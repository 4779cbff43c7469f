// Which kernels a solve launches, in order, and in which phase. Only in a build with CUDA.
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

/// Which phases are open, and which have begun.
class PhaseRecorder : public RangeObserver {
 public:
  void begin_phase(const char* name) override;
  void end_phase() override { open_.pop_back(); }
  void begin_iteration(int) override {}
  void end_iteration() override {}

  const std::vector<std::string>& open() const { return open_; }
  /// Every phase, in the order in which they began.
  const std::vector<std::string>& ranges() const { return ranges_; }
  /// How deep phases were nested.
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
  std::set<std::string> phases;  // in which something was launched
  std::size_t graphs = 0;        // launches of CUDA graphs, whose kernels are not among the above
  std::vector<std::string> ranges;  // phases, in the order in which they begin
  std::size_t depth = 0;            // of nested phases
};

/// Runs the (prepared) subject once. Throws Unavailable when another CUPTI client has the callbacks.
Launches record_launches(const Cupti& cupti, Subject& subject);

}  // namespace lloyd::profiling
