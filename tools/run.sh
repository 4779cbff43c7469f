#!/usr/bin/env bash
# Usage: run.sh [SPEC] [option…]: runs the experiment, then draws its figures, also when some of its points failed.
set -uo pipefail
cd "$(dirname "$0")/.."
trap : INT # run_experiment ends an interrupted run in order; wait for it
output=$(mktemp)
trap 'rm -f "$output"' EXIT

build/run_experiment "$@" | tee -i "$output"
status=${PIPESTATUS[0]}
# Its last line names the run directory, unless it ran nothing (--dry-run) or was asked for JSON alone.
directory=$(sed -n 's/^results: //p' "$output" | tail -n 1)
if [ -n "$directory" ] && [ "$status" -le 1 ]; then
  .venv/bin/python -m analysis figures "$directory" || status=$((status ? status : 1))
fi
exit "$status"
