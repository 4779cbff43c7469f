#!/usr/bin/env bash
# Usage: bundle.sh [CMake option…]
# Builds the program and packs it into dist/, with the libraries it needs, the specs and the
# analysis. Environment: MATH_LIBS=0 leaves out cuBLAS, cuRAND, NCCL and oneDNN, for nodes that have
# them; ONEDNN=1 keeps oneDNN all the same (11 MB packed, fast_cpu_gemm needs it); BUNDLE_TESTS=1
# adds the GoogleTest programs, ./run_tests and read_files (tests/data/compare_readers.py).
set -euo pipefail
cd "$(dirname "$0")/.."
math_libs=${MATH_LIBS:-1} onednn=${ONEDNN:-${MATH_LIBS:-1}} with_tests=${BUNDLE_TESTS:-0}

# On a machine without a GPU, build/ is for all GPUs and can be packed. Otherwise it is for the
# machine's GPU alone.
build=build
if nvidia-smi -L >/dev/null 2>&1; then build=build-bundle; fi
target=run_experiment
[ "$with_tests" = 0 ] || target=all
tools/build.sh $build $target "$@"

version=$(sed -n 's/.* version = "\(.*\)";.*/\1/p' $build/generated/build_info.h)
name=lloydbench-$version-linux-$(uname -m)
stage=dist/$name
rm -rf "$stage"
mkdir -p "$stage"/{libexec,lib/glibc,experiments}

programs=($build/run_experiment)
if [ "$with_tests" = 1 ]; then
  mapfile -t -O 1 programs < <(find $build/tests -type f -executable \
    \( -name '*_tests' -o -name read_files \) ! -name mpi_tests | sort)
fi

# The bundle has the libraries that ldd finds and those that are opened at run time: CUPTI with its
# parts, cuBLAS and oneDNN. The driver's libraries are the node's own.
libraries=("${programs[@]}")
# The twin is linked with Open MPI, which is the node's own, as its mpirun is. The program needs all
# its other libraries, too.
[ ! -e $build/run_experiment_mpi ] || programs+=($build/run_experiment_mpi)
if grep -q '^LLOYD_CUDA:BOOL=ON' $build/CMakeCache.txt; then
  opened=(libcupti.so.13 libnvperf_host.so libnvperf_target.so)
  [ "$math_libs" = 0 ] || opened+=(libcublas.so.13 libcublasLt.so.13)
  # The folders where CMake found them. In a full toolkit CUPTI has its own folder.
  mapfile -t folders < <(
    sed -nE 's/^CUDA_(cupti_LIBRARY|CUDART):FILEPATH=(.*)\/[^/]*$/\2/p' $build/CMakeCache.txt)
  for library in "${opened[@]}"; do
    file=$(find -L "${folders[@]}" -maxdepth 1 -name "$library" -print -quit)
    if [ -n "$file" ]; then
      cp -L "$file" "$stage/lib/"
      libraries+=("$file")
    else
      echo "$library is not in the CUDA toolkit (${folders[*]}): the bundle goes without it" >&2
    fi
  done
fi
if [ "$onednn" != 0 ]; then
  file=$(/sbin/ldconfig -p | awk '$1 ~ /^libdnnl\.so\.(2|3|3\.6)$/ && !found++ {print $NF}')
  if [ -n "$file" ]; then
    cp -L "$file" "$stage/lib/"
    libraries+=("$file")
  else
    echo "libdnnl is not installed: the bundle goes without it" >&2
  fi
fi
ldd "${libraries[@]}" | awk '$2 == "=>" {print $1, $3}' | sort -u | while read -r library path; do
  case $library in
    libcuda.so* | libnvidia-*) ;;
    # The C library's parts go to lib/glibc, below.
    lib[cm].so* | libmvec.so* | libpthread.so* | libdl.so* | librt.so* | libutil.so*) ;;
    libcublas* | libcurand* | libnccl*) [ "$math_libs" = 0 ] || cp -L "$path" "$stage/lib/" ;;
    *) cp -L "$path" "$stage/lib/" ;;
  esac
