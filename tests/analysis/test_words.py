"""The names that the analysis reads out of the program's tables."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

from analysis.model.words import AXES, GPU_AXES, INPUT_AXES, PROBLEM_AXES, STATUSES

ROOT = Path(__file__).resolve().parents[2]


def test_the_contracts_words_are_there():
    assert AXES[:5] == ["threads_per_block", "samples_per_thread", "threads", "processes", "gpus"]
    assert PROBLEM_AXES == ["n", "k", "dim", "batch", "precision"]
    assert {"data_seed", "init", "init_seed"} <= set(INPUT_AXES)
    assert GPU_AXES == ["host_memory"]
    assert STATUSES == ("ok", "unsupported", "incorrect", "imprecise", "failed", "timeout")


def test_one_line_in_the_table_adds_an_axis_here_too(make_run, tmp_path):
    file = make_run(n=(10**4,), k=(5,)) / "measurements.jsonl"
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    file.write_text("".join(json.dumps(row | {"tile": 16}) + "\n" for row in rows))

    tree = tmp_path / "tree"
    unread = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "analysis", tree / "analysis", ignore=unread)
    shutil.copytree(ROOT / "data" / "published", tree / "data" / "published")
    tables = tree / "kernels" / "core"
    tables.mkdir(parents=True)
    for table in ("axes.inc", "statuses.inc", "gpu_exchange.h"):
        shutil.copy(ROOT / "kernels" / "core" / table, tables)
    with (tables / "axes.inc").open("a") as added:
        added.write('LLOYD_TUNABLE(tile, 8, 1, 64, "points in a tile")\n')
    code = f"""
from pathlib import Path
from analysis.measures.points import all_points
from analysis.model.load import load_run
from analysis.model.words import AXES
run = load_run(Path({str(file.parent)!r}))
points = all_points([run], run.baseline)
print(AXES[-1], *points["tile"].unique(), *run.measurements["tile"].unique())
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tree, capture_output=True, text=True, check=False
    )
    assert done.stdout.split() == ["tile", "16", "16"], done.stderr
