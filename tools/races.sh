#!/usr/bin/env bash
# Usage: races.sh
# Builds the host code with clang and runs, under ThreadSanitizer, the tests of what several threads
# do together: the CPU versions, the float64 reference, initial centroids and transfers.
set -euo pipefail
cd "$(dirname "$0")/.."
export CC=clang CXX=clang++
tools/build.sh build-tsan kernels_tests -DLLOYD_CUDA=OFF -DLLOYD_SANITIZE=thread \
  -DCMAKE_BUILD_TYPE=Debug "-DCMAKE_CXX_FLAGS_DEBUG=-O1 -g1"

# Archer tells ThreadSanitizer which threads OpenMP has synchronised. Without it, all that two
# regions share looks like a race.
archer=$(find /usr/lib/llvm-*/lib -name libarcher.so | sort -V | tail -n 1)
if [ -z "$archer" ]; then
  echo "libarcher.so was not found: install libomp-dev" >&2
  exit 2
fi
export OMP_TOOL_LIBRARIES=$archer TSAN_OPTIONS=ignore_noninstrumented_modules=1
export OMP_NUM_THREADS=4 OMP_WAIT_POLICY=passive

tests=build-tsan/tests/kernels_tests
threads='*FastCpu*:FastCpu/*:*EveryVersion*fast_cpu*:*TiesInBoxes*'
threads+=':*Reference*:ClusterSums*:Sum.*:SumParts*:*Init*:*Transfer*:*Multi*:ThreadGroup*'
log=build-tsan/races.log # says why a test was skipped, too
if ! $tests --gtest_brief=1 --gtest_filter="$threads:-*Reproducible*" >$log 2>&1; then
  cat $log
  exit 1
fi
grep '^\[' $log
echo "no race found; more in $log"
