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

# Hides the lines of the suites that pass, and in the output of one that fails the cases that pass
# or are skipped, which the last line reports.
# $1: the folder of the build.
cpp_tests() {
  local reports=$1/test-reports status left
  rm -rf "$reports"
  mkdir "$reports"
  ctest --test-dir "$1" --output-on-failure --parallel "${JOBS:-$(nproc)}" |
    awk '
      function show() { if (held != "") print held; held = "" }
      /^ *(Start +[0-9]+:|[0-9]+\/[0-9]+ Test)/ { show(); print; next }
      /^\[ RUN / { show(); held = $0; next }
      /^\[ +OK \]/ || /^\[  SKIPPED \]/ { held = ""; next }
      held == "" { print; next }
      { held = held "\n" $0 }
      /^\[  FAILED  \]/ { show() }
      END { show() }' |
    grep -Ev '^ +Start +[0-9]+: | Passed +[0-9.]+ sec$'
  status=${PIPESTATUS[0]}
  left=$(find "$reports" -name '*.unfinished')
  [ -z "$left" ] || printf 'ended before their last case: %s\n' "$left"
  [ "$status" = 0 ] && [ -z "$left" ]
}

# Several tests run at once. A thread of OpenMP that waits must not keep a core from another test.
export OMP_WAIT_POLICY=passive

tools/build.sh build all "$@" || exit
step "C++ tests" cpp_tests build
# A file's tests share what they make first, so they stay in one process. tests/conftest.py says in
# which order the files begin.
step "Python tests" .venv/bin/python -m pytest --junitxml=build/test-reports/python.xml \
  --numprocesses="${JOBS:-$(nproc)}" --dist=loadfile --no-loadscope-reorder

# -O1, because the tests would crawl without it. More optimisation is not needed, because no version
# has to be fast here.
if tools/build.sh build-asan all -DLLOYD_CUDA=OFF -DLLOYD_SANITIZE=ON -DCMAKE_BUILD_TYPE=Debug \
  "-DCMAKE_CXX_FLAGS_DEBUG=-O1 -g1 -D_GLIBCXX_ASSERTIONS"; then
  # LeakSanitizer of gcc 12 reads the thread-local memory of libraries that were opened at run time,
  # such as oneDNN, at a wrong address and crashes; without this interceptor it does not.
  export ASAN_OPTIONS=intercept_tls_get_addr=0
  # These two sizes take minutes here, and others run the same code. IsVerified solves the problems
  # that GivesTheSameBitsInEveryRunAndGrid solves, with the same versions; the rest of its time is
  # the verification, which EveryVersion.IsVerified runs.
  slow='*Reproducible.*'
  LLOYD_TESTS_LEFT_OUT="${slow}ManyDimensionsAndClusters:${slow}SumsThatAreKept"
  export LLOYD_TESTS_LEFT_OUT+=":*Reproducible.IsVerified*"
  step "C++ tests under sanitizers" cpp_tests build-asan
else
  failed+=("sanitizer build")
fi

echo
.venv/bin/python tools/skipped.py build/test-reports/*.xml
if [ ${#failed[@]} -gt 0 ]; then
  printf 'FAILED: %s\n' "$(IFS=,; echo "${failed[*]}")"
  exit 1
fi
