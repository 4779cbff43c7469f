"""run_experiment from outside: what a user types, and what comes out."""

import itertools
import json
import math
import os
import pathlib
import re

import pytest
from run_program import (
    ROOT,
    by_point,
    every_sample_once,
    rows,
    run,
)

from analysis.measures.points import all_points
from analysis.model.load import load_run

ROW_FIELDS = set(
    re.findall(
        r"\w+",
        """schema point version family backend reproducible n k dim
        threads_per_block samples_per_thread threads processes gpus device_memory precision
        host_memory data data_name seed data_seed init init_seed restart launch repetition
        status reason process_setup_ms init_ms init_device init_threads solve_ms iteration_ms
        setup_ms transfer_ms end_to_end_ms iterations inertia verified verified_points
        label_mismatches max_regret
        regret_bound timing_basis floor_ms floor_sustained_ms end_to_end_floor_ms chosen chosen_by
        gpu gpu_uuid sm_mhz mem_mhz temp_c power_w throttle energy_j noisy noise host node
        shard t_utc""",
    )
)


RUN_FILES = (
    "spec.yaml",
    "spec.resolved.json",
    "environment.json",
    "plan.json",
    "measurements.jsonl",
    "phases.jsonl",
    "benchmark.json",
    "summary.md",
    "log.txt",
)


def test_a_run_leaves_what_the_contract_lists(spec, tmp_path):
    out = tmp_path / "deep" / "run"
    result = run(spec(), "--out", out)
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines()[-1] == f"results: {out}"
    for name in RUN_FILES:
        assert (out / name).exists(), name
    measured = rows(out)
    assert {row["n"] for row in measured} == {100, 200}
    for row in measured:
        assert set(row) >= ROW_FIELDS
        assert (row["status"], row["verified"]) == ("ok", True)
        assert row["solve_ms"] > 0
        assert row["inertia"] > 0
        assert row["end_to_end_ms"] >= row["solve_ms"]
        assert row["iterations"] == 5
        assert row["iteration_ms"] == pytest.approx(row["solve_ms"] / 5)
        assert row["timing_basis"] == "steady_clock"
        floors = ("floor_ms", "floor_sustained_ms", "end_to_end_floor_ms")
        nulls = {field for field in floors if row[field] is None}
        assert "floor_sustained_ms" in nulls  # of a CPU version
        of_gpus = {"gpu", "gpu_uuid", "sm_mhz", "mem_mhz", "temp_c", "power_w", "throttle"}
        assert all(row[field] is None for field in of_gpus)
        nulls |= of_gpus
        assert nulls <= set(row["null_reasons"])
    for group in by_point(out).values():
        assert [row["repetition"] for row in group] == list(range(len(group)))
        assert len(group) >= 6
    log = (out / "log.txt").read_text()
    phases = rows(out, "phases.jsonl")
    assert {row["phase"] for row in phases if row["part"] == "solve"} == {"assign", "update"}
    assert all(row["calls"] == 5 for row in phases if row["part"] == "solve")
    assert json.loads((out / "environment.json").read_text())["build"]["commit"]
    for point in by_point(out):
        assert re.search(f"^{point}: data .* verification .* measurement", log, re.MULTILINE)
    benchmarks = json.loads((out / "benchmark.json").read_text())["benchmarks"]
    assert len(benchmarks) == len(measured)


def test_threads_default_to_the_cores_that_the_program_may_use(spec, tmp_path):
    path = spec(versions="cpu_openmp", n="100")
    path.write_text(path.read_text().replace("  threads: [1]\n", ""))
    allowed = sorted(os.sched_getaffinity(0))
    for name, cores in (("all", allowed), ("one", allowed[:1])):
        out = tmp_path / name
        result = run(
            *(path, "--out", out), preexec_fn=lambda cores=cores: os.sched_setaffinity(0, cores)
        )
        assert result.returncode == 0, result.stderr
        cpu = json.loads((out / "environment.json").read_text())["cpu"]
        assert cpu["cores"] == min(len(cores), math.ceil(cpu["quota"] or len(cores)))
        assert {row["threads"] for row in rows(out)} == {cpu["cores"]}


