"""One problem over commits: which recordings, in what order, and where a version changed."""

import json
import re
import subprocess

import numpy as np
import pandas as pd
import pytest
from made_runs import GPU, measurement, write_lines

from analysis.__main__ import main
from analysis.measures.compare import ALIKE, FASTER, OPEN_SLOWER, SLOWER
from analysis.measures.history import choose, history, recordings
from analysis.model.commits import commit_times
from analysis.model.files import RunError
from analysis.model.load import load_run

AXES = dict.fromkeys(["threads_per_block", "samples_per_thread", "threads", "processes", "gpus"])
COMMITS = ["aaaaaaa1", "bbbbbbb2", "ccccccc3", "ddddddd4"]


@pytest.fixture
def record(tmp_path):
    """record(folder, commit, day, {version: ms}, …) writes a run of five launches a version."""

    def make(
        folder,
        commit,
        day,
        times,
        *,
        gpu=GPU,
        cpu="Xeon",
        card="A",
        launches=5,
        n=1000,
        dirty=False,
    ):
        path = tmp_path / "runs" / folder
        path.mkdir(parents=True)
        random = np.random.default_rng(sum(map(ord, folder)))
        rows = []
        for version, ms in times.items():
            point = {"point": f"{version}/n:{n}", "version": version, "family": version[:4]}
            point |= {"backend": "cuda", "precision": "fp32", "n": n, "k": 4, "dim": 2, **AXES}
            for launch in range(launches):
                shift = (ms or 1) * (1 + 0.001 * random.normal())
                for turn in range(6):
                    of = {"schema": 2, "launch": launch, "repetition": turn, "repetitions": None}
                    of |= {"iteration_ms": shift * (1 + 0.001 * turn)}
                    if ms is None:
                        of |= {"status": "failed", "reason": "broke", "iteration_ms": None}
                    rows.append(measurement(point, gpu=gpu, gpu_uuid=f"GPU-{card}", **of))
        write_lines(path / "measurements.jsonl", rows)
        environment = {"t_utc": f"2026-01-{day:02}T00:00:00Z", "cpu": {"model": cpu}}
        environment["build"] = {"commit": commit, "dirty": dirty}
        (path / "environment.json").write_text(json.dumps(environment))
        (path / "spec.resolved.json").write_text(json.dumps({"name": "s", "title": "A sweep"}))
        return path

    return make


def told(paths, times=None, asked=None, versions=(), threshold=0.02):
    every = recordings([load_run(path) for path in paths])
    return history(every, asked or {}, list(versions), times or {}, threshold)


def by_place(of, version):
    rows = of.points[of.points["version"].eq(version)].sort_values("place")
    return list(zip(rows["place"], rows["commit"], rows["verdict"], strict=True))


def test_a_change_is_found_where_it_was_made_and_with_its_size(record):
    paths = [
        record("r1", COMMITS[0], 1, {"a_one": 1.0, "b_two": 2.0}),
        record("r2", COMMITS[1], 2, {"a_one": 1.0, "b_two": 2.4}),
        record("r3", COMMITS[2], 3, {"a_one": 0.8, "b_two": 2.4}),
    ]
    of = told(paths)
    assert by_place(of, "a_one") == [
        *((0, COMMITS[0], None), (1, COMMITS[1], ALIKE), (2, COMMITS[2], FASTER))
    ]
    assert [verdict for *_, verdict in by_place(of, "b_two")] == [None, SLOWER, ALIKE]
    change = of.points[of.points["verdict"].eq(SLOWER)].iloc[0]
    assert change["ratio"] == pytest.approx(1.2, rel=0.01)
    assert change["ratio_low"] < change["ratio"] < change["ratio_high"]
    assert change["p"] < 0.05
    assert change["previous_run"].endswith("runs/r1")


