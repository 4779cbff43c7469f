#include "experiments/measure/rounding.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "kernels/core/halves.h"
#include "kernels/core/limits.h"

namespace lloyd {

Precision storage_precision(Precision precision) {
  return precision == Precision::fp16 || precision == Precision::bf16 ? precision : Precision::fp32;
}

void round_to_storage(Precision precision, std::span<float> values, int dim, const char* what,
                      std::int64_t first) {
  if (storage_precision(precision) == Precision::fp32) return;
  const bool fp16 = precision == Precision::fp16;
  const float largest = fp16 ? kLargestFp16 : kLargestBf16;
  const auto size = static_cast<std::int64_t>(values.size());
  std::int64_t beyond = size;
#pragma omp parallel for schedule(static) reduction(min : beyond)
  for (std::int64_t i = 0; i < size; ++i) {
    float& x = values[static_cast<std::size_t>(i)];
    const float rounded = fp16 ? rounded_to_fp16(x) : rounded_to_bf16(x);
    // Leave a value beyond the format unchanged, so that the error below can show it.
    if (std::abs(rounded) <= largest)
      x = rounded;
    else
      beyond = std::min(beyond, i);
  }
  if (beyond == size) return;
  throw Unsupported(fmt::format(
      "{} ends at {:.6g}: {} {} has coordinate {} = {}", to_string(precision), largest, what,
      with_commas(first + beyond / dim), beyond % dim, values[static_cast<std::size_t>(beyond)]));
}

void to_halves(Precision precision, std::span<const float> rounded,
               std::span<std::uint16_t> halves) {
  const auto size = static_cast<std::int64_t>(rounded.size());
#pragma omp parallel for schedule(static)
  for (std::int64_t i = 0; i < size; ++i) {
    const float x = rounded[static_cast<std::size_t>(i)];
    halves[static_cast<std::size_t>(i)] =
        precision == Precision::fp16 ? fp16_bits(x) : bf16_bits(x);
  }
}

std::vector<std::uint16_t> to_halves(Precision precision, std::span<const float> rounded) {
  std::vector<std::uint16_t> halves(rounded.size());
  to_halves(precision, rounded, halves);
  return halves;
}

}  // namespace lloyd
