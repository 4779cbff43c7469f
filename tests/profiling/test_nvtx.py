"""Tests which NVTX ranges of a run a profiler sees, with a small NVTX tool for these tests."""

import json
import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("LLOYDBENCH_BUILD", ROOT / "build")).resolve()
RECORDER = BUILD / "tests" / "libnvtx_recorder.so"

SPEC = """
name: ranges
versions: [cpu_sequential]
axes: {n: [100], k: [3], dim: [2]}
data: {generator: uniform}
solve: {iterations: 4}
measure: {repetitions: 6, max_seconds: 0.01, max_noise: 0.9, l2: warm}
"""


def record(tmp_path, *arguments):
    (tmp_path / "ranges.yaml").write_text(SPEC)
    log = tmp_path / "nvtx.jsonl"
    environment = {
        **os.environ,
        "NVTX_INJECTION64_PATH": str(RECORDER),
        "LLOYDBENCH_NVTX_LOG": str(log),
    }
    command = [BUILD / "run_experiment", tmp_path / "ranges.yaml", "--out", tmp_path / "out"]
    subprocess.run([*command, *arguments], env=environment, check=True, capture_output=True)
    return [json.loads(line) for line in log.read_text().splitlines()]


def paths(events, names):
    """The stack of (level or phase, message, payload) at each push."""
    stack, seen = [], []
    for event in events:
        if event["event"] == "push":
            stack.append((names[event["category"]], event["message"], event["payload"]))
            seen.append(tuple(stack))
        elif event["event"] == "pop":
            stack.pop()
    assert stack == []
    return seen


@pytest.fixture(autouse=True)
def has_nvtx():
    if not RECORDER.exists():
        pytest.skip("built without CUDA, and so without NVTX")


def test_ranges_nest_from_the_experiment_down_to_the_phase(tmp_path):
    events = record(tmp_path)
    names = {e["category"]: e["name"] for e in events if e["event"] == "category"}
    pushes = [e for e in events if e["event"] == "push"]
    assert {e["domain"] for e in pushes} == {"lloydbench"}
    assert {"experiment", "point", "repetition", "iteration", "assign", "update"} == set(
        names.values()
    )
    # Phases and iterations are frequent, so their names are registered instead of copied.
    for event in pushes:
        often = names[event["category"]] in ("iteration", "assign", "update")
        assert event["registered"] == often, event
    seen = paths(events, names)
    point = ("point", "cpu_sequential/n:100/k:3/dim:2/precision:fp32", 100)
    head = (("experiment", "ranges", 1), point)
    for repetition in range(6):
        for iteration in range(4):
            for phase in ("assign", "update"):
                path = (
                    *head,
                    ("repetition", "repetition", repetition),
                    ("iteration", "iteration", iteration),
                    (phase, phase, 0),
                )
                assert seen.count(path) == 1, path


def test_profile_none_leaves_the_loop_bare(tmp_path):
    events = record(tmp_path, "--profile", "none")
    messages = {e["message"] for e in events if e["event"] == "push"}
    assert "iteration" not in messages
    assert "assign" not in messages
