#!/usr/bin/env bash
# Installs the wheel of the current folder as a user of a bare Debian or Ubuntu would, and runs the
# quickstart with its figures. For a new root:
#   tools/fresh-debian.sh dist bash -s <tools/packaging/quickstart.sh
set -euo pipefail
wheel=$(realpath lloydbench-*.whl)
step() { printf '%3d s: %s\n' $SECONDS "$*"; }
step "$(sed -n 's/^PRETTY_NAME=//p' /etc/os-release), $wheel"
quiet() { "$@" >/tmp/quickstart.log 2>&1 || { cat /tmp/quickstart.log >&2; return 1; }; }
quiet apt-get update
quiet apt-get install -y --no-install-recommends python3-venv
step 'pip install lloydbench'
python3 -m venv ~/lloydbench
quiet ~/lloydbench/bin/pip install "$wheel"
step 'lloydbench run'
mkdir ~/results
cd ~/results
~/lloydbench/bin/lloydbench run sweeps/quickstart.yaml --quiet
ls results/*/*/figures/{speedup,phases,clustering}.{svg,png,csv} >/dev/null
step 'every figure is there'