def test_threads_beyond_the_affinity_of_the_run_are_oversubscribed(spec, tmp_path):
    out = tmp_path / "run"
    first = {min(os.sched_getaffinity(0))}
    result = run(
        *(spec("cpu_openmp", n="100"), "--set", "threads=1,2", "--out", out),
        preexec_fn=lambda: os.sched_setaffinity(0, first),
    )
    assert result.returncode == 0, result.stderr
    assert {(row["threads"], row["oversubscribed"]) for row in rows(out)} == {(1, False), (2, True)}


def test_rows_say_what_the_initial_centroids_cost(spec, tmp_path):
    out = tmp_path / "run"
    result = run(spec(), "--set", "init=random_points,kmeans++", "--out", out)
    assert result.returncode == 0, result.stderr
    cores = len(os.sched_getaffinity(0))
    assert {row["init"] for row in rows(out)} == {"random_points", "kmeans++"}
    for row in rows(out):
        assert row["init_device"] == "cpu"
        assert row["init_threads"] == (1 if row["init"] == "random_points" else cores)
    for group in by_point(out).values():
        (init_ms,) = {row["init_ms"] for row in group}
        assert init_ms > 0


def test_points_run_in_random_order_unless_told_otherwise(spec, tmp_path):
    path = spec(n=", ".join(str(100 + i) for i in range(8)))
    orders = []
    for name, options in (("a", []), ("b", ["--shuffle"]), ("c", ["--no-shuffle"])):
        run(path, "--out", tmp_path / name, *options)
        orders.append(list(by_point(tmp_path / name)))
    given = [f"cpu_sequential/n:{100 + i}/k:3/dim:2/precision:fp32" for i in range(8)]
    assert orders[0] == orders[1] != given
    assert orders[2] == given
    assert sorted(orders[0]) == given


def test_the_same_seed_gives_the_same_inertia(spec, tmp_path):
    path = spec(n="500")
    inertia = []
    for name, seed in (("a", 7), ("b", 7), ("c", 8)):
        run(path, "--out", tmp_path / name, "--seed", seed)
        inertia.append(rows(tmp_path / name)[0]["inertia"])
    assert inertia[0] == inertia[1] != inertia[2]


def test_the_default_directory_is_under_results(spec, tmp_path):
    result = run(spec(n="100"), "--quiet", cwd=tmp_path)
    directory = pathlib.Path(result.stdout.strip().removeprefix("results: "))
    assert directory.parent == pathlib.Path("results/small")
    assert (tmp_path / directory / "measurements.jsonl").exists()


def test_json_is_alone_on_standard_output(spec, tmp_path):
    path = spec()
    listed = json.loads(run("--list-versions", "--json").stdout)
    keys = {"name", "family", "backend", "parent", "axes", "study", "summary", "available"}
    assert all(keys | {"reason", "reproducible"} <= set(version) for version in listed)
    reproducible = {v["name"] for v in listed if v["reproducible"]}
    assert "cpu_sequential" in reproducible
    assert "cpu_pthreads" not in reproducible
    points = json.loads(run(path, "--dry-run", "--json").stdout)
    assert len(points) == 2
    assert all({"point", "version", "available", "reason", "n", "k"} <= set(p) for p in points)
    report = json.loads(run(path, "--json", "--out", tmp_path / "out").stdout)
    assert report["results"] == str(tmp_path / "out")
    assert report["exit_status"] == 0


def test_a_dry_run_writes_nothing(spec, tmp_path):
    path = spec()
    before = set(tmp_path.iterdir())
    result = run(path, "--dry-run", cwd=tmp_path)
    assert result.returncode == 0
    assert "2 points, 2 runnable here" in result.stdout
    assert set(tmp_path.iterdir()) == before


def test_a_spec_error_is_told_and_nothing_runs(spec, tmp_path):
    path = spec()
    path.write_text(path.read_text().replace("threads:", "tbp:"))
    out = tmp_path / "out"
    result = run(path, "--out", out)
    assert result.returncode == 2
    assert f"{path}:9:3: unknown axis 'tbp'; did you mean 'threads_per_block'?" in result.stderr
    assert result.stdout == ""
    assert not out.exists()


