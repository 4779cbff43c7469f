#!/usr/bin/env bash
# Usage: races.sh
# Builds the kernels' host code with clang and runs its tests under ThreadSanitizer. Versions that
# need a GPU are skipped.
set -euo pipefail
cd "$(dirname "$0")/.."
export CC=clang CXX=clang++
tools/build.sh build-tsan kernels_tests -DLLOYD_CUDA=OFF -DLLOYD_SANITIZE=thread \
  -DCMAKE_BUILD_TYPE=Debug "-DCMAKE_CXX_FLAGS_DEBUG=-O1 -g1"

# Archer tells ThreadSanitizer which threads OpenMP has synchronised. Without it, all that two
# regions share looks like a race.
archer=$(find /usr/lib -path "*/llvm-*" -name libarcher.so | sort -V | tail -n 1)
if [ -z "$archer" ]; then
  echo "libarcher.so was not found: install libomp-dev" >&2
  exit 2
fi
export OMP_TOOL_LIBRARIES=$archer TSAN_OPTIONS=ignore_noninstrumented_modules=1
export OMP_NUM_THREADS=4 OMP_WAIT_POLICY=passive

log=build-tsan/races.log # also says why a test was skipped
# Reproducible solves large problems many times: minutes, by code that the others run, too.
if ! build-tsan/tests/kernels_tests --gtest_brief=1 \
  --gtest_filter='-*Reproducible*' >$log 2>&1; then
  cat $log
  exit 1
fi
grep '^\[' $log
echo "no race found; more in $log"
