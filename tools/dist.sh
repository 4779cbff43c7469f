#!/usr/bin/env bash
# Usage: dist.sh [CMake option…]
# Makes in dist/ what a release publishes: the bundle (bundle.sh, with its environment variables),
# the wheel, the source archive, the recorded runs with every figure and table (analysis artifact),
# and SHA256SUMS of the four. Publishes nothing. Warns if the tree is not that of the release's tag.
set -euo pipefail
cd "$(dirname "$0")/.."
rm -f dist/*.whl dist/lloydbench-*.tar.gz dist/SHA256SUMS
tools/bundle.sh "$@"
version=$(sed -n 's/^version: //p' CITATION.cff)
.venv/bin/python -m analysis artifact data/recorded \
  --out "dist/lloydbench-$version-recorded.tar.gz" &
recorded=$!
build=build # as in bundle.sh
if nvidia-smi -L >/dev/null 2>&1; then build='build-bundle'; fi
tools/wheel.sh $build dist
.venv/bin/python -m build --sdist --no-isolation --outdir dist . >/dev/null
wait $recorded
cd dist
sha256sum -- *.whl lloydbench-*.tar.gz | tee SHA256SUMS
cd ..
if ! git tag --points-at HEAD 2>/dev/null | grep -qx "v$version" ||
  [ -n "$(git status --porcelain)" ]; then
  echo "dist: this is no release, for the tree is not a clean checkout of the tag v$version" >&2
fi
