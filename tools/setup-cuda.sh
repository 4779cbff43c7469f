#!/usr/bin/env bash
# Makes sure that there is a CUDA toolkit. Does nothing when the machine has one of the right
# version. Otherwise installs the pinned wheels into .venv and makes them a toolkit that CMake and
# nvcc understand.
set -euo pipefail
cd "$(dirname "$0")/.."
stamp=.venv/.stamp-cuda

nvcc=$(tools/find-cuda.sh 2>/dev/null || true)
case "$nvcc" in
  "" | "$PWD"/.venv/*) [ ! "$stamp" -nt requirements-cuda.txt ] || exit 0 ;;
  *) exit 0 ;;
esac

tools/find-cuda.sh >/dev/null || true # shows why it passed over other versions
echo "No CUDA 13 toolkit on this machine: installing the pinned wheels into .venv" \
  "(about 120 MB to download)"
if ! .venv/bin/python -m pip install --quiet --disable-pip-version-check --only-binary=:all: \
  -r requirements-cuda.txt; then
  echo "The CUDA toolkit could not be installed. Install CUDA 13 yourself and set CUDA_HOME," \
    "or build without CUDA: make CUDA=0" >&2
  exit 1
fi

# Wheels lack the development links, and nvcc looks for lib64.
for toolkit in .venv/lib/python3*/site-packages/nvidia/cu13; do
  ln -sfn lib "$toolkit/lib64"
  for library in "$toolkit"/lib/lib*.so.*; do
    ln -sf "$(basename "$library")" "${library%.so.*}.so"
  done
done
touch "$stamp"
