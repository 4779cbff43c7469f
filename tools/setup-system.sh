#!/usr/bin/env bash
# Usage: setup-system.sh [bundle] [lint] [fuzz] [browser] [paper] [shells] [slurm]
# Installs the missing system packages by apt, including those for the named purposes.
set -euo pipefail
packages=(g++ make cmake ninja-build python3 python3-venv libyaml-cpp-dev nlohmann-json3-dev
  libcli11-dev libfmt-dev libbenchmark-dev libre2-dev libxxhash-dev zlib1g-dev libhwy-dev
  libeigen3-dev libgtest-dev libfast-float-dev)
# The build works without these. The MPI versions and fast_cpu_gemm, which opens oneDNN, are then
# reported as unsupported.
optional=(openmpi-bin libopenmpi-dev libdnnl-dev)
for extra in "$@"; do
  case "$extra" in
    bundle) packages+=(patchelf binutils) ;;
    lint) packages+=(clang-tidy) ;;
    fuzz) packages+=(clang libomp-dev libclang-rt-dev) ;;
    # Ubuntu has Chromium only as a snap, which needs a service that containers do not run. There
    # the test that needs it is skipped.
    browser) grep -qs '^ID=debian' /etc/os-release && packages+=(chromium) ;;
    # LaTeX with booktabs, PGF, and a reader of PDFs: 64 MB to download, 230 MB on the disk.
    paper) packages+=(texlive-latex-recommended texlive-pictures poppler-utils) ;;
    # What the shell completions and the man page are tested with.
    shells) packages+=(zsh fish groff-base mandoc) ;;
    # The cluster of tests/experiments/slurm.py. The tests start and stop it.
    slurm) packages+=(slurmctld slurmd slurm-client munge) ;;
  esac
done

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  for command in g++ cmake python3; do
    command -v $command >/dev/null || missing+=" $command"
  done
  [ -z "${missing:-}" ] && exit 0 # CMake finds the libraries and names those that are missing
  echo "Missing:$missing. This system has no apt; install them and what Debian calls:" \
    "${packages[*]}" >&2
  exit 1
fi

installed=" $(dpkg-query -W -f '${db:Status-Status} ${Package} ' \
  "${packages[@]}" "${optional[@]}" 2>/dev/null || true)"
missing=() wanted=()
for package in "${packages[@]}"; do
  case "$installed" in *" installed $package "*) ;; *) missing+=("$package") ;; esac
done
for package in "${optional[@]}"; do
  case "$installed" in *" installed $package "*) ;; *) wanted+=("$package") ;; esac
done
[ ${#missing[@]} -gt 0 ] || [ ${#wanted[@]} -gt 0 ] || exit 0

install=(env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends)
if [ "$(id -u)" -eq 0 ]; then
  sudo=()
elif command -v sudo >/dev/null && { sudo -n true 2>/dev/null || [ -t 0 ]; }; then
  sudo=(sudo)
elif [ ${#missing[@]} -eq 0 ]; then
  echo "Without ${wanted[*]} the versions that need them will be reported as unsupported;" \
    "root can install them by apt-get" >&2
  exit 0
else
  echo "System packages are missing, and only root can install them." \
    "Have root run this one command, then try again:" >&2
  echo "  apt-get update && apt-get install -y --no-install-recommends" \
    "${missing[*]} ${wanted[*]}" >&2
  exit 1
fi
all=("${missing[@]}" "${wanted[@]}")
echo "Installing system packages: ${all[*]}"
if [ ${#missing[@]} -gt 0 ]; then
  "${sudo[@]}" apt-get update -q
  "${sudo[@]}" "${install[@]}" "${missing[@]}"
else
  "${sudo[@]}" apt-get update -q || true
fi
if [ ${#wanted[@]} -gt 0 ] && ! "${sudo[@]}" "${install[@]}" "${wanted[@]}"; then
  echo "${wanted[*]} cannot be installed: the versions that need them will be reported as" \
    "unsupported" >&2
fi
