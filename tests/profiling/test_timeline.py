"""Tests the timeline of a run: its rows, the file for Perfetto and the table."""

import json
import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("LLOYDBENCH_BUILD", ROOT / "build")).resolve()

SPEC = """
name: traced
versions: [{versions}]
axes: {{n: [{n}], k: [4], dim: [3], threads: [1], threads_per_block: [128]}}
data: {{generator: uniform}}
solve: {{iterations: 5}}
measure: {{repetitions: 6, max_seconds: 0.1, max_noise: 0.9, warm_seconds: {warm_seconds}}}
profile: {{timeline: true}}
"""


def traced(folder, versions, n=3000, warm_seconds=0):
    spec = SPEC.format(versions=versions, n=n, warm_seconds=warm_seconds)
    (folder / "traced.yaml").write_text(spec)
    command = [BUILD / "run_experiment", folder / "traced.yaml", "--out", folder / "run"]
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    lines = (folder / "run" / "timeline.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines], json.loads(
        (folder / "run" / "timeline.json").read_text()
    )


@pytest.fixture(scope="module")
def on_cpu(tmp_path_factory):
    return traced(tmp_path_factory.mktemp("cpu"), "cpu_sequential, cpu_openmp")


def need(name):
    listed = subprocess.run(
        [BUILD / "run_experiment", "--list-versions", "--json"],
        check=True,
        capture_output=True,
        text=True,
    )
    version = {v["name"]: v for v in json.loads(listed.stdout)}[name]
    if not version["available"]:
        pytest.skip(f"{name}: {version['reason']}")


@pytest.fixture(scope="module")
def on_gpu(tmp_path_factory):
    need("luigi_v1_fused")
    return traced(tmp_path_factory.mktemp("gpu"), "luigi_v1_fused")


def inside(inner, outer, slack_us=0.01):
    return (
        outer["start_us"] - slack_us <= inner["start_us"]
        and inner["start_us"] + inner["duration_us"]
        <= outer["start_us"] + outer["duration_us"] + slack_us
    )


def test_a_cpu_version_has_its_ranges(on_cpu):
    rows, _ = on_cpu
    for version in ("cpu_sequential", "cpu_openmp"):
        mine = [row for row in rows if row["version"] == version]
        trace, rest = mine[0], mine[1:]
        assert (trace["kind"], trace["clock"], trace["dropped"]) == ("trace", "steady_clock", 0)
        assert trace["untraced_us"] > 0
        assert [r["start_us"] for r in rest] == sorted(r["start_us"] for r in rest)
        parts = {r["name"]: r for r in rest if r["kind"] == "part"}
        assert list(parts) == ["setup", "solve", "fetch"]
        assert trace["duration_us"] == parts["solve"]["duration_us"]
        iterations = [r for r in rest if r["kind"] == "iteration"]
        assert [r["iteration"] for r in iterations] == list(range(3))  # 3 of 5: more add nothing
        assert all(inside(r, parts["solve"]) and r["part"] == "solve" for r in iterations)
        phases = [r for r in rest if r["kind"] == "phase" and r["part"] == "solve"]
        assert {r["name"] for r in phases} == {"assign", "update"}
        for phase in phases:
            assert phase["phase"] == phase["name"]
            assert inside(phase, iterations[phase["iteration"]])


def expect_a_warm_up(rows, seconds):
    parts = {row["name"]: row for row in rows if row["kind"] == "part"}
    assert list(parts) == ["setup", "warm-up", "solve", "fetch"]
    assert parts["warm-up"]["duration_us"] >= seconds * 1e6
    assert parts["warm-up"]["duration_us"] > 3 * parts["solve"]["duration_us"]
    assert [r["kind"] for r in rows if r["part"] == "warm-up"] == ["part"]


def test_a_solve_under_load_follows_a_warm_up_of_which_nothing_is_shown(tmp_path):
    rows, _ = traced(tmp_path, "cpu_sequential", warm_seconds=0.1)
    expect_a_warm_up(rows, 0.1)
    iterations = [row["iteration"] for row in rows if row["kind"] == "iteration"]
    assert iterations == list(range(3))


