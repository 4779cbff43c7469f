"""run_experiment from outside: what a user types, what comes out, and every disturbance."""

import itertools
import json
import os
import pathlib
import re
import resource
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from analysis.measures.points import all_points
from analysis.model.load import load_run

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("LLOYDBENCH_BUILD", ROOT / "build")).resolve()
PROGRAM = BUILD / "run_experiment"
FAULTY = BUILD / "tests" / "run_experiment_faulty"

ROW_FIELDS = set(
    re.findall(
        r"\w+",
        """schema point version family backend reproducible n k dim
        threads_per_block samples_per_thread threads processes gpus precision data seed launch
        repetition
        status reason solve_ms iteration_ms setup_ms
        transfer_ms end_to_end_ms iterations inertia verified label_mismatches max_regret
        regret_bound timing_basis floor_ms chosen gpu gpu_uuid sm_mhz mem_mhz temp_c
        power_w throttle energy_j noisy noise host t_utc""",
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

SPEC = """
name: {name}
versions: [{versions}]
baseline: {baseline}
axes:
  n: [{n}]
  k: [3]
  dim: [2]
  threads: [1]
data: {{generator: uniform, seed: 42}}
solve: {{iterations: {iterations}}}
measure:
  {{repetitions: 6, max_seconds: 0.1, max_noise: 0.9, timeout: {timeout}, launches: {launches}}}
"""


@pytest.fixture(scope="session", autouse=True)
def built():
    if not PROGRAM.exists():
        pytest.fail(f"{PROGRAM} is not built; run `make`")


@pytest.fixture
def spec(tmp_path):
    def write(
        versions="cpu_sequential", n="100, 200", timeout=60, iterations=5, name="small", launches=1
    ):
        path = tmp_path / f"{name}.yaml"
        path.write_text(
            SPEC.format(
                name=name,
                versions=versions,
                baseline=versions.split(",")[0],
                n=n,
                timeout=timeout,
                iterations=iterations,
                launches=launches,
            )
        )
        return path

    return write


def run(*arguments, program=PROGRAM, **options):
    return subprocess.run(
        [program, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        **options,
    )


def rows(directory, name="measurements.jsonl"):
    text = (directory / name).read_text()
    assert text.endswith("\n")
    return [json.loads(line) for line in text.splitlines()]


def by_point(directory):
    points = {}
    for row in rows(directory):
        points.setdefault(row["point"], []).append(row)
    return points


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
        nulls = {field for field in ("floor_ms",) if row[field] is None}
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


FAULTS = {
    "faulty_killed": ("failed", "killed by signal 9"),
    "faulty_crashes": ("failed", "killed by signal 11"),
    "faulty_hangs": ("timeout", "not done within 3 s"),
    "faulty_exits": ("failed", "exited with status 3"),
    "faulty_throws": ("failed", "the flux is out of phase"),
    "faulty_wrong": ("incorrect", "whole solve"),
    "faulty_nan": ("incorrect", "nan"),
    "faulty_greedy": ("failed", "out of host memory"),
    "faulty_promises": ("incorrect", "a second run differs: 1 of 6 coordinates of centroids"),
}


def test_a_point_that_misbehaves_costs_only_itself(spec, tmp_path):
    out = tmp_path / "out"
    path = spec(versions=",".join(["cpu_sequential", *FAULTS]), timeout=3)
    result = run(path, "--out", out, program=FAULTY)
    assert result.returncode == 1, result.stderr
    points = by_point(out)
    assert len(points) == 2 * (len(FAULTS) + 1)
    for point, measured in points.items():
        version = point.split("/")[0]
        if version == "cpu_sequential":
            assert measured[0]["status"] == "ok"
            continue
        status, reason = FAULTS[version]
        assert (measured[0]["status"], len(measured)) == (status, 1), measured[0]
        assert reason in measured[0]["reason"]
        assert measured[0]["solve_ms"] is None
    assert "speedup" in result.stdout


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


def test_faults_are_redone_only_when_asked(spec, tmp_path):
    out = tmp_path / "out"
    path = spec(versions="cpu_sequential,faulty_throws", n="100")
    run(path, "--out", out, program=FAULTY)
    before = rows(out)
    assert run("--resume", out, program=FAULTY).returncode == 1
    assert rows(out) == before
    assert run("--resume", out, "--retry-failed", program=FAULTY).returncode == 1
    after = rows(out)
    assert len(after) == len(before)
    stamp = {row["version"]: row["t_utc"] for row in after}
    was = {row["version"]: row["t_utc"] for row in before}
    assert stamp["cpu_sequential"] == was["cpu_sequential"]
    assert stamp["faulty_throws"] != was["faulty_throws"]


def workers_of(pid):
    """Its children that measure; those that an external version describes itself in are not."""
    listed = subprocess.run(
        ["ps", "-o", "pid=,args=", "--ppid", str(pid)], capture_output=True, text=True, check=False
    )
    return [int(line.split()[0]) for line in listed.stdout.splitlines() if " --worker" in line]


def wait_for(condition, seconds=60):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return
        time.sleep(0.02)
    pytest.fail("waited in vain")


def start_slow_run(spec, out):
    """A run whose first point is quick and whose second hangs."""
    path = spec(versions="cpu_sequential,faulty_hangs", n="100", timeout=600)
    process = subprocess.Popen(
        [FAULTY, path, "--out", out, "--no-shuffle"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    passes = out / "passes.jsonl"
    wait_for(lambda: passes.exists() and workers_of(process.pid))
    wait_for(lambda: '"cpu_sequential"' in passes.read_text())
    time.sleep(0.2)
    return process, workers_of(process.pid)


def test_an_interrupt_leaves_a_resumable_directory(spec, tmp_path):
    out = tmp_path / "out"
    process, workers = start_slow_run(spec, out)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=30)
    assert process.returncode == 130
    assert f"run_experiment --resume {out}" in stderr
    for worker in workers:
        assert not pathlib.Path(f"/proc/{worker}/exe").exists()
    assert {row["version"] for row in rows(out)} == {"cpu_sequential"}
    assert "not run" in (out / "summary.md").read_text()


def test_kill_9_of_everything_then_resume(spec, tmp_path):
    out = tmp_path / "out"
    process, workers = start_slow_run(spec, out)
    process.kill()
    process.communicate()
    # The workers die with their supervisor.
    wait_for(lambda: not any(pathlib.Path(f"/proc/{worker}/exe").exists() for worker in workers))
    before = rows(out)
    with (out / "measurements.jsonl").open("a") as file:
        file.write('{"point": "torn')
    # Resuming stands before the same hanging point; a worker that is killed from outside fails it.
    again = subprocess.Popen(
        [FAULTY, "--resume", out], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    wait_for(lambda: workers_of(again.pid))
    time.sleep(0.3)
    os.kill(workers_of(again.pid)[0], signal.SIGKILL)
    again.communicate(timeout=60)
    assert again.returncode == 1
    after = rows(out)
    assert [row for row in after if row["version"] == "cpu_sequential"] == before
    assert [row["status"] for row in after if row["version"] == "faulty_hangs"] == ["failed"]


def every_sample_once(out, points, launches, at_least):
    """Each point has each launch, and each launch its samples from 0 on, none twice and none left
    out; the end of each is told once."""
    taken = {}
    for row in rows(out):
        assert row["status"] == "ok"
        taken.setdefault((row["point"], row["launch"]), []).append(row["repetition"])
    assert len(taken) == points * launches
    for repetitions in taken.values():
        assert repetitions == list(range(len(repetitions)))
        assert len(repetitions) >= at_least
    told = [
        (row["point"], row["launch"], row["status"], row["rows"])
        for row in rows(out, "passes.jsonl")
        if row["pass"] == "timing"
    ]
    assert sorted(told) == sorted((*key, "ok", len(taken[key])) for key in taken)
    phases = [(row["point"], row["part"], row["phase"]) for row in rows(out, "phases.jsonl")]
    assert len(phases) == len(set(phases))


def test_kill_9_between_samples_loses_no_sample_and_doubles_none(spec, tmp_path):
    out = tmp_path / "out"
    measurements = out / "measurements.jsonl"
    path = spec(versions="faulty_slow", n="100, 200", launches=2)
    arguments = [path, "--out", out]
    kept = []
    for have in (2, 5, 9, 14, 18):
        process = subprocess.Popen(
            [FAULTY, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        wait_for(
            lambda have=have: (
                measurements.exists() and measurements.read_text().count("\n") >= have
            )
        )
        process.kill()
        process.wait()
        assert rows(out)[: len(kept)] == kept
        kept = rows(out)
        arguments = ["--resume", out]
    assert run("--resume", out, program=FAULTY).returncode == 0
    assert rows(out)[: len(kept)] == kept
    every_sample_once(out, points=2, launches=2, at_least=6)
    before = measurements.read_bytes()
    assert run("--resume", out, program=FAULTY).returncode == 0
    assert measurements.read_bytes() == before


def test_an_interrupt_between_samples_keeps_them(spec, tmp_path):
    out = tmp_path / "out"
    measurements = out / "measurements.jsonl"
    process = subprocess.Popen(
        [FAULTY, spec(versions="faulty_slow", n="100"), "--out", out],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    wait_for(lambda: measurements.exists() and measurements.read_text().count("\n") >= 2)
    process.send_signal(signal.SIGINT)
    stdout, _ = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "unfinished" in stdout
    kept = rows(out)
    assert run("--resume", out, program=FAULTY).returncode == 0
    assert rows(out)[: len(kept)] == kept
    every_sample_once(out, points=1, launches=1, at_least=6)


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


def test_a_launch_that_is_wrong_takes_the_point_with_it(spec, tmp_path):
    out = tmp_path / "out"
    environment = {**os.environ, "LLOYDBENCH_TEST_FIRST": str(tmp_path / "first")}
    path = spec(versions="cpu_sequential, faulty_wrong_later", n="100", launches=3)
    result = run(path, "--out", out, program=FAULTY, env=environment)
    assert result.returncode == 1
    points = by_point(out)
    (wrong,) = (group for point, group in points.items() if point.startswith("faulty"))
    assert [(row["status"], row["launch"]) for row in wrong] == [("incorrect", 1)]
    (right,) = (group for point, group in points.items() if point.startswith("cpu"))
    assert {row["launch"] for row in right} == {0, 1, 2}
    told = [
        (row["launch"], row["status"])
        for row in rows(out, "passes.jsonl")
        if row["version"] == "faulty_wrong_later"
    ]
    assert told == [(1, "incorrect")]
    assert "[6/6]" in result.stderr  # what is not taken any more counts as done


def test_two_runs_into_one_directory_are_refused(spec, tmp_path):
    out = tmp_path / "out"
    process, _ = start_slow_run(spec, out)
    try:
        for arguments in (["--resume", out], [spec(name="other"), "--out", out]):
            result = run(*arguments, program=FAULTY)
            assert result.returncode == 2
            assert "another run is writing there" in result.stderr
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)


def test_an_existing_run_is_never_written_over(spec, tmp_path):
    path, out = spec(n="100"), tmp_path / "out"
    run(path, "--out", out)
    before = {file: file.read_bytes() for file in out.iterdir()}
    result = run(path, "--out", out)
    assert result.returncode == 2
    assert "never written over" in result.stderr
    assert {file: file.read_bytes() for file in out.iterdir()} == before


def test_resume_refuses_another_spec_and_names_the_difference(spec, tmp_path):
    path, out = spec(n="100"), tmp_path / "out"
    run(path, "--out", out)
    path.write_text(path.read_text().replace("repetitions: 6", "repetitions: 8"))
    result = run("--resume", out)
    assert result.returncode == 2
    assert "the spec differs (measure/repetitions: was 6, is 8)" in result.stderr


def test_resume_refuses_other_data_and_another_binary(tmp_path):
    data = tmp_path / "points.csv"
    data.write_text("".join(f"{i},{i * i % 7}\n" for i in range(50)))
    path = tmp_path / "file.yaml"
    path.write_text(
        "name: file\nversions: [cpu_sequential]\naxes: {k: [3]}\ndata: {file: points.csv}\n"
        "measure: {repetitions: 6, max_seconds: 0.1}\n"
    )
    out = tmp_path / "out"
    assert run(path, "--out", out).returncode == 0
    assert run("--resume", out).returncode == 0
    other = run("--resume", out, program=FAULTY)
    assert other.returncode == 2
    assert "the binary differs" in other.stderr
    data.write_text(data.read_text().replace("7,0\n", "7,9\n"))
    changed = run("--resume", out)
    assert changed.returncode == 2
    assert "the data differ (points.csv" in changed.stderr


def test_rows_and_summary_say_what_part_of_a_file_is_used(tmp_path):
    (tmp_path / "points.csv").write_text("".join(f"{i},{i * i % 7},9\n" for i in range(50)))
    path = tmp_path / "file.yaml"
    path.write_text(
        "name: file\nversions: [cpu_sequential]\naxes: {n: [20, 50], k: [3], dim: [2, 3]}\n"
        "data: {file: points.csv}\nmeasure: {repetitions: 3, max_seconds: 0.1}\n"
    )
    out = tmp_path / "out"
    result = run(path, "--out", out)
    assert result.returncode == 0, result.stderr
    told = {(row["n"], row["dim"]): row["data_part"] for row in rows(out)}
    assert told == {
        (20, 2): "first 20 of 50 rows, first 2 of 3 columns",
        (20, 3): "first 20 of 50 rows",
        (50, 2): "first 2 of 3 columns",
        (50, 3): None,
    }
    for text in (result.stdout, (out / "summary.md").read_text()):
        assert text.count("first 20 of 50 rows, first 2 of 3 columns") == 1
        assert text.count("first 2 of 3 columns") == 2


def test_resume_of_something_else_is_refused(tmp_path):
    result = run("--resume", tmp_path)
    assert result.returncode == 2
    assert "is not a run directory" in result.stderr


def test_a_version_that_hands_its_problem_on_says_to_whom(spec, tmp_path):
    out = tmp_path / "out"
    versions = "cpu_sequential, faulty_delegates"
    result = run(spec(versions=versions), "--out", out, program=FAULTY)
    assert result.returncode == 0, result.stderr
    told = {row["version"]: row["chosen"] for row in rows(out)}
    assert told == {"cpu_sequential": None, "faulty_delegates": "cpu_sequential"}


def test_only_a_version_that_promises_the_same_bits_is_held_to_them(spec, tmp_path):
    out = tmp_path / "out"
    result = run(
        spec(versions="cpu_sequential, faulty_wanders, faulty_promises", n="100"),
        *("--out", out),
        program=FAULTY,
    )
    assert result.returncode == 1, result.stderr
    told = {r["version"]: (r["reproducible"], r["status"], r["verified"]) for r in rows(out)}
    assert told == {
        "cpu_sequential": (True, "ok", True),
        "faulty_wanders": (False, "ok", True),
        "faulty_promises": (True, "incorrect", False),
    }


def test_a_full_disk_ends_the_run_with_its_rows_whole(spec, tmp_path):
    out = tmp_path / "out"

    def limit():
        # A file-size limit fails a write as a full disk does, and needs no root.
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))

    result = run(spec(n="100, 200, 300, 400, 500"), "--out", out, preexec_fn=limit)
    assert result.returncode == 1
    assert re.search("cannot write .*measurements.jsonl", result.stderr)
    before = rows(out)
    assert before
    resumed = run("--resume", out)
    assert resumed.returncode == 0, resumed.stderr
    assert rows(out)[: len(before)] == before
    assert len(by_point(out)) == 5
    every_sample_once(out, points=5, launches=1, at_least=6)


def test_a_directory_that_cannot_be_made_is_said_at_once(spec, tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    result = run(spec(), "--out", blocked / "out")
    assert result.returncode == 2
    assert "choose another" in result.stderr


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_directory_that_cannot_be_written(spec, tmp_path):
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o500)
    result = run(spec(), "--out", locked / "out")
    assert result.returncode == 2
    assert "Permission denied" in result.stderr


def test_an_absent_gpu_is_a_row_and_not_a_failure(tmp_path):
    out = tmp_path / "out"
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    result = run(
        "sweeps/quickstart.yaml",
        *("--only", "luigi_*", "--set", "n=1000", "--out", out),
        cwd=ROOT,
        env=environment,
    )
    assert result.returncode == 0, result.stderr
    measured = rows(out)
    assert {row["status"] for row in measured} == {"unsupported"}
    assert all("CUDA" in row["reason"] for row in measured)


def test_points_beyond_memory_are_said_before_allocating(spec, tmp_path):
    out = tmp_path / "out"
    result = run(spec(n="100"), "--set", "n=1_000_000_000_000", "--out", out)
    assert result.returncode == 0, result.stderr
    (row,) = rows(out)
    assert row["status"] == "unsupported"
    assert re.search("TB.*free", row["reason"])


def test_the_options_of_a_data_file_reach_the_workers(tmp_path):
    points = [(i / 4, i * i % 7 - 0.5) for i in range(40)]
    (tmp_path / "plain.csv").write_text("".join(f"{x},{y}\n" for x, y in points))
    lines = [f"p{i};{y};{x};a" for i, (x, y) in enumerate(points)]
    comma = "\n".join(["id;y;x;kind", *lines]).replace(".", ",")
    (tmp_path / "comma.csv").write_text(comma + "\n")
    np.savez_compressed(tmp_path / "both.npz", points=np.array(points), labels=np.arange(40))
    sources = {
        "plain.csv": "file: plain.csv",
        "comma.csv(columns=['x', 1])": "file: comma.csv, header: true, delimiter: ';', "
        "decimal: ',', index_column: id, label_column: -1, columns: [x, 1]",
        "both.npz(array=points)": "file: both.npz, array: points",
    }
    inertias = set()
    for i, (name, keys) in enumerate(sources.items()):
        path = tmp_path / "file.yaml"
        path.write_text(
            "name: file\nversions: cpu_sequential\naxes: {k: 3}\n"
            f"data: {{{keys}}}\nmeasure: {{repetitions: 1, max_seconds: 0.1}}\n"
        )
        result = run(path, "--out", tmp_path / str(i))
        assert result.returncode == 0, result.stderr
        read = rows(tmp_path / str(i))
        assert {row["data"] for row in read} == {name}
        inertias |= {row["inertia"] for row in read}
    assert len(inertias) == 1


def test_a_bad_data_file_is_named_with_its_line(tmp_path):
    (tmp_path / "bad.csv").write_text("1,2\n3,x\n")
    path = tmp_path / "bad.yaml"
    path.write_text(
        "name: bad\nversions: [cpu_sequential]\naxes: {k: [1]}\ndata: {file: bad.csv}\n"
    )
    result = run(path, "--out", tmp_path / "out")
    assert result.returncode == 2
    assert "bad.csv:2:3:" in result.stderr
    assert not (tmp_path / "out").exists()


def test_unverified_runs_say_so(spec, tmp_path):
    path = spec(n="100")
    path.write_text(path.read_text().replace("repetitions: 6", "repetitions: 6, verify: false"))
    out = tmp_path / "out"
    assert run(path, "--out", out).returncode == 0
    row = rows(out)[0]
    assert (row["verified"], row["inertia"]) == (False, None)
    assert row["null_reasons"]["inertia"] == "verify: false"


def profiling_passes(directory):
    return [row for row in rows(directory, "passes.jsonl") if row["pass"] != "timing"]


def profiled_spec(spec, versions, timeout=60):
    path = spec(versions=versions, n="100", timeout=timeout)
    path.write_text(path.read_text() + "profile: {cpu: [cycles, instructions]}\n")
    return path


LATER = {
    "faulty_crashes_later": ("failed", "killed by signal 11"),
    "faulty_hangs_later": ("timeout", "not done within 2 s"),
}


@pytest.mark.parametrize("version", LATER)
def test_a_profiling_pass_that_misbehaves_costs_no_timing(spec, tmp_path, version):
    out = tmp_path / "out"
    environment = {**os.environ, "LLOYDBENCH_TEST_FIRST": str(tmp_path / "first")}
    path = profiled_spec(spec, version, timeout=2)
    result = run(path, "--out", out, program=FAULTY, env=environment)
    assert result.returncode == 0, result.stderr
    assert {row["status"] for row in rows(out)} == {"ok"}
    status, reason = LATER[version]
    counted = rows(out, "counters.jsonl")
    assert [row["metric"] for row in counted] == ["cycles", "instructions"]
    for row in (*counted, *profiling_passes(out)):
        assert (row["status"], row["pass"], row["version"]) == (status, "cpu", version)
        assert reason in row["reason"]
    assert all(row["value"] is None for row in counted)
    assert f"{version}, cpu of 1 point: {status}" in result.stderr

    # A failure stays, as a failed point does, unless it is to be tried again.
    before = {file.name: file.read_bytes() for file in out.glob("*.jsonl")}
    assert run("--resume", out, program=FAULTY, env=environment).returncode == 0
    assert {file.name: file.read_bytes() for file in out.glob("*.jsonl")} == before
    (tmp_path / "first").unlink()
    again = run("--resume", out, "--retry-failed", program=FAULTY, env=environment)
    assert again.returncode == 0, again.stderr
    assert (out / "measurements.jsonl").read_bytes() == before["measurements.jsonl"]
    assert len(profiling_passes(out)) == 1
    assert status not in {row["status"] for row in rows(out, "counters.jsonl")}


def test_resume_profiles_what_was_only_timed(spec, tmp_path):
    out = tmp_path / "out"
    path = profiled_spec(spec, "cpu_sequential")
    assert run(path, "--out", out).returncode == 0
    counted, timed = rows(out, "counters.jsonl"), rows(out)
    # As if the run had been killed between the rows of the pass and the note that it is complete.
    kept = [row for row in rows(out, "passes.jsonl") if row["pass"] == "timing"]
    (out / "passes.jsonl").write_text("".join(json.dumps(row) + "\n" for row in kept))
    result = run("--resume", out)
    assert result.returncode == 0, result.stderr
    assert rows(out) == timed
    assert [row["metric"] for row in rows(out, "counters.jsonl")] == [
        row["metric"] for row in counted
    ]
    assert len(profiling_passes(out)) == 1


def test_what_is_not_ok_is_not_profiled(spec, tmp_path):
    out = tmp_path / "out"
    run(profiled_spec(spec, "cpu_sequential,faulty_wrong"), "--out", out, program=FAULTY)
    assert {row["version"] for row in rows(out, "counters.jsonl")} == {"cpu_sequential"}


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


def test_samples_say_what_disturbed_them(spec, tmp_path):
    out = tmp_path / "out"
    result = run(spec(n="100"), "--out", out)
    assert result.returncode == 0, result.stderr
    assert "small: load before the run: others use " in result.stderr
    load = json.loads((out / "environment.json").read_text())["load_before"]
    assert load["cores"] == len(os.sched_getaffinity(0))
    assert load["other_cpu"] >= 0
    for row in rows(out):
        noise = row["noise"]
        numbers = {"involuntary_switches", "page_faults", "migrations", "other_cpu", "other_gpu"}
        assert set(noise) == numbers | {"reasons"}
        assert noise["involuntary_switches"] >= 0
        assert row["noisy"] == bool(noise["reasons"])
        for name in numbers:
            if noise[name] is None:
                assert row["null_reasons"][f"noise.{name}"]


BUSY = "import sys\nprint(flush=True)\nwhile True: pass"


def test_a_busy_machine_is_named(spec, tmp_path):
    cores = len(os.sched_getaffinity(0))
    busy = [
        subprocess.Popen([sys.executable, "-c", BUSY], stdout=subprocess.PIPE)
        for _ in range(2 * cores)
    ]
    try:
        for process in busy:
            process.stdout.readline()
        out = tmp_path / "out"
        result = run(spec(versions="faulty_slow", n="100"), "--out", out, program=FAULTY)
    finally:
        for process in busy:
            process.kill()
            process.communicate()
    assert result.returncode == 0, result.stderr
    noisy = [row for row in rows(out) if row["noisy"]]
    reasons = [reason for row in noisy for reason in row["noise"]["reasons"]]
    assert any(
        re.fullmatch(rf"other processes used [\d.]+ of {cores} cores?", r) for r in reasons
    ), [row["noise"] for row in rows(out)]
    line = re.compile(r"noisy: \d+ of \d+ samples \(")
    assert line.search(result.stderr)
    assert line.search(result.stdout)
    assert line.search((out / "summary.md").read_text())


def test_energy_is_null_with_a_reason_or_that_of_a_solve(spec, tmp_path):
    path = spec(n="100", timeout=60)
    powercap = tmp_path / "powercap"
    zone = powercap / "intel-rapl:0"
    zone.mkdir(parents=True)
    (zone / "max_energy_range_uj").write_text("262143328850\n")
    (zone / "energy_uj").write_text("1000000\n")
    environment = {**os.environ, "LLOYDBENCH_POWERCAP": str(powercap)}

    out = tmp_path / "short"
    assert run(path, "--out", out, env=environment).returncode == 0
    for row in rows(out):
        assert row["energy_j"] is None
        assert "measure.max_seconds is below 20" in row["null_reasons"]["energy_j"]

    path.write_text(path.read_text().replace("max_seconds: 0.1", "max_seconds: 20"))
    out = tmp_path / "still"
    assert run(path, "--out", out, env=environment).returncode == 0
    assert {row["null_reasons"]["energy_j"] for row in rows(out)} == {"the counter did not move"}

    out = tmp_path / "counted"
    process = subprocess.Popen(
        [PROGRAM, path, "--out", out, "--quiet"], env=environment, stdout=subprocess.DEVNULL
    )
    used = 1_000_000
    while process.poll() is None:
        used += 5000
        (zone / "energy_uj.new").write_text(f"{used}\n")
        (zone / "energy_uj.new").rename(zone / "energy_uj")
        time.sleep(0.01)
    assert process.returncode == 0
    measured = rows(out)
    assert len({row["energy_j"] for row in measured}) == 1
    assert 0 < measured[0]["energy_j"] < used / 1e6
    assert all("energy_j" not in row["null_reasons"] for row in measured)
    (told,) = profiling_passes(out)
    assert (told["pass"], told["status"], told["energy_j"]) == (
        "energy",
        "ok",
        measured[0]["energy_j"],
    )
    before = {file.name: file.read_bytes() for file in out.glob("*.jsonl")}
    assert run("--resume", out, env=environment).returncode == 0
    assert {file.name: file.read_bytes() for file in out.glob("*.jsonl")} == before


def test_clocks_that_cannot_be_locked_end_the_run_before_it_begins(spec, tmp_path):
    out = tmp_path / "out"
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    result = run(spec(), "--lock-clocks", "--out", out, env=environment)
    assert result.returncode == 2
    (message,) = result.stderr.splitlines()
    assert message.startswith("run_experiment: --lock-clocks: there is no GPU to lock (")
    assert not out.exists()
