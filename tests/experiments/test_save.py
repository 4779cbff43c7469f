"""--save: the answers are kept, once per point, and belong to the rows."""

import json
import os
import shutil
import signal
import subprocess

import numpy as np
import pytest
from run_program import BUILD, FAULTY, ROOT, by_point, run, wait_for

from analysis.measures.generators import generate
from analysis.model.answers import answers
from analysis.model.load import load_run

SPEC = """
name: kept
versions: [cpu_sequential, {external}{mpi}]
axes: {{n: 500, k: [3, 300], dim: 2, precision: [fp64, fp32], processes: 2}}
solve: {{iterations: 5}}
measure: {{repetitions: 2, max_seconds: 0.01, launches: 2}}
"""


def test_answers_are_those_of_the_rows(tmp_path):
    """Labels and centroids of versions in the worker, in ranks and in another process."""
    mpi = (BUILD / "run_experiment_mpi").exists() and shutil.which("mpirun")
    (tmp_path / "kept.yaml").write_text(
        SPEC.format(external="python_numpy", mpi=", cpu_mpi" if mpi else "")
    )
    out = tmp_path / "out"
    result = run(tmp_path / "kept.yaml", "--out", out, "--save", "centroids,labels", cwd=ROOT)
    assert result.returncode == 0, result.stderr
    points = generate("uniform", 500, 2, 42).astype(float)
    kept = answers(load_run(out))
    measured = by_point(out)
    assert set(kept) == set(measured)
    assert {row["version"] for of in measured.values() for row in of} >= {"python_numpy"}
    for point, answer in kept.items():
        row = measured[point][0]
        assert answer.labels.dtype == (np.uint8 if row["k"] == 3 else np.uint16)
        assert answer.centroids.dtype == ("f8" if row["precision"] == "fp64" else "f4")
        assert answer.centroids.shape == (row["k"], 2)
        for cluster in np.unique(answer.labels):
            mean = points[answer.labels == cluster].mean(axis=0)
            assert answer.centroids[cluster] == pytest.approx(mean, rel=1e-5)
        away = ((points[:, None] - answer.centroids[None].astype(float)) ** 2).sum(axis=2)
        assert away.min(axis=1).sum() == pytest.approx(row["inertia"], rel=1e-5)
    assert json.loads((out / "plan.json").read_text())["save"] == ["labels", "centroids"]
    log = (out / "log.txt").read_text()
    assert log.count(" saving ") == len(kept)  # not once more in the second launch


def test_one_part_is_kept_alone_and_none_without_the_option(spec, tmp_path):
    assert run(spec(), "--out", tmp_path / "a", "--save", "centroids").returncode == 0
    (answer, _) = answers(load_run(tmp_path / "a")).values()
    assert answer.labels is None
    assert answer.centroids.shape == (3, 2)
    assert run(spec(), "--out", tmp_path / "b").returncode == 0
    assert not (tmp_path / "b" / "answers").exists()
    assert not answers(load_run(tmp_path / "b"))


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("label", "unknown part of an answer 'label'; did you mean 'labels'?"),
        ("labels,inertia", "unknown part of an answer 'inertia'"),
        ("", "--save"),
    ],
)
def test_an_unknown_part_is_said(spec, tmp_path, value, said):
    result = run(spec(), "--out", tmp_path / "out", "--save", value)
    assert result.returncode == 2
    assert said in result.stderr
    assert not (tmp_path / "out").exists()


def test_a_resumed_run_goes_on_saving(spec, tmp_path):
    out = tmp_path / "out"
    path = spec(versions="faulty_slow", n="100, 200")
    process = subprocess.Popen(
        [FAULTY, path, "--out", out, "--no-shuffle", "--save", "labels"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    passes = out / "passes.jsonl"
    wait_for(lambda: passes.exists() and passes.read_text().endswith("\n"))
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert process.returncode == 130
    (point,) = answers(load_run(out))
    assert "n:100/" in point
    (out / "answers" / "torn,labels.npy.new").write_text("torn")
    result = run("--resume", out, "--save", "centroids", program=FAULTY)
    assert result.returncode == 2
    assert "it was started with --save labels; leave --save out" in result.stderr
    assert run("--resume", out, program=FAULTY).returncode == 0
    assert len(list((out / "answers").iterdir())) == len(answers(load_run(out))) == 2


def test_a_point_that_is_wrong_in_a_later_launch_keeps_no_answer(spec, tmp_path):
    out = tmp_path / "out"
    environment = {**os.environ, "LLOYDBENCH_TEST_FIRST": str(tmp_path / "first")}
    path = spec(versions="cpu_sequential, faulty_wrong_later", n="100", launches=2)
    result = run(path, "--out", out, "--save", "labels", program=FAULTY, env=environment)
    assert result.returncode == 1
    assert (out / "log.txt").read_text().count(" saving ") == 2
    assert {point.split("/")[0] for point in answers(load_run(out))} == {"cpu_sequential"}


def test_nothing_is_written_through_a_link(spec, tmp_path):
    out, elsewhere = tmp_path / "out", tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert run(spec(), "--out", out, "--save", "labels").returncode == 0
    shutil.rmtree(out / "answers")
    (out / "answers").symlink_to(elsewhere)
    result = run("--resume", out)
    assert result.returncode == 2
    assert "answers: is no folder" in result.stderr
    assert list(elsewhere.iterdir()) == []
