"""Figures with another axis on x."""

import json

import pandas as pd
import pytest

from analysis.__main__ import main
from analysis.figures import X_OF, draw, wrong_name
from analysis.figures.x_axis import CHOICES, x_axis
from analysis.measures.points import gather
from analysis.model.load import load_run
from analysis.pages.report import subject


def drawing_of(path, name):
    run = load_run(path)
    return draw(name, gather([run], run.baseline), subject([run]))


@pytest.mark.parametrize("figure", X_OF)
@pytest.mark.parametrize("x", ["n", "k", "dim", "threads_per_block"])
def test_it_is_drawn_over_the_axis(make_run, figure, x):
    path = make_run("run", n=(10_000, 100_000), k=(5, 100), dim=(2, 3))
    drawing = drawing_of(path, f"{figure}:{x}")
    assert drawing.name == (figure if x == X_OF[figure] else f"{figure}_over_{x}")
    words = {"n": "N, number of points", "k": "K, number of clusters"}
    words |= {"dim": "dim, number of dimensions", "threads_per_block": "threads per block"}
    panels = drawing.figure.axes
    assert {axes.get_xlabel() for axes in panels} - {""} == {words[x]}
    # what is not on x makes panels
    assert len(panels) == (8 if x == "threads_per_block" else 4)
    assert drawing.rows.loc[drawing.rows["drawn"], x].nunique() == (
        4 if x == "threads_per_block" else 2
    )


def test_each_value_of_a_tunable_has_its_own_time(make_run):
    path = make_run("run", n=(10_000,), k=(5,))
    rows = drawing_of(path, "speedup:threads_per_block").rows
    shown = rows[rows["drawn"] & rows["version"].eq("luigi_v1_fused")]
    assert shown["threads_per_block"].tolist() == [128, 256, 512, 1024]
    assert shown["speedup"].nunique() == 4
    # a version without the axis is not on it
    assert not (rows["drawn"] & rows["version"].eq("cpu_openmp")).any()


def test_a_word_is_an_axis_without_lines(make_run):
    path = make_run("run", n=(10_000,), k=(5,))
    file = path / "measurements.jsonl"
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    other = [
        {**r, "precision": "fp64", "point": r["point"] + "/fp64", "iteration_ms": 1.0} for r in rows
    ]
    file.write_text("".join(json.dumps(row) + "\n" for row in [*rows, *other]))
    (axes,) = drawing_of(path, "tpb:precision").figure.axes
    assert [text.get_text() for text in axes.get_xticklabels()] == ["fp32", "fp64"]
    marked = [line for line in axes.get_lines() if line.get_marker() != "None"]
    assert len(marked) >= 6
    assert {line.get_linestyle() for line in marked} == {"None"}


def test_seeds_are_in_order():
    points = pd.DataFrame({"data": ["10", "9", "1"], "k": [3, 1, 2]})
    assert x_axis(points, "data").values == ["1", "9", "10"]
    assert x_axis(points, "k").values == [1, 2, 3]


def test_an_axis_with_one_value_names_those_with_several(make_run):
    path = make_run("run", k=(5,))
    message = drawing_of(path, "speedup:k").message
    assert "every point has k = 5; several values have n, threads_per_block" in message


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("speedup:kk", "unknown axis 'kk' of 'speedup'; did you mean 'k'?"),
        ("speedup:", f"unknown axis '' of 'speedup'; there are {', '.join(CHOICES)}"),
        ("roofline:k", "'roofline' has no axis on x that can be chosen; speedup, tpb have one"),
        ("spedup:k", "unknown figure 'spedup'; did you mean 'speedup'?"),
    ],
)
def test_a_wrong_name_is_told(make_run, capsys, name, said):
    assert wrong_name(name) == said
    assert main(["figures", str(make_run("run", n=(10_000,), k=(5,))), "--only", name]) == 2
    assert said in capsys.readouterr().err


def test_the_report_has_the_figures_of_the_spec(make_run, tmp_path):
    path = make_run("run", k=(5, 100), figures=["speedup:k"])
    assert main(["report", str(path), "-o", str(tmp_path / "out")]) == 0
    (page,) = (tmp_path / "out").glob("*/index.html")
    assert 'id="figure-speedup_over_k"' in page.read_text()
    assert (page.parent / "speedup_over_k.csv").is_file()
