"""Saved answers: read, checked, and drawn by `clustering`."""

import json

import numpy as np
import pytest
from made_runs import write_lines

from analysis.__main__ import main
from analysis.figures import FIGURES
from analysis.figures.drawing import Subject
from analysis.measures.generators import generate
from analysis.measures.points import gather
from analysis.model.answers import answers
from analysis.model.files import RunError
from analysis.model.load import load_run


@pytest.fixture
def kept(make_run):
    """A run whose first point has an answer, which is not what random_points leads to."""
    path = make_run("kept", n=(300,), k=(5,))
    spec = json.loads((path / "spec.resolved.json").read_text())
    spec["data"] = {"generator": "blobs", "seed": 3}
    spec["solve"] = {"init": "kmeans++", "seed": 1, "iterations": 20}
    (path / "spec.resolved.json").write_text(json.dumps(spec))
    points = generate("blobs", 300, 2, 3)
    centroids = points[:5]
    away = ((points[:, None] - centroids[None]).astype(float) ** 2).sum(axis=2)
    file = path / "measurements.jsonl"
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    write_lines(file, [{**row, "inertia": away.min(axis=1).sum()} for row in rows])
    point = rows[0]["point"]
    name = point.replace("/", ",").replace(":", "=")
    (path / "answers").mkdir()
    np.save(path / "answers" / f"{name},labels.npy", away.argmin(axis=1).astype(np.uint8))
    np.save(path / "answers" / f"{name},centroids.npy", centroids)
    return path


def file_of(path, part):
    return next((path / "answers").glob(f"*{part}.npy"))


def test_the_clustering_is_that_of_the_answer(kept):
    run = load_run(kept)
    drawing = FIGURES["clustering"](gather([run], run.baseline), Subject("kept", [], ""))
    assert drawing.figure is not None, drawing.message
    ((_, answer),) = answers(run).items()
    assert drawing.rows["iteration"].eq(20).all()
    assert drawing.rows[["x", "y"]].to_numpy() == pytest.approx(answer.centroids)
    assert drawing.rows["points"].tolist() == np.bincount(answer.labels).tolist()


def test_without_the_answer_it_is_not_drawn(kept):
    file_of(kept, "centroids").unlink()
    run = load_run(kept)
    assert answers(run).parts(run.measurements["point"].iloc[0]) == ["labels"]
    drawing = FIGURES["clustering"](gather([run], run.baseline), Subject("kept", [], ""))
    assert "init kmeans++ is not computed here" in drawing.message


@pytest.mark.parametrize(
    ("write", "said"),
    [
        (lambda file: np.save(file, np.zeros(299, np.uint8)), "has shape (299,) and type |u1"),
        (lambda file: np.save(file, np.zeros(300)), "type <f8"),
        (lambda file: np.save(file, np.full(300, 5, np.uint8)), "has labels outside of 0 to 4"),
        (lambda file: file.write_bytes(file.read_bytes()[:-1]), "has 299 of 300 B"),
        (
            lambda file: file.write_bytes(b"\x93NUMPY\x01\x00\x10\x00{'descr': '|O', "),
            "no npy file",
        ),
        (lambda file: np.save(file, np.array([{}] * 300), allow_pickle=True), "type |O"),
        (lambda file: file.write_bytes(b""), "no npy file"),
    ],
)
def test_damaged_answers_are_one_line(kept, write, said, capsys):
    write(file_of(kept, "labels"))
    assert main(["figures", str(kept), "--only", "clustering"]) == 2
    told = capsys.readouterr().err.splitlines()
    assert len(told) == 1
    assert said in told[0]


def test_links_are_not_followed(kept, tmp_path):
    file = file_of(kept, "labels")
    file.rename(tmp_path / "elsewhere.npy")
    file.symlink_to(tmp_path / "elsewhere.npy")
    run = load_run(kept)
    with pytest.raises(RunError, match="links in a run directory are not followed"):
        list(answers(run).values())
    (kept / "answers").rename(tmp_path / "folder")
    (kept / "answers").symlink_to(tmp_path / "folder")
    with pytest.raises(RunError, match="is a link"):
        answers(run)
