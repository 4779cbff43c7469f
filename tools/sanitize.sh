#!/usr/bin/env bash
# Usage: sanitize.sh [KERNELS_TESTS [JOBS [TOOL...]]]
# Every CUDA version at ragged sizes under compute-sanitizer's four tools, or those named, with JOBS
# processes at a time (4). Needs a GPU. 14 processes did not fit into 80 GB of its memory.
set -uo pipefail
tests=${1:-$(dirname "$0")/../build/tests/kernels_tests}
jobs=${2:-4}
tools=("${@:3}")
[ ${#tools[@]} -gt 0 ] || tools=(memcheck racecheck initcheck synccheck)
if ! command -v compute-sanitizer >/dev/null; then
  echo "compute-sanitizer is not on PATH; it comes with the CUDA toolkit" >&2
  exit 2
fi
if ! nvidia-smi -L >/dev/null 2>&1; then
  echo "no GPU here: nothing to check" >&2
  exit 2
fi
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
run() { "$@" --gtest_also_run_disabled_tests --gtest_filter="$filter"; }
# The tests whose names match one of the patterns, with a colon between them.
names_of() {
  "$tests" --gtest_list_tests | awk '/^[^ ]/ {suite = $1} /^  / {print suite $1}' |
    grep -E "$(paste -sd '|' < <(printf '%s\n' "$@"))" | paste -sd :
}
status=0
for tool in "${tools[@]}"; do
  cases='RaggedBlocks|EmptyClusters|OnePoint'
  # racecheck follows every access to shared memory and is the slowest.
  [ "$tool" = racecheck ] ||
    cases+='|Ties|ManyDimensions|MoreClusters[A-Za-z]*|Stops[A-Za-z]*'
  filter='*EveryVersion.DISABLED_Solves/*'
  names=$(run "$tests" --gtest_list_tests |
    sed -nE "s#^  (DISABLED_Solves/[a-z0-9_]+_($cases))( .*)?\$#Lloyd/EveryVersion.\1#p" |
    grep -vE 'Solves/(cpu|fast_cpu|mine_cpu|python|peer)_')
  filter=$(paste -sd : <<<"$names"):Reference.HasTheSameBitsOnTheGpu
  # Points that pass through the GPU, and shards of a problem that share one. Those of multi_grid
  # are left out: their kernels wait for each other, and the tools run one kernel at a time.
  [ "$tool" = racecheck ] || filter+=:$(names_of \
    'MultiGpu\.TakesFewPoints/.*_(Alone|TwoShared)$|StreamGrid\.TakesAnyNumberOfPoints$' \
    'StreamWgmma\.TakesOnePointInTheLastChunk/')
  # gtest passes if a filter matches nothing.
  wanted=$(tr : '\n' <<<"$filter" | wc -l)
  found=$(run "$tests" --gtest_list_tests | grep -c '^  ')
  if [ "$found" != "$wanted" ]; then
    echo "$tests: of $wanted tests for $tool only $found exist; is it an older build?" >&2
    exit 2
  fi
  began=$SECONDS
  pids=()
  for ((i = 0; i < jobs; ++i)); do
    GTEST_TOTAL_SHARDS=$jobs GTEST_SHARD_INDEX=$i run \
      compute-sanitizer --tool "$tool" --error-exitcode 9 "$tests" >"$logs/$tool.$i" 2>&1 &
    pids+=($!)
  done
  for ((i = 0; i < jobs; ++i)); do
    wait "${pids[i]}" && continue
    status=1
    echo "== $tool, process $i of $jobs" >&2
    grep -vE 'Skipped|^does not|^needs|^$|  OK |  SKIPPED |  RUN  ' "$logs/$tool.$i" |
      cut -c1-200 | tail -n 60 >&2
  done
  ran=$(cat "$logs/$tool".* | grep -c '^\[       OK')
  [ "$ran" -gt 0 ] || status=1
  echo "$tool: $ran of $wanted tests ran and passed, in $((SECONDS - began)) s"
  grep -hE '^========= [A-Z]+ SUMMARY' "$logs/$tool".* | sort | uniq -c
done
exit $status
