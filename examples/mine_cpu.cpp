// mine_cpu: Lloyd's loop as a textbook writes it.
//
// Parent   cpu_sequential.
// Idea     none: this file shows what a version is.
// Limits   no stopping rule.
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "kernels/core/version.h"

namespace lloyd {
namespace {

class MineCpu : public Version {
 public:
  // Allocate and copy here. The time counts as setup_ms, not as solve_ms.
  void prepare(const Problem& problem, Context&) override {
    problem_ = problem;
    labels_.resize(static_cast<std::size_t>(problem.n));
  }

  // The loop, from the initial centroids. The harness times it and may call it again.
  void run(Context& context) override {
    centroids_.assign(problem_.centroids.begin(), problem_.centroids.end());
    for (int iteration = 0; iteration < problem_.stop.iterations; ++iteration) {
      const auto range = context.iteration(iteration);
      {
        const auto phase = context.phase("assign");  // a row of phases.jsonl, an NVTX range
        assign();
      }
      const auto phase = context.phase("update");
      update();
    }
  }

  // The labels of the last assignment and the centroids of the update that followed it.
  Solution fetch(Context&) override {
    return {.labels = labels_,
            .centroids = {centroids_.begin(), centroids_.end()},
            .iterations = problem_.stop.iterations};
  }

 private:
  void assign() {
    const int dim = problem_.dim;
    for (std::int64_t i = 0; i < problem_.n; ++i) {
      const float* x = &problem_.points[i * dim];
      float best = std::numeric_limits<float>::infinity();
      for (int j = 0; j < problem_.k; ++j) {
        float distance = 0;
        for (int t = 0; t < dim; ++t) {
          const float difference = x[t] - centroids_[j * dim + t];
          distance += difference * difference;
        }
        if (distance < best) {  // a tie keeps the lower index
          best = distance;
          labels_[i] = j;
        }
      }
    }
  }

  void update() {
    const int dim = problem_.dim;
    std::vector<double> sums(centroids_.size());
    std::vector<std::int64_t> counts(problem_.k);
    for (std::int64_t i = 0; i < problem_.n; ++i) {
      ++counts[labels_[i]];
      for (int t = 0; t < dim; ++t) sums[labels_[i] * dim + t] += problem_.points[i * dim + t];
    }
    for (int c = 0; c < problem_.k * dim; ++c) {
      const std::int64_t count = counts[c / dim];
      // An empty cluster keeps its centroid.
      if (count > 0) centroids_[c] = static_cast<float>(sums[c] / static_cast<double>(count));
    }
  }

  Problem problem_;
  std::vector<float> centroids_;
  std::vector<std::int32_t> labels_;
};

LLOYD_VERSION(MineCpu, {.name = "mine_cpu",
                        .family = "mine",
                        .parent = "cpu_sequential",
                        .summary = "Lloyd's loop as a textbook writes it",
                        .unsupported = [](const Problem& problem, const Tunables&,
                                          const DeviceLimits&) -> std::optional<std::string> {
                          if (problem.stop.tolerance > 0 || problem.stop.min_changes > 0)
                            return "runs a fixed number of iterations";
                          return std::nullopt;
                        }});

}  // namespace
}  // namespace lloyd
