#!/usr/bin/env bash
# Usage: bundle.sh [CMake option…]: builds, and packs the program with the libraries it needs, the specs and the
# analysis into dist/. Environment: MATH_LIBS=0 leaves out cuBLAS, cuRAND and NCCL, for nodes that have them;
# BUNDLE_TESTS=1 adds the GoogleTest programs and ./run_tests.
set -euo pipefail
cd "$(dirname "$0")/.."
math_libs=${MATH_LIBS:-1} with_tests=${BUNDLE_TESTS:-0}

# build/ is as good as a build of its own unless it was made for this machine's GPU alone.
build=build
if nvidia-smi -L >/dev/null 2>&1; then build=build-bundle; fi
target=run_experiment
[ "$with_tests" = 0 ] || target=all
tools/build.sh $build $target "$@"

version=$(sed -n 's/.* version = "\(.*\)";.*/\1/p' $build/generated/build_info.h)
name=lloydbench-$version-linux-$(uname -m)
stage=dist/$name
rm -rf "$stage"
mkdir -p "$stage"/{lib/glibc,libexec,experiments}
cp $build/run_experiment "$stage/libexec/"
programs=("$stage/libexec/run_experiment")
if [ "$with_tests" = 1 ]; then
  mkdir "$stage/libexec/tests"
  while IFS= read -r test; do
    cp "$test" "$stage/libexec/tests/"
    programs+=("$stage/libexec/tests/$(basename "$test")")
  done < <(find $build/tests -type f -executable ! -path '*/CMakeFiles/*' -exec sh -c 'head -c4 "$1" | grep -q ELF' _ {} \; -print)
fi

# What ldd finds, and CUPTI's own parts, which it opens when it runs. The driver's libraries are the node's.
libraries() { ldd "$@" | sed -n 's/.*=> \(\/[^ ]*\) (.*/\1/p'; }
needed=$(libraries "${programs[@]}")
nvcc=$(sed -n 's/^CMAKE_CUDA_COMPILER:[A-Z]*=//p' $build/CMakeCache.txt)
if [ -n "$nvcc" ]; then
  toolkit=$(dirname "$(dirname "$nvcc")")
  for library in libcupti.so.13 libnvperf_host.so libnvperf_target.so; do
    file=$(find -L "$toolkit/lib64" "$toolkit/extras/CUPTI/lib64" -maxdepth 1 -name $library 2>/dev/null | head -n 1)
    [ -n "$file" ] || { echo "$library is not in $toolkit" >&2; exit 1; }
    needed+=$'\n'$file$'\n'$(libraries "$file")
  done
fi
for library in $(sort -u <<<"$needed"); do
  case $(basename "$library") in
    libcuda.so* | libnvidia-*) ;;
    libcublas* | libcurand* | libnccl*) [ "$math_libs" = 0 ] || cp -L "$library" "$stage/lib/" ;;
    libc.so* | libm.so* | libmvec.so* | libpthread.so* | libdl.so* | librt.so* | libutil.so* | libresolv.so* | libanl.so*)
      glibc=$(dirname "$library") ;;
    *) cp -L "$library" "$stage/lib/" ;;
  esac
done
# The driver and NVML need parts of the C library that we do not.
for library in libc.so.6 libm.so.6 libmvec.so.1 libpthread.so.0 libdl.so.2 librt.so.1 libutil.so.1 libresolv.so.2; do
  [ ! -e "$glibc/$library" ] || cp -L "$glibc/$library" "$stage/lib/glibc/"
done
interpreter=$(patchelf --print-interpreter $build/run_experiment)
cp -L "$interpreter" "$stage/lib/glibc/"
chmod u+w,a+rX -R "$stage"
chmod a+x "$stage/lib/glibc/$(basename "$interpreter")"

strip --strip-unneeded "${programs[@]}"
for program in "${programs[@]}"; do
  # RPATH and not RUNPATH: it holds for the libraries' own needs too, and before LD_LIBRARY_PATH.
  patchelf --force-rpath --set-rpath "\$ORIGIN/$(realpath -m --relative-to="$(dirname "$program")" "$stage/lib")" "$program"
done
# cuda: CUPTI and its parts look for each other
for library in "$stage"/lib/*.so*; do patchelf --force-rpath --set-rpath '$ORIGIN' "$library"; done

glibc_needed=$(objdump -T "${programs[@]}" "$stage"/lib/*.so* | grep -o 'GLIBC_2\.[0-9]*' | sort -u -t . -k 2n | tail -n 1)
sed -e "s/@GLIBC@/${glibc_needed#GLIBC_}/" -e "s/@LOADER@/$(basename "$interpreter")/" tools/bundle-launcher.sh >"$stage/run_experiment"
chmod 755 "$stage/run_experiment"
if [ "$with_tests" = 1 ]; then
  for test in "$stage"/libexec/tests/*; do
    ln -s run_experiment "$stage/$(basename "$test")"
  done
fi