@pytest.mark.parametrize(
    "arguments",
    [["--no-such-option"], [], ["--device", "-1"], ["x.yaml", "--out", "a", "--resume", "b"]],
)
def test_usage_errors_are_one_line_and_status_2(arguments):
    result = run(*arguments)
    assert result.returncode == 2
    assert len(result.stderr.strip().splitlines()) == 1, result.stderr


def test_summary_and_analysis_name_the_same_fastest_cpu_versions(spec, tmp_path):
    path = spec(versions="cpu_sequential,cpu_eigen,cpu_openmp", n="50, 40000")
    path.write_text(path.read_text().replace("baseline: cpu_sequential", "baseline: best:cpu"))
    out = tmp_path / "out"
    result = run(path, "--out", out)
    assert result.returncode == 0, result.stderr
    line = re.compile(r"^\| (\w+) \| n:(\d+) .*\| ok \| .* \| ([\d.,]+)× over (\w+) \|", re.M)
    told = line.findall((out / "summary.md").read_text().replace("\\_", "_"))
    points = all_points([load_run(out)], "best:cpu").set_index(["version", "n"])
    assert len(told) == len(points) == 6
    for version, n, speedup, over in told:
        point = points.loc[version, int(n)]
        assert over == point["baseline"]
        assert float(speedup.replace(",", "")) == pytest.approx(point["speedup"], rel=0.01)
    table = result.stdout.split("results: ")[0]
    assert all(f"  {over}" in table for over in points["baseline"])


def test_each_launch_is_another_process_and_another_order(spec, tmp_path):
    out = tmp_path / "out"
    sizes = ", ".join(str(100 + i) for i in range(8))
    path = spec(versions="cpu_sequential, cpu_openmp", n=sizes, launches=3)
    assert run(path, "--out", out).returncode == 0
    every_sample_once(out, points=16, launches=3, at_least=6)
    orders = {}
    for row in rows(out):
        order = orders.setdefault(row["launch"], [])
        if row["point"] not in order:
            order.append(row["point"])
    assert list(orders) == [0, 1, 2]  # one launch after the other
    for order in orders.values():
        assert sorted(order) == sorted(orders[0])
        versions = [point.split("/")[0] for point in order]
        # a worker for each version: all of one, then all of the other
        assert sum(a != b for a, b in itertools.pairwise(versions)) == 1
    assert len({tuple(order) for order in orders.values()}) == 3
    again = tmp_path / "again"
    run(path, "--out", again)
    assert [row["point"] for row in rows(again, "passes.jsonl")] == [
        row["point"] for row in rows(out, "passes.jsonl")
    ]
    reference = [point for point in (out / "log.txt").read_text().splitlines() if "data" in point]
    assert len(reference) == 16 * 3


def test_unverified_runs_say_so(spec, tmp_path):
    path = spec(n="100")
    path.write_text(path.read_text().replace("repetitions: 6", "repetitions: 6, verify: false"))
    out = tmp_path / "out"
    assert run(path, "--out", out).returncode == 0
    row = rows(out)[0]
    assert (row["verified"], row["inertia"]) == (False, None)
    assert row["null_reasons"]["inertia"] == "verify: false"


SPECS = sorted((ROOT / "experiments" / "sweeps").glob("*.yaml"))


@pytest.mark.parametrize("path", SPECS, ids=lambda path: path.stem)
def test_every_shipped_spec_is_sound(path):
    result = run(path, "--dry-run", cwd=ROOT)
    wanted = re.search(r"^  file: (\S+)", path.read_text(), re.MULTILINE)
    if wanted and not (ROOT / wanted[1]).exists():
        # The study's own input file is not shipped: nothing but its absence may be wrong.
        (error,) = result.stderr.splitlines()
        assert wanted[1] in error
        assert result.returncode == 2
        pytest.skip(f"{wanted[1]} is not here (it is not shipped); its absence is told")
    assert result.returncode == 0, result.stderr
    assert " points, " in result.stdout
