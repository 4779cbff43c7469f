#!/usr/bin/env bash
# Usage: lint.sh [CMake option…]: checks the format of the C++ and Python code, and lints both.
# lint.sh --fix: formats, and repairs what can be repaired automatically.
set -euo pipefail
cd "$(dirname "$0")/.."
bin=.venv/bin
mapfile -t cpp < <(find kernels experiments profiling data examples tests cmake tools \
  -regex '.*\.\(c\|cpp\|h\|cu\|cuh\)')
python=(analysis examples kernels tests tools)

if [ "${1:-}" = --fix ]; then
  $bin/clang-format -i "${cpp[@]}"
  $bin/ruff check --quiet --fix "${python[@]}"
  $bin/ruff format --quiet "${python[@]}"
  exit
fi
$bin/clang-format --dry-run -Werror "${cpp[@]}"
$bin/ruff check "${python[@]}"
$bin/ruff format --check "${python[@]}"
# Tests (because of their macros) and CUDA files (which only nvcc understands) are left to the
# compilers' own warnings.
tools/build.sh build-lint lloyd_build_info "$@"
$bin/python tools/tidy.py build-lint
# Finds what only the pass for the oldest GPU rejects, when the build is for another GPU.
$bin/python tools/device_syntax.py build-lint 75
