"""The README keeps its promises: its tables are up to date and what it names exists."""

import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

from analysis.pages.regimes import REGIMES

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = pathlib.Path(os.environ.get("LLOYDBENCH_BUILD", ROOT / "build")).resolve()
README = (ROOT / "README.md").read_text()


@pytest.mark.parametrize("file", ["README.md", "kernels/fast/README.md"])
def test_its_tables_are_up_to_date(file):
    if not list((ROOT / "data" / "recorded").glob("*/*/measurements.jsonl")):
        pytest.skip("no recorded runs")
    command = [sys.executable, "-m", "analysis", "readme", file, "data/recorded", "--check"]
    result = subprocess.run(
        [*command, "--program", BUILD / "run_experiment"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr


def test_every_file_and_target_it_names_exists():
    for path in re.findall(r"\]\(([^)\s#:]+)\)", README):
        assert (ROOT / path).exists(), path
    makefile = (ROOT / "Makefile").read_text()
    for target in set(re.findall(r"`?make ([a-z]+)", README)):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


@pytest.mark.parametrize("sweep", ["fast_regimes", "fast_counters", "fast_reproducible"])
def test_the_sweeps_of_the_regimes_have_the_tables_regimes(sweep):
    command = [BUILD / "run_experiment", f"sweeps/{sweep}.yaml", "--dry-run", "--json"]
    told = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    points = [p for p in json.loads(told) if p["version"].startswith("fast_")]
    seen = {(p["n"], p["k"], p["dim"], p["precision"] == "fp16") for p in points}
    known = {(r.n, r.k, r.dim, r.half) for r in REGIMES}
    assert seen <= known
    if sweep == "fast_regimes":
        assert seen == known
