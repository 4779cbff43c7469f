#!/usr/bin/env bash
# Usage: fuzz.sh [SECONDS]
# Builds the targets of tests/fuzz with clang and runs each for SECONDS (60). Findings and corpora
# stay in build-fuzz/campaign. FUZZ_DIR=DIR packs the targets instead, with campaign.sh and all that
# they need on a machine without a compiler.
set -euo pipefail
cd "$(dirname "$0")/.."
tools/build.sh build-fuzz fuzz_targets -DLLOYD_CUDA=OFF -DLLOYD_MPI=OFF -DLLOYD_FUZZ=ON \
  -DCMAKE_CXX_COMPILER=clang++ -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG=-O1

stage=${FUZZ_DIR:-build-fuzz/packed}
rm -rf "$stage"/{lib,corpus}
mkdir -p "$stage"/{lib,corpus}
for program in build-fuzz/tests/fuzz/fuzz_*; do
  [ -x "$program" ] && [ -f "$program" ] || continue
  name=${program##*/fuzz_}
  strip --strip-debug -o "$stage/fuzz_$name" "$program"
  cp -r "tests/fuzz/corpus/$name" "$stage/corpus/"
  cp "tests/fuzz/$name.dict" "$stage/"
done
# Copies all libraries except glibc, which is the machine's own. campaign.sh adds lib to their
# search path.
ldd "$stage"/fuzz_* | awk '$2 == "=>" && $1 !~ /^lib(c|m|dl|rt|pthread)\.so/ {print $3}' | sort -u |
  xargs -I{} cp -L {} "$stage/lib/"
cp tools/fuzz-campaign.sh "$stage/campaign.sh"
if [ -n "${FUZZ_DIR:-}" ]; then
  echo "$stage ($(du -sh "$stage" | cut -f 1)): run campaign.sh there"
else
  "$stage/campaign.sh" build-fuzz/campaign "${1:-60}" "${JOBS:-$(nproc)}"
fi
