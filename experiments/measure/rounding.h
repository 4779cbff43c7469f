// A problem in 16 bits is given in 16 bits: what every version and the oracle are handed is rounded first.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/core/version.h"

namespace lloyd {

/// The precision that a problem's points and initial centroids are given in: `precision` itself when it is fp16 or bf16,
/// fp32 for every other (tf32 names what a product does with float32 values). Without this the oracle would judge
/// labels by coordinates that no 16-bit version has seen.
Precision storage_precision(Precision precision);

/// Rounds `values` (row-major, `dim` columns) to the nearest fp16 or bf16 value, ties to even, fp16's subnormals
/// included; in storage_precision() fp32 they stay as they are. Throws Unsupported for the first value that is beyond
/// the format's largest, naming it; `what` is what a row is: "point".
void round_to_storage(Precision precision, std::span<float> values, int dim, const char* what);

}  // namespace lloyd
