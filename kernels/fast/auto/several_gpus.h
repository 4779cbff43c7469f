// What fast_auto expects of several GPUs. NOTES.md compares it with what was measured.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/core/auto/choice.h"

namespace lloyd::fast {

/// How the GPUs add up the sums of all clusters in each iteration.
enum class SumsBy {
  nccl,   // an all-reduce
  peers,  // kernels store into each other's memory
};

/// What that takes in ms, for `megabytes` on `gpus` GPUs of one host, where the rest of an
/// iteration takes `rest_ms` on each. The model of analysis/measures/gpu_model.py on one node.
double exchange_ms(SumsBy sums, double megabytes, int gpus, double rest_ms);

/// `ranked` of `table`, with the versions of the family multi on `gpus` GPUs among them. One that
/// stands on a version that takes T on one GPU should take
///   F + (T − F) / gpus + exchange_ms(…),
/// where F is what every GPU does in full: what the version takes for as few points as the table
/// has, or T if that is less. With one GPU this is ranked().
std::vector<Estimate> ranked_on(int gpus, std::span<const Measured> table, const Problem& problem);

}  // namespace lloyd::fast
