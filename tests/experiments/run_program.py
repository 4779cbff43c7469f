"""Runs the program and reads what it writes, for the tests of this folder."""

import json
import os
import pathlib
import subprocess
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("LLOYDBENCH_BUILD", ROOT / "build")).resolve()
PROGRAM = BUILD / "run_experiment"
FAULTY = BUILD / "tests" / "run_experiment_faulty"


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


def profiling_passes(directory):
    return [row for row in rows(directory, "passes.jsonl") if row["pass"] != "timing"]


def turn_of(row):
    return row["point"], row["launch"], row["restart"] or 0


def every_sample_once(out, points, launches, at_least, restarts=1):
    """Each point has each launch of each restart, and each of these its samples from 0 on, none
    twice and none left out; the end of each is told once."""
    taken = {}
    for row in rows(out):
        assert row["status"] == "ok"
        taken.setdefault(turn_of(row), []).append(row["repetition"])
    assert len(taken) == points * launches * restarts
    for repetitions in taken.values():
        assert repetitions == list(range(len(repetitions)))
        assert len(repetitions) >= at_least
    told = [
        (*turn_of(row), row["status"], row["rows"])
        for row in rows(out, "passes.jsonl")
        if row["pass"] == "timing"
    ]
    assert sorted(told) == sorted((*key, "ok", len(taken[key])) for key in taken)
    phases = [(row["point"], row["part"], row["phase"]) for row in rows(out, "phases.jsonl")]
    assert len(phases) == len(set(phases))


def killed_and_resumed(path, out, counts):
    """Runs a spec whose samples are slow. Kills it whenever measurements.jsonl has one of these
    counts of rows, and resumes it. Returns the rows after the last kill."""
    measurements = out / "measurements.jsonl"
    arguments, kept = [path, "--out", out], []
    for have in counts:
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
    return kept


def wait_for(condition, what="what a test waits for", seconds=60):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return
        time.sleep(0.02)
    pytest.fail(f"waited {seconds} s in vain for {what}")


def workers_of(pid):
    """Its children that measure; those that an external version describes itself in are not."""
    listed = subprocess.run(
        ["ps", "-ww", "-o", "pid=,args=", "--ppid", str(pid)],
        capture_output=True,
        text=True,
        check=False,
    )
    return [int(line.split()[0]) for line in listed.stdout.splitlines() if " --worker" in line]
