"""Interrupts, kills, and runs that are resumed."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import time

from run_program import (
    FAULTY,
    every_sample_once,
    killed_and_resumed,
    rows,
    run,
    wait_for,
    workers_of,
)


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
    out = tmp_path / "a run"
    process, workers = start_slow_run(spec, out)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=30)
    assert process.returncode == 130
    assert f"{FAULTY} --resume '{out}'\n" in stderr
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


def test_kill_9_between_samples_loses_no_sample_and_doubles_none(spec, tmp_path):
    out = tmp_path / "out"
    measurements = out / "measurements.jsonl"
    path = spec(versions="faulty_slow", n="100, 200", launches=2)
    kept = killed_and_resumed(path, out, (2, 5, 9, 14, 18))
    assert run("--resume", out, program=FAULTY).returncode == 0
    assert rows(out)[: len(kept)] == kept
    every_sample_once(out, points=2, launches=2, at_least=6)
    before = measurements.read_bytes()
    assert run("--resume", out, program=FAULTY).returncode == 0
    assert measurements.read_bytes() == before


def test_a_program_that_is_built_again_during_a_run_finishes_it(spec, tmp_path):
    out, program = tmp_path / "out", tmp_path / "run_experiment"
    shutil.copy2(FAULTY, program)
    # a version needs a new worker after one that crashed
    path = spec(versions="faulty_slow,faulty_crashes,cpu_sequential", n="100")
    process = subprocess.Popen(
        [program, path, "--out", out, "--no-shuffle"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_for(lambda: workers_of(process.pid))
    program.unlink()
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    reasons = {row["version"]: row["reason"] or "" for row in rows(out)}
    assert "cannot start" not in errors
    assert "signal" in reasons["faulty_crashes"], reasons
    assert {row["status"] for row in rows(out) if row["version"] != "faulty_crashes"} == {"ok"}


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


def test_resume_keeps_the_options_of_the_start(spec, tmp_path):
    path, out = spec(n="100, 200"), tmp_path / "out"
    started = ["--set", "n=50", "--set", "k=4", "--timeout", "60"]
    assert run(path, "--out", out, *started).returncode == 0
    plan = (out / "plan.json").read_bytes()
    for same in ([], ["--timeout", "60"], ["--set", "k=4"], [*started, "--only", "cpu_*"]):
        for action in ([], ["--dry-run"]):
            result = run("--resume", out, *same, *action)
            assert result.returncode == 0, result.stderr
        assert {row["n"] for row in rows(out)} == {50}
    for action in ([], ["--dry-run"]):
        result = run("--resume", out, "--timeout", "5", *action)
        assert result.returncode == 2
        assert "the spec differs (measure/timeout: was 60.0, is 5.0); leave" in result.stderr
        assert "leave --timeout out, or start a new run" in result.stderr
        result = run("--resume", out, "--set", "k=5", "--seed", "7", *action)
        assert result.returncode == 2
        assert "leave --seed and --set out, or start a new run" in result.stderr
    assert (out / "plan.json").read_bytes() == plan


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


def test_a_resumed_run_keeps_where_it_began(tmp_path):
    path = tmp_path / "small.yaml"
    path.write_text(
        "name: small\nversions: [cpu_sequential]\naxes: {n: 100, k: 3, dim: 2}\n"
        "measure: {repetitions: 1, max_seconds: 0.1}\n"
    )
    out = tmp_path / "out"
    assert run(path, "--out", out).returncode == 0
    file = out / "environment.json"
    environment = json.loads(file.read_text())
    assert "earlier" not in environment
    here = environment["host"]
    file.write_text(json.dumps(environment | {"host": "elsewhere"}))
    # nothing is left to do, so nothing ran here
    assert run("--resume", out).returncode == 0
    assert json.loads(file.read_text())["host"] == "elsewhere"
    assert "on elsewhere:" in (out / "summary.md").read_text()
    for times in (1, 2):
        for name in ("measurements.jsonl", "passes.jsonl"):
            (out / name).write_text("")
        assert run("--resume", out).returncode == 0
        told = json.loads(file.read_text())
        assert told["host"] == here
        assert [start["host"] for start in told["earlier"]] == ["elsewhere", here][:times]
        assert not any("earlier" in start for start in told["earlier"])


def test_resume_names_what_a_damaged_environment_lacks(spec, tmp_path):
    out = tmp_path / "out"
    run(spec(n="100"), "--out", out)
    file = out / "environment.json"
    environment = json.loads(file.read_text())
    del environment["cpu"]["cores"]
    for damaged, missing in (({}, "t_utc, host, "), (environment, "cpu/cores)")):
        file.write_text(json.dumps(damaged))
        result = run("--resume", out)
        assert result.returncode == 2
        assert f"{file}: is damaged (no valid {missing}" in result.stderr
        assert "; restore the file, or start a new run" in result.stderr
        assert json.loads(file.read_text()) == damaged


def test_the_plan_of_a_resumed_run_has_the_points_that_are_left(spec, tmp_path):
    out = tmp_path / "out"
    process, _ = start_slow_run(spec, out)
    try:  # while it goes on
        planned = run("--resume", out, "--dry-run", "--json", program=FAULTY)
        assert [point["version"] for point in json.loads(planned.stdout)] == ["faulty_hangs"]
    finally:
        process.kill()
        process.communicate()
    with (out / "measurements.jsonl").open("a") as file:
        file.write('{"point": "torn')
    before = {file: file.read_bytes() for file in out.iterdir()}
    shown = run("plan", "--resume", out, program=FAULTY).stdout.splitlines()
    assert [line.split("/")[0] for line in shown[1:-2]] == ["faulty_hangs"]
    assert shown[-1] == "1 left of 2 points, 1 runnable here"
    assert {file: file.read_bytes() for file in out.iterdir()} == before


def test_a_failed_point_is_left_only_to_be_retried(spec, tmp_path):
    out = tmp_path / "out"
    path = spec(versions="cpu_sequential,faulty_crashes", n="100")
    assert run(path, "--out", out, program=FAULTY).returncode == 1
    plan = ["plan", "--resume", out]
    assert run(*plan, program=FAULTY).stdout == "0 left of 2 points, 0 runnable here\n"
    assert run(*plan, "--json", program=FAULTY).stdout == "[]\n"
    (point,) = json.loads(run(*plan, "--retry-failed", "--json", program=FAULTY).stdout)
    assert point["version"] == "faulty_crashes"


def test_resume_of_something_else_is_refused(tmp_path):
    result = run("--resume", tmp_path)
    assert result.returncode == 2
    assert "is not a run directory" in result.stderr