def test_a_recording_without_the_version_is_skipped_over(record):
    paths = [
        record("r1", COMMITS[0], 1, {"a_one": 1.0, "b_two": 2.0}),
        record("r2", COMMITS[1], 2, {"a_one": 1.0, "b_two": None}),
        record("r3", COMMITS[2], 3, {"a_one": 1.0, "b_two": 3.0}),
    ]
    of = told(paths)
    assert by_place(of, "b_two") == [
        *((0, COMMITS[0], None), (1, COMMITS[1], None), (2, COMMITS[2], SLOWER))
    ]
    last = of.points[of.points["version"].eq("b_two") & of.points["place"].eq(2)].iloc[0]
    assert last["previous_run"].endswith("runs/r1")


def test_one_launch_is_only_perhaps(record):
    paths = [
        record("r1", COMMITS[0], 1, {"a_one": 1.0}, launches=1),
        record("r2", COMMITS[1], 2, {"a_one": 1.3}, launches=1),
    ]
    assert by_place(told(paths), "a_one")[1][2] == OPEN_SLOWER


def test_machines_have_lines_of_their_own_and_are_never_compared(record):
    paths = [
        record("r1", COMMITS[0], 1, {"a_one": 1.0}),
        record("r2", COMMITS[0], 2, {"a_one": 3.0}, gpu="NVIDIA L4"),
        record("r3", COMMITS[1], 3, {"a_one": 1.0}),
        record("r4", COMMITS[1], 4, {"a_one": 2.0}, cpu="EPYC"),
    ]
    times = {commit: 10 * i for i, commit in enumerate(COMMITS)}
    of = told(paths, times)
    found = dict(zip(of.points["run"].str[-2:], of.points["machine"], strict=True))
    with_xeon = f"{GPU} with Xeon"
    assert found == {"r1": with_xeon, "r2": "NVIDIA L4", "r3": with_xeon, "r4": f"{GPU} with EPYC"}
    assert list(of.points["verdict"].dropna()) == [ALIKE]
    # recordings of one commit on different machines stand at one place
    assert sorted(zip(of.points["run"].str[-2:], of.points["place"], strict=True)) == [
        *(("r1", 0), ("r2", 0), ("r3", 1), ("r4", 1))
    ]


def test_another_card_of_the_model_makes_a_change_a_perhaps(record):
    paths = [
        record("r1", COMMITS[0], 1, {"a_one": 1.0}),
        record("r2", COMMITS[1], 2, {"a_one": 1.3}, card="B"),
        record("r3", COMMITS[2], 3, {"a_one": 1.6}, card="B"),
    ]
    of = told(paths)
    assert [verdict for *_, verdict in by_place(of, "a_one")] == [None, OPEN_SLOWER, SLOWER]
    assert "another GPU" in of.points.set_index("place")["why"][1]


def test_the_order_is_that_of_the_commits_where_all_are_known(record):
    # measured backwards, as somebody does who looks for a change
    paths = [
        record("r1", COMMITS[2], 1, {"a_one": 1.0}),
        record("r2", COMMITS[0], 2, {"a_one": 1.5}),
        record("r3", COMMITS[0], 3, {"a_one": 1.5}),
        record("r4", COMMITS[2], 4, {"a_one": 1.0}, dirty=True),
    ]
    times = {commit: 10 * i for i, commit in enumerate(COMMITS)}
    known = told(paths, times)
    assert known.by_commit
    assert by_place(known, "a_one") == [
        *((0, COMMITS[0], None), (1, COMMITS[0], ALIKE), (2, COMMITS[2], FASTER)),
        (3, COMMITS[2], ALIKE),
    ]
    unknown = told(paths, {COMMITS[0]: 0})
    assert not unknown.by_commit
    assert [commit for _, commit, _ in by_place(unknown, "a_one")] == [
        *(COMMITS[2], COMMITS[0], COMMITS[0], COMMITS[2])
    ]


