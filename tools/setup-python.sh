#!/usr/bin/env bash
# Makes .venv with the packages that requirements.txt pins. PYTHON names an interpreter other than
# python3.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))'; then
  echo "$python is $("$python" --version 2>&1); Python 3.10 or newer is needed." \
    "Name one: make PYTHON=python3.12" >&2
  exit 1
fi
.venv/bin/python -c '' 2>/dev/null || "$python" -m venv --clear .venv
echo "Installing the Python packages of requirements.txt into .venv"
if ! .venv/bin/python -m pip install --quiet --disable-pip-version-check --only-binary=:all: \
  -r requirements.txt; then
  echo "The Python packages could not be installed: does this machine reach the Python package" \
    "index?" >&2
  exit 1
fi
touch .venv/.stamp
