"""docs/metrics.md explains every column of the rows, and no other."""

import json
import os
import pathlib
import re
import subprocess

import pytest

from analysis.model import load
from analysis.model.groups import is_group
from analysis.model.timeline import EVENTS
from analysis.model.words import AXES, PROBLEM_AXES, STATUSES

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = pathlib.Path(os.environ.get("LLOYDBENCH_BUILD", ROOT / "build")).resolve()
PAGE = (ROOT / "docs" / "metrics.md").read_text()
FILES = ["measurements", "phases", "counters", "passes", "convergence", "timeline"]
READ = {
    "measurements": [*load.MEASUREMENTS],
    "phases": load.PHASES,
    "counters": load.COUNTERS,
    "timeline": EVENTS,
}
SPEC = """name: columns
versions: [cpu_sequential, cpu_openmp, luigi_v1_fused]
axes: {n: [200], k: [3], dim: [2], threads: [1]}
solve: {iterations: 4}
data: {generator: uniform, seed: 42}
measure: {repetitions: 6, max_seconds: 0.01}
profile: {counters: [l1], timeline: true, cpu: [instructions], convergence: true}
"""


def explained(heading):
    """The names in the first column of the table under a heading."""
    part = re.split(rf"^###? {re.escape(heading)}$", PAGE, flags=re.MULTILINE)[1]
    table = re.search(r"^(\|.*\n)+", part, re.MULTILINE)[0]
    cells = [line.split("|")[1] for line in table.splitlines()[2:]]
    return [name for cell in cells for name in re.findall(r"`(\w+)`", cell)]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("columns")
    (folder / "columns.yaml").write_text(SPEC)
    command = [BUILD / "run_experiment", folder / "columns.yaml", "--out", folder / "out"]
    subprocess.run([*command, "--quiet"], check=True, capture_output=True)
    return folder / "out"


def columns(file):
    """The keys of a file's rows, which may be compacted."""
    found = set()
    for line in file.read_text().splitlines() if file.exists() else []:
        row = json.loads(line)
        found |= {*row["group"], *row["columns"]} if is_group(row) else {*row}
    return found


@pytest.mark.parametrize("name", FILES)
def test_every_column_is_explained_once(run, name):
    names = explained(f"{name}.jsonl")
    assert len(names) == len({*names})
    recorded = [*(ROOT / "data" / "recorded").glob(f"*/*/{name}.jsonl")]
    written = set().union(*map(columns, [run / f"{name}.jsonl", *recorded]))
    assert written >= {"point", "version"}
    assert written <= {*names}
    # What no run here has, the analysis reads from rows of an older schema, or the program's
    # sources have: it needs a GPU, RAPL or valgrind.
    older = {column.key for column in READ.get(name, [])}
    for rare in {*names} - written - older:
        sources = (ROOT / "experiments").rglob("*.cpp")
        assert any(f'["{rare}"]' in source.read_text() for source in sources), rare


def test_the_environment_is_explained(run):
    """Also what is nested, except the names of variables."""
    part = PAGE.split("\n## environment.json\n")[1].split("\n## ")[0]
    names = {*re.findall(r"`(\w+)`", part)}
    for file in [run / "environment.json", *(ROOT / "data" / "recorded").glob("*/*/env*.json")]:
        environment = json.loads(file.read_text())
        assert {*environment} <= {*explained("environment.json")}
        nested = [environment["cpu"], environment["build"], *environment["gpus"]]
        nested += [environment.get("load_before") or {}]
        assert set().union(*nested) <= names


@pytest.mark.parametrize("name", READ)
def test_what_the_analysis_reads_is_explained(name):
    assert {column.key for column in READ[name]} <= {*explained(f"{name}.jsonl")}


def test_axes_and_statuses_are_those_of_the_program():
    assert {*AXES, *PROBLEM_AXES} <= {*explained("measurements.jsonl")}
    assert tuple(explained("Statuses")) == STATUSES
