#!/usr/bin/env bash
# Usage: fuzz-campaign.sh DIR SECONDS JOBS [TARGET…]
# Runs each target (default: data external resume spec) for SECONDS in JOBS processes, one target
# after the other. RUNS=N ends a target after N executions. DIR keeps corpora, logs and findings,
# and another campaign in DIR continues from them. Prints the executions of all campaigns in DIR and
# the findings. Fails if there are findings.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
dir=$1 seconds=$2 jobs=$3
shift 3
if [ $# = 0 ]; then
  for program in "$here"/fuzz_*; do set -- "$@" "${program##*/fuzz_}"; done
fi

# The targets write small files all the time, so these are kept in memory if possible.
base=${TMPDIR:-/tmp}
[ ! -w /dev/shm ] || base=/dev/shm
TMPDIR=$(mktemp -d "$base/lloydbench-fuzz-XXXXXX")
export TMPDIR LD_LIBRARY_PATH=$here/lib
trap 'rm -rf "$TMPDIR"' EXIT

for target in "$@"; do
  mkdir -p "$dir/$target"/{corpus,findings,logs}
  log=$dir/$target/logs/$(date -u +%Y%m%dT%H%M%SZ).log
  echo "$target: $seconds s, $jobs processes; $log"
  OMP_NUM_THREADS=1 "$here/fuzz_$target" -fork="$jobs" \
    -ignore_crashes=1 -ignore_timeouts=1 -ignore_ooms=1 -print_funcs=0 \
    -max_total_time="$seconds" -runs="${RUNS:--1}" -max_len=2048 -timeout=30 \
    -dict="$here/$target.dict" -artifact_prefix="$dir/$target/findings/" \
    "$dir/$target/corpus" "$here/corpus/$target" >"$log" 2>&1
done

found=0
printf '%-10s %14s %10s\n' target executions findings
for target in "$@"; do
  # "#12345: cov: …" counts the executions so far.
  executions=$(for log in "$dir/$target"/logs/*.log; do
    sed -n 's/^#\([0-9]*\): cov: .*/\1/p' "$log" | tail -n 1
  done | awk '{sum += $1} END {printf "%d", sum}')
  findings=$(find "$dir/$target/findings" -type f | wc -l)
  found=$((found + findings))
  printf '%-10s %14s %10s\n' "$target" "$executions" "$findings"
done
[ "$found" = 0 ]
