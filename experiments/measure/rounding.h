// A problem in 16 bits is rounded to 16 bits before any version or the oracle sees it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/core/version.h"

namespace lloyd {

/// The precision in which a problem's points and initial centroids are given: `precision` itself
/// for fp16 and bf16, fp32 for all others (tf32 only says how products treat float32 values).
/// Without this rounding, the oracle would judge labels by coordinates that no 16-bit version has
/// seen.
Precision storage_precision(Precision precision);

/// Rounds `values` (row-major, `dim` columns) to the nearest fp16 or bf16 value, ties to even,
/// including the subnormals of fp16. If storage_precision() is fp32, it leaves them unchanged.
/// Throws Unsupported for the first value beyond the largest value of the format and names it.
/// `what` says what a row is, such as "point", and `first` which number the first one has.
void round_to_storage(Precision precision, std::span<float> values, int dim, const char* what,
                      std::int64_t first = 0);

/// The bits of rounded values in fp16 or bf16.
void to_halves(Precision precision, std::span<const float> rounded,
               std::span<std::uint16_t> halves);
std::vector<std::uint16_t> to_halves(Precision precision, std::span<const float> rounded);

}  // namespace lloyd