done
interpreter=$(patchelf --print-interpreter $build/run_experiment)
glibc=$(dirname "$(ldd $build/run_experiment | awk '$1 == "libc.so.6" {print $3}')")
# Copies everything that a driver may need, not only what the program needs.
for library in libc.so.6 libm.so.6 libmvec.so.1 libpthread.so.0 libdl.so.2 librt.so.1 \
  libutil.so.1 libresolv.so.2; do
  [ ! -e "$glibc/$library" ] || cp -L "$glibc/$library" "$stage/lib/glibc/"
done
cp -L "$interpreter" "$stage/lib/glibc/"

cp "${programs[@]}" "$stage/libexec/"
for program in "$stage"/libexec/*; do
  strip --strip-unneeded "$program"
  # RPATH and not RUNPATH: RPATH also applies to the dependencies of the libraries, and
  # LD_LIBRARY_PATH does not override it.
  patchelf --force-rpath --set-rpath '$ORIGIN/../lib' "$program"
done
needed=$(objdump -T "$stage"/libexec/* "$stage"/lib/*.so* | grep -o 'GLIBC_2\.[0-9]*' |
  sort -u -t . -k 2n | tail -n 1)
for program in "$stage"/libexec/*; do
  sed -e "s/@GLIBC@/${needed#GLIBC_}/" -e "s/@LOADER@/$(basename "$interpreter")/" \
    tools/bundle-launcher.sh >"$stage/$(basename "$program")"
  chmod 755 "$stage/$(basename "$program")"
done
if [ "$with_tests" = 1 ]; then
  # tests/files.h finds these here.
  install -D -t "$stage/libexec/for_tests/fake_nvml" $build/tests/fake_nvml/libnvidia-ml.so.1
  [ ! -e $build/tests/libfake_cupti.so ] ||
    install -t "$stage/libexec/for_tests" $build/tests/libfake_cupti.so
  cat >"$stage/run_tests" <<'END'
#!/bin/sh
# Runs every test program and fails if one of them fails. Each gets the arguments, such as
# --gtest_filter.
status=0
for program in "$(dirname "$0")"/*_tests; do
  [ "$program" -ef "$0" ] || "$program" "$@" || status=1
done
exit $status
END
  chmod 755 "$stage/run_tests"
fi

cp -r experiments/sweeps "$stage/experiments/"
cp -r $build/share "$stage/" # the man page and completions
cp -r analysis requirements.txt "$stage/"
install -D -t "$stage/data/published" data/published/*
# The rates of machines that were measured, for floor_ms on machines like them.
for file in data/recorded/*/ceilings.json; do install -D "$file" "$stage/$file"; done
install -D -t "$stage/kernels/core" kernels/core/{axes.inc,statuses.inc,gpu_exchange.h}
install -D -t "$stage/experiments/spec" experiments/spec/figures.inc
for family in kernels/python kernels/peer; do
  [ ! -d $family ] || install -D -t "$stage/$family" $family/*.py
done
find "$stage/analysis" -name __pycache__ -prune -exec rm -r {} +
for file in LICENSE CITATION.cff; do [ ! -e $file ] || cp $file "$stage/"; done
.venv/bin/python tools/bundle_pages.py "$stage" README.md CONTRIBUTING.md docs/*.md \
  examples/README.md analysis/*.md profiling/*.md kernels/{cpu,external}/*.md
cat >"$stage/BUNDLE.txt" <<END
lloydbench $version, built for $(uname -m) Linux. It needs no installation and no root.

  ./run_experiment sweeps/quickstart.yaml      writes results/ in the current folder
  python3 -m analysis figures results/*/*      draws figures; needs Python 3.10 and
                                               pip install -r requirements.txt
  man share/man/man1/run_experiment.1          the manual; share/ has shell completions, too
  README.md and docs/                          the documentation

The node must have an NVIDIA driver, and Open MPI for the MPI versions. If its C library is older
than $needed, the one in lib/glibc is used.
END
[ "$math_libs" = 1 ] || cat >>"$stage/BUNDLE.txt" <<END
cuBLAS, cuRAND and NCCL are those of the node: name their folder in LD_LIBRARY_PATH. The same holds
for oneDNN, where lib/ has no libdnnl.
END
chmod -R u+w,a+rX "$stage"
chmod a+x "$stage/lib/glibc/$(basename "$interpreter")"
tar -C dist --sort=name --owner=0 --group=0 --numeric-owner -cf - "$name" |
  gzip -9n >"$stage.tar.gz"
du -h "$stage.tar.gz"
