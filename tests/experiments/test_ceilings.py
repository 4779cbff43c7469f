"""run_experiment --ceilings, and the floor that later runs make of it."""

import json
import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("LLOYDBENCH_BUILD", ROOT / "build")).resolve()

SPEC = """
name: floors
versions: [cpu_sequential]
axes: {n: [2000], k: [50], dim: [8]}
data: {generator: uniform}
solve: {iterations: 3}
measure: {repetitions: 6, max_seconds: 0.1, max_noise: 0.9}
"""


def run(folder, *arguments, **variables):
    return subprocess.run(
        [BUILD / "run_experiment", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env={**os.environ, "LLOYDBENCH_CEILINGS": str(folder), **variables},
    )


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ceilings")
    result = run(folder, "--ceilings", "--json", "--quiet", "--out", folder / "copy" / "mine.json")
    assert result.returncode == 0, result.stderr
    return folder, json.loads(result.stdout)


def test_ceilings_are_measured_with_their_spread(measured):
    folder, ceilings = measured
    assert json.loads((folder / "copy" / "mine.json").read_text()) == ceilings
    by_name = {c["name"]: c for c in ceilings["ceilings"]}
    assert len(by_name) == len(ceilings["ceilings"])
    on_cpu = {"cpu_copy", "cpu_triad", "cpu_read", "cpu_fp32_fma", "cpu_fp64_fma"}
    on_cpu |= {f"cpu_l{cache['level']}_read" for cache in ceilings["cpu"]["caches"]}
    assert on_cpu <= set(by_name)
    if ceilings["gpu"] is None:
        assert set(by_name) == on_cpu
        assert ceilings["no_gpu"]
    for ceiling in by_name.values():
        if ceiling["value"] is None:
            assert ceiling["reason"]
            continue
        assert len(ceiling["samples"]) >= 6
        assert 0 < ceiling["min"] <= ceiling["low"] <= ceiling["value"]
        assert ceiling["value"] <= ceiling["high"] <= ceiling["max"]
    # An FMA in fp64 is never faster than in fp32, nor memory than the first-level cache.
    assert by_name["cpu_fp64_fma"]["min"] < by_name["cpu_fp32_fma"]["max"]
    assert by_name["cpu_read"]["min"] < by_name["cpu_l1_read"]["max"]


def test_a_gpu_stays_below_its_datasheet(measured):
    _, ceilings = measured
    if ceilings["gpu"] is None:
        pytest.skip(f"no GPU: {ceilings['no_gpu']}")
    compared = 0
    for ceiling in ceilings["ceilings"]:
        if ceiling.get("datasheet") and ceiling["value"]:
            # More than the datasheet is a miscount, but for a few percent of a higher boost clock.
            assert 0.4 < ceiling["value"] / ceiling["datasheet"] < 1.1, ceiling["name"]
            compared += 1
    if compared == 0:
        pytest.skip(f"no datasheet of {ceilings['gpu']['name']} is known")


def test_a_gpu_sustains_no_more_than_it_reaches_in_a_burst(measured):
    _, ceilings = measured
    if ceilings["gpu"] is None:
        pytest.skip(f"no GPU: {ceilings['no_gpu']}")
    by_name = {c["name"]: c for c in ceilings["ceilings"]}
    units = ("fp16_tensor", "bf16_tensor", "tf32_tensor", "fp64_tensor", "fp32_fma", "fp64_fma")
    for name in (*units, "dram_read", "dram_copy", "l2_read"):
        burst, loaded = by_name[name], by_name[f"{name}_sustained"]
        if burst["value"] is None:
            assert loaded["value"] is None
            assert loaded["reason"]
            continue
        assert loaded["method"].startswith(burst["method"].split(", bursts")[0])
        assert 0.3 < loaded["value"] / burst["max"] < 1.02, name


def test_rows_have_the_floor_that_the_ceilings_give(measured, tmp_path):
    folder, ceilings = measured
    spec = tmp_path / "floors.yaml"
    spec.write_text(SPEC)
    assert run(folder, spec, "--out", tmp_path / "run").returncode == 0
    lines = (tmp_path / "run" / "measurements.jsonl").read_text().splitlines()
    most = {c["name"]: c["max"] for c in ceilings["ceilings"]}
    points, centroids = 2000 * 8 * 4, 50 * 8 * 4
    room, level = 0, None
    for cache in ceilings["cpu"]["caches"]:
        room += cache["bytes"]
        if level is None and points + centroids <= room:
            level = f"cpu_l{cache['level']}_read"
    for row in map(json.loads, lines):
        by_bytes = (points + 2 * centroids + 4 * 2000 / 3) / most[level] / 1e9
        by_flops = 2 * 2000 * 50 * 8 / most["cpu_fp32_fma"] / 1e12
        assert row["floor_ms"] == pytest.approx(max(by_bytes, by_flops) * 1e3)
        assert row["floor_ms"] < row["iteration_ms"]
        assert row["floor_sustained_ms"] is None
        assert "on GPUs only" in row["null_reasons"]["floor_sustained_ms"]
    environment = json.loads((tmp_path / "run" / "environment.json").read_text())
    assert environment["ceilings"]["cpu"]["measured_on"] == "this one"


def test_without_ceilings_the_floor_is_null_and_says_why(tmp_path):
    spec = tmp_path / "floors.yaml"
    spec.write_text(SPEC)
    # ceilings of this kind of machine may be recorded
    away = {"LLOYDBENCH_HOME": str(tmp_path)}
    assert run(tmp_path / "none", spec, "--out", tmp_path / "run", **away).returncode == 0
    for line in (tmp_path / "run" / "measurements.jsonl").read_text().splitlines():
        row = json.loads(line)
        assert row["floor_ms"] is None
        for floor in ("floor_ms", "floor_sustained_ms"):
            assert "run_experiment --ceilings measures them" in row["null_reasons"][floor]


def test_ceilings_take_no_spec(tmp_path):
    result = run(tmp_path, "--ceilings", "sweeps/quickstart.yaml")
    assert result.returncode == 2
    assert "takes no spec" in result.stderr
