"""What a run says of a point on several GPUs, and where there are too few."""

import json
import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("LLOYDBENCH_BUILD", ROOT / "build")).resolve()

SPEC = """
name: several
versions: [multi_wgmma]
axes: {{n: 20_000, k: 16, dim: 64, precision: fp16, gpus: [{gpus}]}}
solve: {{iterations: 5}}
measure: {{repetitions: 6, max_seconds: 0.1, warm_seconds: 0.05}}
profile: {{counters: [l1], timeline: true}}
"""


def spec_for(folder, gpus):
    (folder / "several.yaml").write_text(SPEC.format(gpus=gpus))
    return folder / "several.yaml"


def run(folder, gpus):
    command = [BUILD / "run_experiment", spec_for(folder, gpus), "--out", folder / "run", "--quiet"]
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    return folder / "run"


def rows_of(file):
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_too_few_gpus_are_told_with_both_numbers(tmp_path):
    (row,) = rows_of(run(tmp_path, 64) / "measurements.jsonl")
    assert (row["status"], row["gpus"]) == ("unsupported", 64)
    assert row["reason"].startswith("needs 64 GPUs")
    assert "this machine has" in row["reason"] or "no CUDA device" in row["reason"]


@pytest.fixture(scope="module")
def on_two(tmp_path_factory):
    folder = tmp_path_factory.mktemp("two")
    command = [BUILD / "run_experiment", "plan", spec_for(folder, 2), "--json"]
    planned = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
    (point,) = json.loads(planned.stdout)
    if not point["available"]:
        pytest.skip(point["reason"])
    return run(folder, "1, 2")


def test_rows_name_both_gpus_and_their_power_together(on_two):
    rows = rows_of(on_two / "measurements.jsonl")
    assert {row["status"] for row in rows} == {"ok"}
    team = json.loads((on_two / "environment.json").read_text())["gpus"][0]["team"]
    assert len(team) >= 2
    uuids = {row["gpus"]: row["gpu_uuid"].split(",") for row in rows}
    assert [len(uuids[gpus]) for gpus in (1, 2)] == [1, 2]
    assert uuids[2][0] == uuids[1][0] != uuids[2][1]
    power = {row["gpus"]: row["power_w"] for row in rows}
    if None not in power.values():
        # an idle GPU beside the one that works draws tens of watts
        assert power[2] > power[1]


def test_a_timeline_has_tracks_of_both_gpus(on_two):
    kernels = [row for row in rows_of(on_two / "timeline.jsonl") if row["kind"] == "kernel"]
    used = {
        gpus: {row["device"] for row in kernels if f"/gpus:{gpus}/" in row["point"]}
        for gpus in (1, 2)
    }
    assert (len(used[1]), len(used[2])) == (1, 2)
    trace = json.loads((on_two / "timeline.json").read_text())["traceEvents"]
    tracks = {e["args"]["name"] for e in trace if e["name"] == "thread_name"}
    for device in used[2]:
        assert any(track.startswith(f"GPU {device}, stream ") for track in tracks)


def test_counters_of_two_gpus_are_refused(on_two):
    rows = [row for row in rows_of(on_two / "counters.jsonl") if "/gpus:2/" in row["point"]]
    assert rows
    for row in rows:
        assert row["status"] == "unsupported"
        assert "counts on one GPU, this point uses 2" in row["reason"]
