"""Versions on GPUs with several ranks: what a run says of them, and where GPUs are missing.

On a machine with one GPU the ranks share it (LLOYDBENCH_SHARE_GPUS)."""

import json
import os
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("LLOYDBENCH_BUILD", ROOT / "build")).resolve()
PROGRAM = BUILD / "run_experiment"

needs_mpirun = pytest.mark.skipif(
    shutil.which("mpirun") is None, reason="mpirun is not on PATH (openmpi-bin)"
)

SPEC = """
name: ranks
versions: [{versions}]
axes: {{n: 20_000, k: 16, dim: 64, precision: [fp16, fp32], processes: [{processes}], gpus: {gpus}}}
solve: {{iterations: 5}}
measure: {{repetitions: 4, max_seconds: 0.1}}
profile: {{counters: [l1]}}
"""


def spec_for(folder, versions="multi_wgmma, multi_screen", processes="1, 2", gpus=1):
    text = SPEC.format(versions=versions, processes=processes, gpus=gpus)
    (folder / "ranks.yaml").write_text(text)
    return folder / "ranks.yaml"


def run(folder, spec, **variables):
    command = [PROGRAM, spec, "--out", folder / "run", "--quiet"]
    environment = {**os.environ, **variables}
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=600, env=environment, check=False
    )
    log = (folder / "run" / "log.txt").read_text()
    assert done.returncode == 0, done.stderr + log
    return folder / "run"


def rows_of(directory, file="measurements.jsonl"):
    return [json.loads(line) for line in (directory / file).read_text().splitlines()]


def planned(spec, **variables):
    command = [PROGRAM, "plan", spec, "--json"]
    environment = {**os.environ, **variables}
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=60, env=environment, check=True
    )
    return json.loads(done.stdout)


@needs_mpirun
def test_too_few_gpus_are_told_with_both_numbers(tmp_path):
    rows = rows_of(run(tmp_path, spec_for(tmp_path, processes="64", gpus=2)))
    assert len(rows) == 4
    for row in rows:
        assert (row["status"], row["processes"], row["gpus"]) == ("unsupported", 64, 2)
        if row["reason"].startswith("computes in"):
            continue  # multi_screen takes fp32 alone, multi_wgmma 16 bits
        assert row["reason"].startswith("needs 128 GPUs"), row["reason"]
        assert "this machine has" in row["reason"] or "no CUDA device" in row["reason"]


def test_mpirun_is_needed_by_several_processes_alone(tmp_path):
    points = planned(spec_for(tmp_path), PATH=str(tmp_path))
    if any("no CUDA device" in (p["reason"] or "") for p in points):
        pytest.skip("no CUDA device")
    for point in points:
        lacks = "mpirun is not on PATH" in (point["reason"] or "")
        assert lacks == (point["processes"] == 2), point


@pytest.fixture(scope="module", params=["nccl", "mpi"])
def ranked(request, tmp_path_factory):
    """Rows of one and two processes, whose GPUs add up by NCCL where it reaches both."""
    folder = tmp_path_factory.mktemp(request.param)
    variables = {"LLOYDBENCH_SHARE_GPUS": "1"}
    if request.param == "mpi":
        variables["LLOYDBENCH_NO_NCCL"] = "1"
    spec = spec_for(folder)
    reasons = [p["reason"] for p in planned(spec, **variables) if p["precision"] == "fp32"]
    why_not = next((r for r in reasons if r and not r.startswith("computes in")), None)
    if why_not:
        pytest.skip(why_not)
    return run(folder, spec, **variables)


@needs_mpirun
def test_ranks_are_verified_and_rows_name_their_gpus(ranked):
    rows = [row for row in rows_of(ranked) if row["status"] != "unsupported"]
    team = json.loads((ranked / "environment.json").read_text())["gpus"][0]["team"]
    assert {(row["version"], row["processes"]) for row in rows} == {
        (version, processes) for version in ("multi_wgmma", "multi_screen") for processes in (1, 2)
    }
    for row in rows:
        assert (row["status"], row["verified"]) == ("ok", True), row
        uuids = row["gpu_uuid"].split(",")
        assert len(uuids) == row["processes"]
        shared = row["processes"] > len(team)
        assert len(set(uuids)) == (1 if shared else row["processes"])
        if row["processes"] == 1:
            assert (row["timing_basis"], row["binding"]) == ("cuda_events", None)
        else:
            assert (row["timing_basis"], row["binding"]) == ("mpi_max", "none")
            assert row["oversubscribed"] or not shared
        assert 0 < row["solve_ms"] <= row["end_to_end_ms"]


@needs_mpirun
def test_the_log_says_how_sums_are_added_up(ranked):
    apart = any(
        row["processes"] == 2 and len(set(row["gpu_uuid"].split(","))) == 2
        for row in rows_of(ranked)
        if row["status"] == "ok"
    )
    by_mpi = "2 ranks × 1 GPUs: sums are added up by MPI, in host memory"
    log = (ranked / "log.txt").read_text()
    if "mpi" in ranked.parent.name or not apart:
        assert by_mpi in log
    else:
        assert "2 ranks × 1 GPUs: sums are added up by " in log


@needs_mpirun
def test_counters_of_several_ranks_are_refused(ranked):
    rows = [row for row in rows_of(ranked, "counters.jsonl") if "/processes:2/" in row["point"]]
    assert rows
    for row in rows:
        assert row["status"] == "unsupported"
        assert "counts on one GPU, this point uses 2" in row["reason"]
