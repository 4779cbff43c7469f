"""A run's counters as a table."""

import json

import pytest
from made_runs import measurement, write_lines

from analysis.__main__ import main
from analysis.model.files import RunError
from analysis.model.load import load_run
from analysis.pages.counted import phases

TENSOR = "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active"


def counter(point, phase, metric, value, unit, **others):
    names = {"point": point["point"], "version": point["version"], "phase": phase}
    row = {"kernel": None, "metric": metric, "preset": None, "value": value, "unit": unit}
    return {**names, **row, "passes": 2, "replay": "user", "status": "ok", "reason": None, **others}


@pytest.fixture
def run_path(tmp_path):
    point = {
        "point": "fast_dense/n:8000000/k:1024/dim:128/precision:fp16",
        **{"version": "fast_dense", "family": "fast", "backend": "cuda"},
        **{"n": 8_000_000, "k": 1024, "dim": 128, "precision": "fp16"},
    }
    path = tmp_path / "fast_counters"
    path.mkdir()
    write_lines(path / "measurements.jsonl", [measurement(point, iteration_ms=3.7)])
    (path / "spec.resolved.json").write_text(json.dumps({"name": "fast_counters"}))
    write_lines(
        path / "counters.jsonl",
        [
            counter(point, "assign", TENSOR, 71.25, "percent"),
            counter(point, "assign", TENSOR, 99.0, "percent", kernel="a_kernel(int)"),
            counter(
                *(point, "assign", "sm__cycles_elapsed.avg.per_second"),
                *(1.62e9, "gpc_cycle/second"),
            ),
            counter(point, "update", TENSOR, 0.0, "percent"),
            counter(point, "update", "dram__bytes.sum", None, "byte", status="unsupported"),
            counter(point, "assign", "dram__bytes.sum", 2.1e9, "byte"),
        ],
    )
    return path


def test_a_line_a_phase_with_units_for_people(run_path, tmp_path, capsys):
    head, _, *lines = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in phases(load_run(run_path)).markdown().splitlines()
        if line.startswith("|")
    ]
    assert head[5:] == [
        *("phase", "sm__pipe_tensor_cycles_active, %", "sm__cycles_elapsed per second, MHz"),
        "dram__bytes, MB",
    ]
    problem = ["fast_dense", "fp16", "8×10⁶", "1,024", "128"]
    assert lines == [
        [*problem, "assign", "71.2", "1,620", "2,100"],
        [*problem, "update", "0", "–", "–"],
    ]
    readme = tmp_path / "README.md"
    readme.write_text(
        "<!-- table:BEGIN fast_counters:counters -->\n<!-- table:END fast_counters:counters -->\n"
    )
    assert main(["readme", str(readme), str(run_path)]) == 0
    assert "| fast_dense | fp16 |" in readme.read_text()


def test_a_run_without_counters_says_what_to_ask_for(run_path):
    (run_path / "counters.jsonl").unlink()
    with pytest.raises(RunError, match=r"no counters of phases \(profile: \{counters: …\}\)"):
        phases(load_run(run_path))