@pytest.mark.parametrize("version", ["python_numpy", "cpu_mpi", "fast_cpu_simd"])
def test_what_runs_elsewhere_or_in_batches_has_a_timeline(version, tmp_path):
    """An external version, ranks, and a batch each have a factory of their own."""
    need(version)
    (tmp_path / "traced.yaml").write_text(
        SPEC.format(versions=version, n=1000, warm_seconds=0).replace("threads: [1]", "batch: [2]")
        if version == "fast_cpu_simd"
        else SPEC.format(versions=version, n=1000, warm_seconds=0)
    )
    command = [BUILD / "run_experiment", tmp_path / "traced.yaml", "--out", tmp_path / "run"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert result.returncode == 0, result.stderr
    passes = (tmp_path / "run" / "passes.jsonl").read_text().splitlines()
    assert {json.loads(line)["pass"]: json.loads(line)["status"] for line in passes} == {
        "timing": "ok",
        "timeline": "ok",
    }, result.stderr


def test_perfetto_gets_a_process_for_each_point_and_nested_slices(on_cpu):
    rows, trace = on_cpu
    events = trace["traceEvents"]
    names = {e["args"]["name"]: e["pid"] for e in events if e["name"] == "process_name"}
    assert set(names) == {row["point"] for row in rows}
    slices = [e for e in events if e["ph"] == "X"]
    assert len(slices) == sum(row["kind"] != "trace" for row in rows)
    for pid in names.values():
        open_until = []
        for event in sorted(
            (e for e in slices if e["pid"] == pid), key=lambda e: (e["ts"], -e["dur"])
        ):
            while open_until and open_until[-1] <= event["ts"]:
                open_until.pop()
            end = event["ts"] + event["dur"]
            assert not open_until or end <= open_until[-1] + 0.01, event
            open_until.append(end)


def test_perfetto_keeps_the_tracks_apart(on_cpu):
    """It takes a thread whose number is 0 or the process's for the process's main thread."""
    _, trace = on_cpu
    threads = [e for e in trace["traceEvents"] if e["name"] == "thread_name"]
    assert len({e["tid"] for e in threads}) == len(threads)
    assert not {e["tid"] for e in trace["traceEvents"]} & {0, *(e["pid"] for e in threads)}


def test_copies_of_other_threads_are_in_the_phase_that_waits_for_them(tmp_path):
    need("fast_optin")
    n = 3_000_000
    rows, _ = traced(tmp_path, "fast_optin", n)
    moved, streams = {}, set()
    for row in rows:
        if row["kind"] == "copy":
            where = (row["name"], row["part"], row["phase"])
            moved[where] = moved.get(where, 0) + row["bytes"]
            streams.add(row["stream"])
    # Chunks, each on its thread's stream. Labels of 4 clusters have 8 bits.
    assert moved["copy HtoD", "setup", "transfer"] == (3 * n + 3 * 4) * 4
    assert moved["copy DtoH", "fetch", "transfer"] == n + 3 * 4 * 4
    assert len(streams) > 2


def test_kernels_of_a_warm_up_are_not_shown(tmp_path):
    need("luigi_v1_fused")
    rows, _ = traced(tmp_path, "luigi_v1_fused", warm_seconds=0.1)
    expect_a_warm_up(rows, 0.1)
    assert "solve" in {row["part"] for row in rows if row["kind"] == "kernel"}


def test_a_gpu_version_has_kernels_copies_and_calls_in_their_phases(on_gpu):
    rows, trace = on_gpu
    by_kind = {}
    for row in rows:
        by_kind.setdefault(row["kind"], []).append(row)
    assert by_kind["trace"][0]["dropped"] == 0
    kernels = [k for k in by_kind["kernel"] if k["part"] == "solve"]
    assert len(kernels) == 5  # the fused version has one per step
    assert [k["iteration"] for k in kernels] == list(range(5))
    assert all(k["block"] == [128, 1, 1] and k["duration_us"] > 0 for k in kernels)
    assert all(k["phase"] for k in kernels)
    upload = max((c for c in by_kind["copy"] if c["name"] == "copy HtoD"), key=lambda c: c["bytes"])
    assert (upload["bytes"], upload["part"], upload["phase"]) == (3000 * 3 * 4, "setup", "transfer")
    assert {"cudaMalloc", "cudaLaunchKernel"} <= {call["name"] for call in by_kind["api"]}
    calls = {call["correlation"]: call for call in by_kind["api"]}
    for kernel in kernels:
        assert calls[kernel["correlation"]]["start_us"] < kernel["start_us"]
    tracks = {e["args"]["name"] for e in trace["traceEvents"] if e["name"] == "thread_name"}
    assert any(track.startswith("stream ") for track in tracks)
    assert any(track.startswith("CUDA calls") for track in tracks)
