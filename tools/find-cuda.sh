#!/usr/bin/env bash
# Prints the path of the nvcc to build with: the machine's own, else that of the wheels in .venv.
# Reports on standard error which ones it passed over and why. Exits with 1 when there is none.
set -euo pipefail
need=13 # the oldest CUDA that the code can be built with, and that of the wheels
root=$(cd "$(dirname "$0")/.." && pwd)

candidates=("$(command -v nvcc || true)")
[ -z "${CUDA_HOME:-}" ] || candidates+=("$CUDA_HOME/bin/nvcc")
candidates+=(/usr/local/cuda/bin/nvcc)
candidates+=("$root"/.venv/lib/python3*/site-packages/nvidia/cu$need/bin/nvcc)

seen=
for nvcc in "${candidates[@]}"; do
  [ -x "$nvcc" ] || continue
  case "$seen" in *"|$nvcc|"*) continue ;; esac
  seen+="|$nvcc|"
  major=$("$nvcc" --version 2>/dev/null | sed -n 's/.*release \([0-9]*\)\..*/\1/p')
  if [ "${major:-0}" -ge "$need" ]; then
    echo "$nvcc"
    exit 0
  fi
  echo "$nvcc is of CUDA ${major:-unknown}, and lloydbench needs $need.0 or newer: passed over" >&2
done
exit 1
