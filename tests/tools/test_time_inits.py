"""tools/time_inits.py, with the libraries that every machine with this project has."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

TOOL = Path(__file__).parents[2] / "tools" / "time_inits.py"
SPEC = importlib.util.spec_from_file_location("time_inits", TOOL)
time_inits = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(time_inits)


def test_inertia_is_the_sum_of_squared_distances_to_the_nearest():
    generator = np.random.default_rng(3)
    points = generator.standard_normal((20_000, 3), dtype=np.float32)  # several blocks
    centroids = points[:7] + 1
    expected = ((points[:, None].astype(float) - centroids) ** 2).sum(axis=2).min(axis=1).sum()
    assert time_inits.inertia(points, centroids) == pytest.approx(expected, rel=1e-5)


def test_table_has_a_row_for_each_method(tmp_path):
    size = ("--n", "3e3", "--dim", "3", "--k", "10", "--seeds", "2", "--out", str(tmp_path))
    command = [sys.executable, str(TOOL), *size, "--versions", "cpu_sequential"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    rows = [json.loads(line) for line in (tmp_path / "inits.jsonl").read_text().splitlines()]
    ours = ["k-means++ (cpu)", "k-means|| (cpu)"]
    assert [row["method"] for row in rows if row["library"] == "lloydbench"] == [
        method for method in ours for _ in range(2)
    ]
    assert any(row["library"].startswith("scikit-learn ") for row in rows)
    for row in rows:
        assert row["ms"] > 0
        # every method draws from the same points: none is far from another
        assert 0.5 < row["inertia"] / rows[0]["inertia"] < 2, row
    lines = result.stdout.splitlines()
    assert lines[0] == "n = 3,000, dim = 3, k = 10, 2 seeds"
    methods = {(row["library"], row["method"]) for row in rows}
    assert len(lines) == 4 + len(methods)
    assert {tuple(line.split(" | ")[i].strip("| ") for i in (0, 1)) for line in lines[4:]} == {
        (library, method.replace("|", r"\|")) for library, method in methods
    }


def test_libraries_that_are_not_named_are_left_out():
    points = np.zeros((4, 2), np.float32)
    chosen = list(time_inits.others(points, 2, 1, []))
    assert chosen == []
    drawn = list(time_inits.others(np.eye(40, dtype=np.float32), 2, 1, ["scikit-learn"]))
    assert {row["library"].split()[0] for row in drawn} == {"scikit-learn"}
