"""Tests --nsys and --ncu: the errors without the tools, and what Nsight Systems records."""

import json
import os
import pathlib
import shutil
import sqlite3
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("LLOYDBENCH_BUILD", ROOT / "build")).resolve()
SPEC = """name: traced
versions: [cpu_sequential]
axes: {n: [100, 200], k: [3], dim: [2]}
data: {generator: uniform}
solve: {iterations: 4}
measure: {repetitions: 6, max_seconds: 0.01, max_noise: 0.9}
"""


def run(tmp_path, *arguments, path=None):
    (tmp_path / "traced.yaml").write_text(SPEC)
    return subprocess.run(
        [BUILD / "run_experiment", tmp_path / "traced.yaml", "--out", tmp_path / "out", *arguments],
        env={**os.environ, **({} if path is None else {"PATH": path})},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.fixture
def tools(tmp_path):
    """A folder with basic shell programs and no profiler. Tests add programs to it."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("sh", "rm", "sleep", "readlink", "touch"):
        (folder / name).symlink_to(shutil.which(name))
    return folder


def install(folder, name, script):
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


@pytest.mark.parametrize("tool", ["nsys", "ncu"])
def test_a_missing_tool_is_told_before_anything_runs(tmp_path, tools, tool):
    result = run(tmp_path, f"--{tool}", path=str(tools))
    assert result.returncode == 2
    assert f"--{tool}: " in result.stderr
    assert "is not on PATH" in result.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("tool", ["nsys", "ncu"])
def test_a_tool_that_is_too_old_is_told(tmp_path, tools, tool):
    install(tools, tool, "echo version 2019.3.7")
    result = run(tmp_path, f"--{tool}", path=str(tools))
    assert result.returncode == 2
    assert "2019.3.7 is too old" in result.stderr


def test_a_tool_that_fails_costs_no_timing(tmp_path, tools):
    install(tools, "ncu", '[ "$1" = --version ] && echo 2025.3.1 || { echo no luck; exit 3; }')
    result = run(tmp_path, "--ncu", path=str(tools))
    assert result.returncode == 0, result.stderr
    assert "ncu: ncu wrote no report: it exited with status 3; its output is in" in result.stderr
    assert "no luck" in (tmp_path / "out" / "log.txt").read_text()


def test_the_tool_gets_the_capture_range_and_its_report_is_never_written_over(tmp_path, tools):
    install(
        tools,
        "ncu",
        '[ "$1" = --version ] && echo 2025.3.1 && exit\n'
        'echo "$@"\nfor word in "$@"; do\n'
        '  case $word in --export=*) touch "${word#*=}.ncu-rep" ;; esac\ndone',
    )
    result = run(tmp_path, "--ncu", path=str(tools))
    report = tmp_path / "out" / "report.ncu-rep"
    assert f"ncu: {report}" in result.stderr
    log = (tmp_path / "out" / "log.txt").read_text()
    assert "--nvtx --nvtx-include=lloydbench@capture/" in log
    assert "--clock-control=none" in log
    again = subprocess.run(
        [BUILD / "run_experiment", "--resume", tmp_path / "out", "--ncu"],
        env={**os.environ, "PATH": str(tools)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "exists already and is not overwritten" in again.stderr


def ranges_in(report, tmp_path):
    database = tmp_path / "trace.sqlite"
    subprocess.run(
        ["nsys", "export", "--type=sqlite", f"--output={database}", report],
        check=True,
        capture_output=True,
    )
    rows = sqlite3.connect(database).execute(
        "SELECT n.start, n.end, COALESCE(n.text, s.value), n.int64Value"
        " FROM NVTX_EVENTS n LEFT JOIN StringIds s ON n.textId = s.id"
        " WHERE n.end IS NOT NULL ORDER BY n.start, -n.end"
    )
    stack, paths = [], []
    for start, end, text, payload in rows:
        while stack and stack[-1][1] <= start:
            stack.pop()
        stack.append((start, end, text, payload))
        paths.append(tuple((entry[2], entry[3]) for entry in stack))
    return paths


def test_nsight_systems_sees_the_ranges_and_no_set_up(tmp_path):
    if shutil.which("nsys") is None:
        pytest.skip("nsys (Nsight Systems) is not on PATH")
    result = run(tmp_path, "--nsys", "--json")
    assert result.returncode == 0, result.stderr
    (line,) = json.loads(result.stdout)["traces"]
    report = tmp_path / "out" / "trace.nsys-rep"
    if not report.exists():
        assert (tmp_path / "out" / "trace.qdstrm").exists(), line
        pytest.skip(f"this nsys cannot make a report of its recording: {line}")
    paths = ranges_in(report, tmp_path)
    names = [tuple(name for name, _ in path) for path in paths]
    for n in (100, 200):
        point = f"cpu_sequential/n:{n}/k:3/dim:2/precision:fp32"
        head = ("capture", "traced", point, "repetition")
        assert names.count(head) == 1
        for phase in ("assign", "update"):
            assert names.count((*head, "iteration", phase)) == 4
        iterations = [
            path[-1][1] for path in paths if path[-1][0] == "iteration" and (point, n) in path
        ]
        assert iterations == [0, 1, 2, 3]
    # Each of the 2 points has 1 + 1 + 4 × 3 ranges, and 2 ranges enclose them. Set-up, which has
    # its own ranges, comes before the capture.
    assert len(names) == 2 + 2 * 14
