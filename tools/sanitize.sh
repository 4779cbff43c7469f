#!/usr/bin/env bash
# Usage: sanitize.sh [kernels_tests]
# Runs every CUDA version at ragged sizes under compute-sanitizer's four tools. Needs a GPU.
set -uo pipefail
tests=${1:-$(dirname "$0")/../build/tests/kernels_tests}
if ! command -v compute-sanitizer >/dev/null; then
  echo "compute-sanitizer is not on PATH; it comes with the CUDA toolkit" >&2
  exit 2
fi
if ! nvidia-smi -L >/dev/null 2>&1; then
  echo "no GPU here: nothing to check" >&2
  exit 2
fi
status=0
for tool in memcheck racecheck initcheck synccheck; do
  cases='RaggedBlocks|Ties|EmptyClusters|OnePoint|ManyDimensions|MoreClusters[A-Za-z]*|Stops[A-Za-z]*'
  # racecheck follows every access to shared memory, so it is some hundred times slower than the
  # others.
  [ $tool != racecheck ] || cases='RaggedBlocks|EmptyClusters|OnePoint'
  filter=$("$tests" --gtest_list_tests --gtest_filter='*EveryVersion.IsVerified*' |
    sed -nE "s/^  (IsVerified\/[a-z0-9_]+_($cases)) .*/Lloyd\/EveryVersion.\1/p" |
    grep -vE 'IsVerified/(cpu|python|peer)_' | paste -sd :)
  printf '== %s\n' $tool
  compute-sanitizer --tool $tool --error-exitcode 9 "$tests" --gtest_brief=1 \
    --gtest_filter="$filter:Reference.HasTheSameBitsOnTheGpu" 2>&1 |
    grep -vE 'Skipped|^does not|^needs|^$' | tail -n 12
  [ "${PIPESTATUS[0]}" = 0 ] || status=1
done
exit $status
