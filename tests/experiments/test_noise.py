"""What disturbs a measurement: what the rows say about it, and locked clocks."""

import contextlib
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

from run_program import FAULTY, rows, run, workers_of


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


def test_the_verification_takes_no_more_threads_than_there_are_cores(spec, tmp_path):
    """OpenMP would, where a container has a quota of CPU time. Here a variable stands for it."""
    cores = len(os.sched_getaffinity(0))
    process = subprocess.Popen(
        [FAULTY, spec(versions="faulty_slow", n="100"), "--out", tmp_path / "out"],
        env={**os.environ, "OMP_NUM_THREADS": str(cores + 40)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    threads = []
    while process.poll() is None:
        for worker in workers_of(process.pid):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                threads.append(len(list(Path(f"/proc/{worker}/task").iterdir())))
        time.sleep(0.02)
    assert process.returncode == 0
    assert 0 < max(threads) < cores + 20, max(threads)


def test_clocks_that_cannot_be_locked_end_the_run_before_it_begins(spec, tmp_path):
    out = tmp_path / "out"
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    result = run(spec(), "--lock-clocks", "--out", out, env=environment)
    assert result.returncode == 2
    (message,) = result.stderr.splitlines()
    assert message.startswith("run_experiment: --lock-clocks: there is no GPU to lock (")
    assert not out.exists()
