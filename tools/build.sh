#!/usr/bin/env bash
# Usage: build.sh DIR TARGET [CMake option…]
# Configures DIR when it is new or the options differ, and builds TARGET.
set -euo pipefail
cd "$(dirname "$0")/.."
dir=$1 target=$2
shift 2
# Without this, a build folder that came along with a copied tree would compile the other tree's
# sources, and one of a moved tree looks for them in vain.
made_for=$(sed -n 's/^CMAKE_HOME_DIRECTORY:INTERNAL=//p' "$dir/CMakeCache.txt" 2>/dev/null || true)
if [ -n "$made_for" ] && [ ! "$made_for" -ef . ]; then
  echo "$PWD/$dir was made for the sources in $made_for: the folder was copied or moved." \
    "Remove it, then try again: rm -r $dir" >&2
  exit 1
fi
if [ ! -f "$dir/CMakeCache.txt" ] || [ "$(cat "$dir/.options" 2>/dev/null)" != "$*" ]; then
  generator=()
  if [ ! -f "$dir/CMakeCache.txt" ] && command -v ninja >/dev/null; then generator=(-G Ninja); fi
  cmake -S . -B "$dir" "${generator[@]}" "$@"
  echo "$*" >"$dir/.options"
fi
cmake --build "$dir" --parallel "${JOBS:-$(nproc)}" --target "$target"
