#!/usr/bin/env bash
# Usage: build.sh DIR TARGET [CMake option…]
# Configures DIR when it is new or the options differ, and builds TARGET.
set -euo pipefail
cd "$(dirname "$0")/.."
dir=$1 target=$2
shift 2
if [ ! -f "$dir/CMakeCache.txt" ] || [ "$(cat "$dir/.options" 2>/dev/null)" != "$*" ]; then
  generator=()
  if [ ! -f "$dir/CMakeCache.txt" ] && command -v ninja >/dev/null; then generator=(-G Ninja); fi
  cmake -S . -B "$dir" "${generator[@]}" "$@"
  echo "$*" >"$dir/.options"
fi
cmake --build "$dir" --parallel "${JOBS:-$(nproc)}" --target "$target"
