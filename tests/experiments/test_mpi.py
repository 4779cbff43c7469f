"""Versions of several ranks: verified, and whatever happens to a rank costs its point alone."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import time

import pytest
from run_program import BUILD, FAULTY, PROGRAM, ROOT, wait_for

TWIN = BUILD / "run_experiment_mpi"
FAULTY_TWIN = BUILD / "tests" / "run_experiment_faulty_mpi"

needs_mpi = pytest.mark.skipif(
    not TWIN.exists() or shutil.which("mpirun") is None,
    reason="built without MPI" if not TWIN.exists() else "mpirun is not on PATH (openmpi-bin)",
)

SPEC = """
name: ranks
versions: [{versions}]
axes: {{n: [1001], k: [{k}], dim: [3], threads: [{threads}], processes: [{processes}]}}
data: {{generator: uniform, seed: 42}}
solve: {{iterations: 6}}
measure: {{repetitions: 6, max_seconds: 0.1, max_noise: 0.9, timeout: {timeout}}}
"""


@pytest.fixture
def spec(tmp_path):
    def write(versions, k=5, threads="1", processes="2", timeout=60):
        path = tmp_path / "ranks.yaml"
        path.write_text(
            SPEC.format(
                versions=versions, k=k, threads=threads, processes=processes, timeout=timeout
            )
        )
        return path

    return write


def start(*arguments, program=PROGRAM, **options):
    return subprocess.Popen(
        [program, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def run(*arguments, **options):
    process = start(*arguments, **options)
    stdout, stderr = process.communicate(timeout=300)
    return process.returncode, stdout, stderr


def rows(directory, name="measurements.jsonl"):
    return [json.loads(line) for line in (directory / name).read_text().splitlines()]


def ranks_of(twin):
    """Those of this test: another one may run its own at the same time."""
    name = "PYTEST_CURRENT_TEST"  # pytest sets it
    of_test = f"{name}={os.environ[name]}".encode()
    found = []
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            ours = of_test in (process / "environ").read_bytes().split(b"\0")
            if ours and (process / "exe").resolve() == twin:
                found.append(int(process.name))
        except OSError:
            continue
    return sorted(found)


def nothing_is_left(out, twin):
    """No rank, and nothing of what Open MPI writes."""
    wait_for(lambda: ranks_of(twin) == [], "the ranks' end", 20)
    scratch = {
        pathlib.Path(word[len("TMPDIR=") :])
        for word in (out / "log.txt").read_text().split()
        if word.startswith("TMPDIR=")
    }
    assert scratch
    wait_for(lambda: not any(folder.exists() for folder in scratch), f"{scratch} to go", 20)


@needs_mpi
@pytest.mark.parametrize("k", [1, 5])
def test_one_two_and_three_ranks_are_verified(spec, tmp_path, k):
    out = tmp_path / "out"
    path = spec("cpu_mpi, cpu_mpi_openmp", k=k, threads="1, 2", processes="1, 2, 3")
    status, _, stderr = run(path, "--out", out)
    assert status == 0, stderr
    # Not a word of Open MPI's own on the screen: a line a point, and the one that begins the run.
    assert all(line.startswith(("[", "ranks:")) for line in stderr.splitlines()), stderr
    measured = rows(out)
    cores = json.loads((out / "environment.json").read_text())["cpu"]["cores"]
    assert len({row["point"] for row in measured}) == 9
    for row in measured:
        assert (row["status"], row["verified"]) == ("ok", True)
        assert (row["timing_basis"], row["family"], row["iterations"]) == ("mpi_max", "cpu", 6)
        assert 0 < row["solve_ms"] <= row["end_to_end_ms"]
        assert row["transfer_ms"] > 0
        working = row["processes"] * (row["threads"] or 1)
        assert row["oversubscribed"] == (working > cores)
        assert (row["binding"] == "none") == row["oversubscribed"]
    marked = [line for line in (out / "summary.md").read_text().splitlines() if "(over" in line]
    assert len(marked) == len({r["point"] for r in measured if r["oversubscribed"]})
    solve = [row for row in rows(out, "phases.jsonl") if row["part"] == "solve"]
    phases = {"assign": 6, "update": 12, "reduce": 6, "converge": 6, "gather": 6}
    assert {row["phase"]: row["calls"] for row in solve} == phases
    nothing_is_left(out, TWIN)


@needs_mpi
def test_a_rank_that_fails_costs_its_point_alone(spec, tmp_path):
    out = tmp_path / "out"
    versions = "faulty_rank_dies, faulty_rank_throws, faulty_leader_throws, cpu_mpi"
    status, _, stderr = run(spec(versions, processes="2, 3"), "--out", out, program=FAULTY)
    assert status == 1, stderr
    by_version = {}
    for row in rows(out):
        by_version.setdefault(row["version"], []).append(row)
    assert {row["status"] for row in by_version["cpu_mpi"]} == {"ok"}
    for version in ("faulty_rank_dies", "faulty_rank_throws"):
        assert len(by_version[version]) == 2
        for row in by_version[version]:
            assert row["status"] == "failed"
            assert row["reason"].startswith("the worker exited with status ")
    for row in by_version["faulty_leader_throws"]:
        assert (row["status"], row["reason"]) == ("failed", "the flux is out of phase")
    assert "rank 1: the flux is out of phase" in (out / "log.txt").read_text()
    nothing_is_left(out, FAULTY_TWIN)


@needs_mpi
def test_a_rank_that_hangs_is_a_timeout(spec, tmp_path):
    out = tmp_path / "out"
    path = spec("faulty_rank_hangs, cpu_mpi", timeout=3)
    assert run(path, "--out", out, program=FAULTY)[0] == 1
    assert {row["version"]: row["status"] for row in rows(out)} == {
        "cpu_mpi": "ok",
        "faulty_rank_hangs": "timeout",
    }
    nothing_is_left(out, FAULTY_TWIN)


def start_hanging(spec, out):
    process = start(spec("faulty_rank_hangs", processes="3"), "--out", out, program=FAULTY)
    wait_for(lambda: len(ranks_of(FAULTY_TWIN)) == 3 or process.poll() is not None, "three ranks")
    assert process.poll() is None, process.communicate()
    time.sleep(1)  # for all to be past their start
    return process, ranks_of(FAULTY_TWIN)


def parent_of(pid):
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(status.split("PPid:")[1].split()[0])


@needs_mpi
def test_an_interrupt_leaves_no_rank(spec, tmp_path):
    out = tmp_path / "out"
    process, _ = start_hanging(spec, out)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130
    assert f"interrupted; go on with: {FAULTY} --resume {out}\n" in stderr
    nothing_is_left(out, FAULTY_TWIN)


@needs_mpi
@pytest.mark.parametrize("victim", ["supervisor", "mpirun", "rank 0", "rank 1"])
def test_kill_9_leaves_no_rank(spec, tmp_path, victim):
    out = tmp_path / "out"
    process, ranks = start_hanging(spec, out)
    victims = {
        "supervisor": process.pid,
        "mpirun": parent_of(ranks[0]),
        "rank 0": ranks[0],
        "rank 1": ranks[1],
    }
    os.kill(victims[victim], signal.SIGKILL)
    process.communicate(timeout=60)
    nothing_is_left(out, FAULTY_TWIN)
    if victim != "supervisor":
        assert process.returncode == 1
        assert [row["status"] for row in rows(out)] == ["failed"]


@pytest.mark.parametrize("lacking", ["mpirun", "twin"])
def test_without_mpi_its_versions_are_unsupported(spec, tmp_path, lacking):
    program = PROGRAM
    environment = {**os.environ, "LLOYDBENCH_HOME": str(ROOT)}
    if lacking == "mpirun":
        environment["PATH"] = str(tmp_path)
        if not TWIN.exists():
            pytest.skip("built without MPI")
    else:
        program = tmp_path / "alone" / "run_experiment"
        program.parent.mkdir()
        shutil.copy(PROGRAM, program)
    out = tmp_path / "out"
    status, _, stderr = run(
        spec("cpu_sequential, cpu_mpi"), "--out", out, program=program, env=environment
    )
    assert status == 0, stderr
    reason = {row["version"]: (row["status"], row["reason"]) for row in rows(out)}
    assert reason["cpu_sequential"] == ("ok", None)
    assert reason["cpu_mpi"][0] == "unsupported"
    assert "apt-get install openmpi-bin libopenmpi-dev" in reason["cpu_mpi"][1]
    listed = subprocess.run(
        [program, "--list-versions", "--json"],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    (entry,) = (v for v in json.loads(listed.stdout) if v["name"] == "cpu_mpi")
    assert entry["available"] is False
    assert entry["reason"] == reason["cpu_mpi"][1]