def test_the_problem_that_was_measured_most_often_is_chosen_then_the_largest(record):
    paths = [
        record("r1", COMMITS[0], 1, {"a_one": 1.0}, n=1000),
        record("r2", COMMITS[1], 2, {"a_one": 1.0, "b_once": 1.0}, n=1000),
        record("r3", COMMITS[0], 1, {"a_one": 1.0}, n=5000),
        record("r4", COMMITS[1], 2, {"a_one": 1.0}, n=5000),
        record("r5", COMMITS[2], 3, {"a_one": 1.0}, n=9000),
    ]
    of = told(paths)
    assert (of.problem["n"], of.others) == (5000, 1)
    small = told(paths, asked={"n": 1000})
    assert set(small.points["version"]) == {"a_one"}  # b_once was measured once
    both = told(paths, asked={"n": 1000}, versions=["*"])
    assert set(both.points["version"]) == {"a_one", "b_once"}
    every = recordings([load_run(path) for path in paths])
    for asked, versions, message in (
        ({"n": 7}, [], "--n: no run has 7 there; there are 1,000, 5,000, 9,000"),
        ({}, ["c_*"], "--versions: no version is called 'c_*'; there are a_one, b_once"),
        ({"n": 9000}, [], "no version was measured twice at one problem on one machine"),
    ):
        with pytest.raises(RunError) as error:
            choose(every, asked, versions)
        assert str(error.value).startswith(message)


def test_the_command_draws_writes_and_says_the_changes(record, tmp_path, capsys):
    record("r1", COMMITS[0], 1, {"a_one": 1.0, "b_two": 2.0})
    record("r2", COMMITS[1], 2, {"a_one": 1.5, "b_two": 2.0})
    out = tmp_path / "out"
    command = ["history", str(tmp_path / "runs"), "--out", str(out), "--n", "1e3"]
    assert main(command) == 0
    said, err = capsys.readouterr()
    assert said.splitlines() == [str(out / f"history.{e}") for e in ("svg", "png", "csv")]
    assert re.fullmatch(
        rf"slower: a_one on {GPU}, 1\.50× the time \[1\.\d+, 1\.\d+\] from \S+/r1 to \S+/r2 "
        rf"\(commit {COMMITS[1]}\)\n",
        err,
    )
    rows = pd.read_csv(out / "history.csv")
    assert rows["drawn"].all()
    assert dict(zip(rows["version"] + rows["run"].str[-2:], rows["verdict"], strict=True)) == {
        **{"a_oner1": pytest.approx(np.nan, nan_ok=True), "a_oner2": SLOWER},
        **{"b_twor1": pytest.approx(np.nan, nan_ok=True), "b_twor2": ALIKE},
    }
    before = (out / "history.svg").read_bytes()
    assert main([*command, "--class", "acmart", "--format", "svg"]) == 0
    assert (out / "history.svg").read_bytes() != before
    assert "Triangles: compare's test" in (out / "history.tex").read_text()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--k", "9"], "--k: no run has 9 there; there are 4"),
        (["--threshold", "-1"], "--threshold: -1 is not a percentage from 0 to 1000"),
        (["--repository", "{}"], "--repository: {} is not a git repository, or there is no git"),
    ],
)
def test_what_cannot_be_drawn_is_one_line(record, tmp_path, capsys, options, message):
    record("r1", COMMITS[0], 1, {"a_one": 1.0})
    given = [word.format(tmp_path) for word in options]
    assert main(["history", str(tmp_path / "runs"), *given]) == 2
    assert capsys.readouterr() == ("", message.format(tmp_path) + "\n")


def test_a_repository_knows_when_its_commits_were_made(tmp_path):
    def git(*arguments, date="2026-01-01T00:00:00Z"):
        roles = ("AUTHOR_NAME", "AUTHOR_EMAIL", "COMMITTER_NAME", "COMMITTER_EMAIL")
        who = {f"GIT_{role}": "x" for role in roles}
        env = {**who, "GIT_COMMITTER_DATE": date, "HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
        done = subprocess.run(
            ["git", "-C", tmp_path, *arguments], env=env, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    git("init", "-q")
    git("commit", "-q", "--allow-empty", "-m", "one", date="2026-01-01T00:00:00Z")
    git("commit", "-q", "--allow-empty", "-m", "two", date="2026-01-03T00:00:00Z")
    first, second = git("rev-parse", "HEAD~1"), git("rev-parse", "HEAD")
    odd = ["--output=/tmp/x", "HEAD", "f" * 40, "unknown"]
    found = commit_times([first, second[:9], *odd], tmp_path)
    assert found == {first: 1767225600, second[:9]: 1767225600 + 2 * 86400}
