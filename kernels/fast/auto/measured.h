// What fast_auto knows.
#pragma once

#include <span>
#include <vector>

#include "kernels/core/auto/choice.h"

namespace lloyd::fast {

/// `table`, and what it says about 16 bits without having measured it. For each of fp16 and bf16,
/// and each problem of which a version has no such row:
///  1. the version's row of the other 16-bit precision: they have the same bytes, and their
///     products the same rate;
///  2. for a version that widens 16-bit points (VersionInfo::widens_halves), its row of fp32: its
///     iteration is the same.
std::vector<Measured> with_16_bits(std::span<const Measured> table);

/// with_16_bits() of table.inc: the versions of this ladder, measured on one GPU.
std::span<const Measured> measured();

}  // namespace lloyd::fast
