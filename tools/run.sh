#!/usr/bin/env bash
# Usage: run.sh [SPEC] [option…]
# Runs the experiment, then draws its figures, even if some of its points failed.
set -uo pipefail
cd "$(dirname "$0")/.."
trap : INT # run_experiment ends an interrupted run properly, so wait for it
output=$(mktemp)
trap 'rm -f "$output"' EXIT

build/run_experiment "$@" | tee -i "$output"
status=${PIPESTATUS[0]}
# The last line names the run directory, unless nothing ran (--dry-run) or only JSON was requested.
directory=$(sed -n 's/^results: //p' "$output" | tail -n 1)
if [ -n "$directory" ] && [ "$status" -le 1 ]; then
  .venv/bin/python -m analysis figures "$directory" || status=$((status ? status : 1))
fi
exit "$status"
