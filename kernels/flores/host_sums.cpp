#include "kernels/flores/host_sums.h"

#include <omp.h>

#include <algorithm>

#include "kernels/core/lloyd_steps.h"
#include "kernels/core/with_dim.h"

namespace lloyd::flores {

HostSums::HostSums(int threads, int k, int dim) : dim_(dim) {
  const auto clusters = static_cast<std::size_t>(k);
  const Local empty{std::vector<float>(clusters * static_cast<std::size_t>(dim)),
                    std::vector<std::int64_t>(clusters)};
  local_.assign(static_cast<std::size_t>(threads), empty);
}

void HostSums::add_up(std::span<const float> points, std::span<const std::int32_t> labels,
                      std::vector<float>& sums, std::vector<std::int64_t>& counts) {
  const auto n = static_cast<std::int64_t>(labels.size());
  for (Local& local : local_) {
    std::fill(local.sums.begin(), local.sums.end(), 0.0f);
    std::fill(local.counts.begin(), local.counts.end(), 0);
  }
  with_dim(dim_, [&](auto fixed) {
    const std::int64_t dim = fixed.value > 0 ? fixed.value : dim_;
#pragma omp parallel num_threads(static_cast <int>(local_.size()))
    {
      Local& local = local_[static_cast<std::size_t>(omp_get_thread_num())];
#pragma omp for schedule(static)
      for (std::int64_t i = 0; i < n; ++i) {
        const std::int64_t label = labels[static_cast<std::size_t>(i)];
        ++local.counts[static_cast<std::size_t>(label)];
        const float* x = points.data() + i * dim;
        float* sum = local.sums.data() + label * dim;
        for (std::int64_t t = 0; t < dim; ++t) sum[t] += x[t];
      }
    }
  });
  std::fill(sums.begin(), sums.end(), 0.0f);
  std::fill(counts.begin(), counts.end(), 0);
  for (const Local& local : local_) {
    for (std::size_t c = 0; c < sums.size(); ++c) sums[c] += local.sums[c];
    for (std::size_t j = 0; j < counts.size(); ++j) counts[j] += local.counts[j];
  }
}

}  // namespace lloyd::flores
