"""What a fault costs: versions that misbehave, full disks, machines that lack something."""

import os
import re
import resource
import signal

import pytest
from run_program import FAULTY, ROOT, by_point, every_sample_once, rows, run

FAULTS = {
    "faulty_killed": ("failed", "killed by signal 9"),
    "faulty_crashes": ("failed", "killed by signal 11"),
    "faulty_hangs": ("timeout", "not done within 3 s"),
    "faulty_exits": ("failed", "exited with status 3"),
    "faulty_throws": ("failed", "the flux is out of phase"),
    "faulty_wrong": ("incorrect", "whole solve"),
    "faulty_races": ("incorrect", "two more solves of the same input differ in 1 label, as with a"),
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


def test_a_crash_is_seen_where_the_parent_ignores_the_end_of_children(spec, tmp_path):
    out = tmp_path / "out"
    result = run(
        spec(versions="cpu_sequential,faulty_crashes", n="100"),
        "--out",
        out,
        program=FAULTY,
        preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN),
    )
    assert result.returncode == 1, result.stderr
    reasons = {row["version"]: row["reason"] for row in rows(out) if row["status"] != "ok"}
    assert list(reasons) == ["faulty_crashes"]
    assert "killed by signal 11" in reasons["faulty_crashes"]


def test_a_timeout_names_the_step_and_the_log_what_the_earlier_ones_took(spec, tmp_path):
    out = tmp_path / "out"
    steps = {
        "faulty_hangs": ["start-up", "data", "first solve"],
        "faulty_hangs_in_the_second_solve": ["start-up", "data", "first solve", "verification"],
    }
    run(spec(versions=",".join(steps), n="100", timeout=2), "--out", out, program=FAULTY)
    told = {row["version"]: (row["status"], row["reason"]) for row in rows(out)}
    log = (out / "log.txt").read_text()
    for version, (*earlier, last) in steps.items():
        assert told[version] == ("timeout", f"not done within 2 s (measure.timeout), in {last}")
        took = "".join(rf"{step} \d\.\d s, " for step in earlier)
        assert re.search(rf"^{version}/\S+: {took}{last} not done$", log, re.MULTILINE), log


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


def test_a_version_that_hands_its_problem_on_says_to_whom(spec, tmp_path):
    out = tmp_path / "out"
    versions = "cpu_sequential, faulty_delegates"
    result = run(spec(versions=versions), "--out", out, program=FAULTY)
    assert result.returncode == 0, result.stderr
    told = {row["version"]: row["chosen"] for row in rows(out)}
    assert {row["chosen_by"] for row in rows(out) if row["chosen"]} == {"estimated"}
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
