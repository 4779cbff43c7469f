// Several independent problems of one size in one solve: how a batch lies in memory, and versions
// that take its problems one after another.
#pragma once

#include <cstddef>
#include <span>

#include "kernels/core/version.h"

namespace lloyd {

/// Part number `index`, from 0, of `count` equal parts.
template <typename T>
std::span<T> part_of(std::span<T> values, int index, int count) {
  const std::size_t size = values.size() / static_cast<std::size_t>(count);
  return values.subspan(static_cast<std::size_t>(index) * size, size);
}

/// Problem number `index` of a batch, from 0. The spans may be empty.
Problem problem_of(const Problem& batch, int index);

/// The part of an answer to `batch` that belongs to problem number `index`.
Solution solution_of(const Solution& whole, const Problem& batch, int index);

/// What makes the version for `problem`: `make`, or for a batch and a version that takes it one by
/// one, a version that prepares an instance for each problem and runs them one after another.
VersionFactory for_problem(const VersionInfo& info, VersionFactory make, const Problem& problem);

}  // namespace lloyd
