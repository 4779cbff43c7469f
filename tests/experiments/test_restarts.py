"""solve: {restarts: R}: each point is solved from several initial centroids."""

import json
import re

import numpy as np
import pytest
from run_program import FAULTY, by_point, every_sample_once, killed_and_resumed, rows, run

from analysis.measures.points import gather
from analysis.model.answers import answers
from analysis.model.load import load_run
from analysis.pages.converged import convergence

SPEC = """name: restarted
versions: [{versions}]
axes: {{n: 300, k: 8, dim: 2, precision: [fp32], threads: 1}}
data: {{generator: blobs, centers: 8, sigma: 0.2}}
solve: {{iterations: 60, tolerance: 1e-6, seed: {seed}{restarts}}}
measure: {{repetitions: 2, max_seconds: 1e-9, launches: {launches}}}
"""


def write(path, versions="cpu_sequential", seed=5, restarts=0, launches=1, more=""):
    several = f", restarts: {restarts}" if restarts else ""
    text = SPEC.format(versions=versions, seed=seed, restarts=several, launches=launches)
    path.write_text(text + more)
    return path


def test_a_restart_is_the_solve_of_its_seed(tmp_path):
    out = tmp_path / "out"
    versions = "cpu_sequential, cpu_openmp"
    path = write(tmp_path / "s.yaml", versions, restarts=4, launches=2)
    result = run(path, "--out", out, "--save", "centroids,labels")
    assert result.returncode == 0, result.stderr
    every_sample_once(out, points=2, launches=2, at_least=2, restarts=4)
    found = rows(out)
    assert {row["verified"] for row in found} == {True}
    assert {(row["restart"], row["init_seed"]) for row in found} == {(r, 5 + r) for r in range(4)}
    inertia = {row["restart"]: row["inertia"] for row in found}
    for restart in (0, 3):
        one = tmp_path / str(restart)
        path = write(tmp_path / "one.yaml", versions, seed=5 + restart)
        assert run(path, "--out", one).returncode == 0
        assert {row["restart"] for row in rows(one)} == {None}
        assert {row["inertia"] for row in rows(one)} == {inertia[restart]}

    # The best of them is what the summary shows, and the answer that is kept.
    best = min(inertia.values())
    assert inertia[0] > 1.01 * best
    near = sum(value <= 1.01 * best for value in inertia.values())
    assert f"{near} of 4" in result.stdout
    assert f"| {best:.6g} | {near} of 4 |" in (out / "summary.md").read_text()
    points = np.array([row["inertia"] for row in found])
    assert points.min() == best
    for answer in answers(load_run(out)).values():
        clusters = np.unique(answer.labels)
        assert len(clusters) == 8
    run_read = load_run(out)
    table = gather([run_read], "").points
    assert table["inertia"].eq(best).all()
    assert table["launches"].eq(4).all()  # what counts as independent
    assert table["samples"].eq(len(found) / 2).all()


def test_the_answer_that_is_kept_is_the_best(tmp_path):
    out = tmp_path / "out"
    path = write(tmp_path / "s.yaml", restarts=4)
    assert run(path, "--out", out, "--save", "centroids").returncode == 0
    (kept,) = answers(load_run(out)).values()
    best = min(rows(out), key=lambda row: row["inertia"])
    assert best["restart"] > 0
    alone = tmp_path / "alone"
    path = write(tmp_path / "alone.yaml", seed=best["init_seed"])
    assert run(path, "--out", alone, "--save", "centroids").returncode == 0
    (same,) = answers(load_run(alone)).values()
    assert (kept.centroids == same.centroids).all()


def test_convergence_is_followed_for_each_restart(tmp_path):
    out = tmp_path / "out"
    path = write(tmp_path / "s.yaml", restarts=3, more="profile: {convergence: true}\n")
    assert run(path, "--out", out).returncode == 0
    last = {}
    for row in rows(out, "convergence.jsonl"):
        last[row["restart"]] = row
    ends = {row["restart"]: (row["iterations"], row["inertia"]) for row in rows(out)}
    assert set(last) == set(ends) == {0, 1, 2}
    for restart, (iterations, inertia) in ends.items():
        assert last[restart]["iteration"] == iterations
        assert last[restart]["inertia"] == pytest.approx(inertia, rel=1e-6)
    table = convergence(load_run(out))
    (line,) = table.rows
    cells = dict(zip(table.header, line, strict=True))
    assert cells["solves"] == "3"
    inertias = sorted(inertia for _, inertia in ends.values())
    assert cells["best inertia"] == f"{inertias[0]:.6g}"
    assert cells["inertia"] == f"{inertias[1]:.6g}"


def test_kill_9_in_the_middle_of_restarts_then_resume(tmp_path):
    out = tmp_path / "out"
    measurements = out / "measurements.jsonl"
    path = write(tmp_path / "s.yaml", "faulty_slow", restarts=3, launches=2)
    kept = killed_and_resumed(path, out, (1, 3, 6, 9))
    assert run("--resume", out, program=FAULTY).returncode == 0
    assert rows(out)[: len(kept)] == kept
    every_sample_once(out, points=1, launches=2, at_least=2, restarts=3)
    before = measurements.read_bytes()
    assert run("--resume", out, program=FAULTY).returncode == 0
    assert measurements.read_bytes() == before


def test_a_restart_that_fails_takes_the_point_with_it(tmp_path):
    """One seed's wrong answer is a wrong version."""
    out = tmp_path / "out"
    path = write(tmp_path / "s.yaml", "cpu_sequential, faulty_wrong", restarts=3)
    assert run(path, "--out", out, program=FAULTY).returncode == 1
    points = by_point(out)
    (wrong,) = (of for of in points.values() if of[0]["version"] == "faulty_wrong")
    assert [(row["status"], row["restart"]) for row in wrong] == [("incorrect", 0)]
    summary = (out / "summary.md").read_text()
    assert re.search(r"\| cpu_sequential \|.* \| ok \|", summary)
    assert len(json.loads((out / "spec.resolved.json").read_text())["points"]) == 2
