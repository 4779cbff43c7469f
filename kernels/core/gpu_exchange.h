// What adding up the sums of all clusters costs between the GPUs of one host. Measured on two H200s
// with NVLink (NV18), 2026-11, unless a line says otherwise. These numbers stand only here:
// fast_auto compiles them (kernels/fast/auto/several_gpus.cpp), and the analysis reads them out of
// this file (analysis/measures/gpu_model.py).
#pragma once

namespace lloyd {

// NCCL's all-reduce on two GPUs, in a graph, where no launch is waited for: of a small and of a
// large array.
inline constexpr double kAllReduceSmallMb = 0.02;
inline constexpr double kAllReduceSmallUs = 13.0;
inline constexpr double kAllReduceLargeMb = 1.0;
inline constexpr double kAllReduceLargeUs = 19.5;
// The least of an all-reduce from a stream that has nothing else to do while it is launched.
inline constexpr double kAllReduceLaunchedUs = 27.6;
// Assumed: kernels longer than this hide the launch of the all-reduce behind them.
inline constexpr double kHiddenLaunchMs = 0.1;
// A flag in the memory of another GPU there and back, within kernels, and copies between GPUs.
inline constexpr double kPeerFlagUs = 1.24;
inline constexpr double kPeerGbS = 396.0;

}  // namespace lloyd
