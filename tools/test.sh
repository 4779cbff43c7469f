#!/usr/bin/env bash
# Usage: test.sh [CMake option…]
# Runs the C++ tests, the Python tests, and the C++ tests of the host code again under
# AddressSanitizer and UndefinedBehaviorSanitizer. Continues after a failure. The last line says
# what was skipped.
set -uo pipefail
cd "$(dirname "$0")/.."
failed=()
step() {
  printf '\n== %s\n' "$1"
  "${@:2}" || failed+=("$1")
}

# Hides the lines of the hundreds of tests that pass and of those that are skipped, which the last
# line reports.
cpp_tests() {
  ctest --output-on-failure --parallel "${JOBS:-$(nproc)}" "$@" |
    grep -Ev -e '^ +Start +[0-9]+: | Passed +[0-9.]+ sec$' \
      -e '\*\*\*Skipped|\(Skipped\)$|tests did not run:$'
  return "${PIPESTATUS[0]}"
}

reports=$PWD/build/test-reports
tools/build.sh build all "$@" || exit
rm -rf "$reports"
mkdir "$reports"
step "C++ tests" cpp_tests --test-dir build --output-junit "$reports/cpp.xml"
step "Python tests" .venv/bin/python -m pytest --junitxml="$reports/python.xml"

# -O1, because the tests would crawl without it. More optimisation is not needed, because no version
# has to be fast here.
if tools/build.sh build-asan all -DLLOYD_CUDA=OFF -DLLOYD_SANITIZE=ON -DCMAKE_BUILD_TYPE=Debug \
  "-DCMAKE_CXX_FLAGS_DEBUG=-O1 -g -D_GLIBCXX_ASSERTIONS"; then
  # LeakSanitizer of gcc 12 reads the thread-local memory of libraries that were opened at run time,
  # such as oneDNN, at a wrong address and crashes; without this interceptor it does not.
  export ASAN_OPTIONS=intercept_tls_get_addr=0
  # These two sizes take minutes here, and others run the same code.
  step "C++ tests under sanitizers" cpp_tests --test-dir build-asan \
    --exclude-regex 'Reproducible.*(ManyDimensionsAndClusters|SumsThatAreKept)'
else
  failed+=("sanitizer build")
fi

echo
.venv/bin/python tools/skipped.py "$reports"/*.xml
if [ ${#failed[@]} -gt 0 ]; then
  printf 'FAILED: %s\n' "$(IFS=,; echo "${failed[*]}")"
  exit 1
fi
