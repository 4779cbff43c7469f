"""Tests the CPU counters of a run: measured, simulated, or missing with a reason."""

import json
import os
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("LLOYDBENCH_BUILD", ROOT / "build")).resolve()

SPEC = """
name: counted
versions: [cpu_sequential]
axes: {{n: [{n}], k: [16], dim: [4]}}
data: {{generator: uniform}}
solve: {{iterations: 5}}
measure: {{repetitions: 6, max_seconds: 0.1, max_noise: 0.9}}
profile: {{cpu: [{cpu}]}}
"""


def counted(folder, cpu, n=20000, **variables):
    (folder / "counted.yaml").write_text(SPEC.format(cpu=cpu, n=n))
    subprocess.run(
        [BUILD / "run_experiment", folder / "counted.yaml", "--out", folder / "run"],
        check=True,
        capture_output=True,
        timeout=300,
        env={**os.environ, **variables},
    )
    read = [
        [json.loads(line) for line in (folder / "run" / name).read_text().splitlines()]
        for name in ("counters.jsonl", "passes.jsonl")
    ]
    assert all(row["status"] == "ok" for row in by_name(folder / "run" / "measurements.jsonl"))
    counters, passes = read
    return counters, [row for row in passes if row["pass"] != "timing"]


def by_name(file):
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_counters_are_counted_or_say_why_not(tmp_path):
    counters, passes = counted(tmp_path, "instructions, l1d_misses")
    missing = {row["status"] for row in counters} == {"unsupported"}
    assert [(p["pass"], p["status"]) for p in passes] == [
        ("cpu", "unsupported" if missing else "ok")
    ]
    assert {row["metric"] for row in counters} == {"instructions", "l1d_misses"}
    for row in counters:
        if row["status"] in {"unavailable", "unsupported"}:
            assert row["value"] is None
            assert row["reason"]
        else:
            assert (row["status"], row["phase"]) in {("ok", "assign"), ("ok", "update")}
    ok = {(r["metric"], r["phase"]): r["value"] for r in counters if r["status"] == "ok"}
    if ("instructions", "assign") not in ok:
        pytest.skip(f"no PMU: {counters[0]['reason']}")
    # Each of the 20000 × 16 distances in 4 dimensions takes a few instructions.
    assert 20000 * 16 < ok["instructions", "assign"] < 20000 * 16 * 4 * 20


def test_the_simulation_says_that_it_is_one(tmp_path):
    if shutil.which("valgrind") is None:
        pytest.skip("valgrind is not installed")
    counters, passes = counted(tmp_path, "cachegrind", n=100_000)
    if passes[0]["status"] == "unsupported":
        pytest.skip(passes[0]["reason"])
    values = {(row["phase"], row["metric"]): row["value"] for row in counters}
    for row in counters:
        assert (row["pass"], row["preset"], row["replay"]) == (
            "cachegrind",
            "cachegrind",
            "simulation",
        )
        assert "simulated" in row["reason"]
        assert (row["simulated_n"], row["calls"]) == (31250, 3)  # 2e6 / (16 · 4)
    assert {phase for phase, _ in values} == {"assign", "update"}
    # Each iteration reads the points (500 kB) once through L1, in lines of 64 B.
    lines = 31250 * 4 * 4 / 64
    assert lines * 0.9 < values["assign", "l1d_misses"] < lines * 3
    assert values["assign", "l1d_misses"] < values["assign", "l1d_accesses"]
    assert values["assign", "instructions"] > 31250 * 16 * 4
    assert values["update", "instructions"] < values["assign", "instructions"]


def test_several_points_are_simulated_in_one_process(tmp_path):
    if shutil.which("valgrind") is None:
        pytest.skip("valgrind is not installed")
    counters, passes = counted(tmp_path, "cachegrind", n="1000, 2000, 3000")
    if passes[0]["status"] == "unsupported":
        pytest.skip(passes[0]["reason"])
    assert {row["status"] for row in passes} == {"ok"}
    values = {
        row["point"]: row["value"]
        for row in counters
        if (row["phase"], row["metric"]) == ("assign", "instructions")
    }
    # points run in random order; their names sort by n, and more points take more instructions
    assert len(values) == 3
    assert sorted(values, key=values.get) == sorted(values)


def test_without_valgrind_the_reason_stands_in_the_rows(tmp_path):
    empty = tmp_path / "bin"
    empty.mkdir()
    for name in ("sh", "env"):
        (empty / name).symlink_to(shutil.which(name))
    counters, passes = counted(tmp_path, "cachegrind", PATH=str(empty))
    assert [(p["pass"], p["status"]) for p in passes] == [("cachegrind", "unsupported")]
    assert "apt-get install valgrind" in passes[0]["reason"]
    assert [(row["preset"], row["status"]) for row in counters] == [("cachegrind", "unsupported")]
