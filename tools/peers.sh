#!/usr/bin/env bash
# Usage: peers.sh [DIR]
# Installs the peers that run on the CPU into an environment of their own: DIR, or .venv-peers.
# Nothing else of this project installs or needs them. PYTHON names an interpreter other than
# python3.
set -euo pipefail
cd "$(dirname "$0")/.."
directory=${1:-.venv-peers}
"$directory/bin/python" -c '' 2>/dev/null || "${PYTHON:-python3}" -m venv --clear "$directory"
"$directory/bin/python" -m pip install --quiet --disable-pip-version-check --only-binary=:all: \
  -r requirements-peers.txt
echo "Installed. To run them beside the other versions:"
echo "  export LLOYDBENCH_PYTHON=$(realpath "$directory")/bin/python"
echo "  build/run_experiment sweeps/cpu_regimes.yaml"
