"""Figures with another axis on x."""

import itertools
import json
import re

import pandas as pd
import pytest
from drawn import drawing_of

from analysis.__main__ import main
from analysis.figures import X_OF, wrong_name
from analysis.figures.x_axis import CHOICES, x_axis
from analysis.measures.points import all_points
from analysis.model.load import load_run


@pytest.fixture
def inputs_run(make_run):
    """Two sources of points, two kinds of initial centroids and three seeds. kmeans++ is slower."""
    path = make_run("run", n=(10_000,), k=(5,), threads_per_block=(256,))
    texts = {"flat": "uniform(range=[0,1), seed=42)", "clouds": "blobs(centers=5, seed=42)"}
    slower = {"random_points": 1, "kmeans++": 2}

    def several(row):
        for name, init, seed in itertools.product(texts, slower, (1, 2, 10)):
            inputs = {"data_name": name, "init": init, "init_seed": seed, "data_seed": 42}
            point = f"{row['point']}/data:{name}/init:{init}/init_seed:{seed}"
            given = row | inputs | {"point": point}
            if "iteration_ms" in row:
                given |= {"schema": 3, "data": texts[name]}
                given["iteration_ms"] = row["iteration_ms"] * slower[init]
            yield given

    file = path / "measurements.jsonl"
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    file.write_text("".join(json.dumps(each) + "\n" for row in rows for each in several(row)))
    plan = path / "plan.json"
    planned = json.loads(plan.read_text())
    planned["points"] = [each for row in planned["points"] for each in several(row)]
    plan.write_text(json.dumps(planned))
    return path


@pytest.mark.parametrize("figure", [name for name in X_OF if name != "dims"])
@pytest.mark.parametrize(
    ("x", "values"),
    [
        ("data", ["flat", "clouds"]),
        ("init", ["random_points", "kmeans++"]),
        ("init_seed", ["1", "2", "10"]),
    ],
)
def test_an_input_is_on_x(inputs_run, figure, x, values):
    drawing = drawing_of(inputs_run, f"{figure}:{x}")
    assert drawing.name == f"{figure}_over_{x}"
    for axes in drawing.figure.axes:
        ticks = [text.get_text().replace("\n", "") for text in axes.get_xticklabels()]
        assert ticks == values
    assert {axes.get_xlabel() for axes in drawing.figure.axes} - {""} == {x.replace("_", " ")}
    # the CSV has the whole description
    assert set(drawing.rows["data"]) == {
        "uniform(range=[0,1), seed=42)",
        "blobs(centers=5, seed=42)",
    }
    drawn = drawing.rows[drawing.rows["drawn"]]
    told = drawn["data_name" if x == "data" else x] if x in drawn or x == "data" else None
    assert told is None or sorted(map(str, told.unique())) == sorted(values)


def test_files_of_one_name_in_two_folders_are_two_problems(inputs_run):
    file = inputs_run / "measurements.jsonl"
    file.write_text(re.sub(r'"data": "[^"]*"', '"data": "points.npy"', file.read_text()))
    rows = all_points([load_run(inputs_run)], None)
    assert set(rows["data"]) == {"flat: points.npy", "clouds: points.npy"}


def test_the_fastest_of_each_kind_of_initial_centroids(inputs_run):
    rows = drawing_of(inputs_run, "fastest:init").rows
    best = rows[rows["drawn"]].set_index(["data_name", "init"])["iteration_ms"]
    assert len(best) == 4
    for name in ("flat", "clouds"):
        assert best[name, "kmeans++"] == pytest.approx(2 * best[name, "random_points"])


def test_a_map_has_n_on_the_other_axis_if_k_is_on_x(make_run):
    drawing = drawing_of(make_run("run", n=(10_000, 100_000), k=(5, 100)), "fastest:k")
    (axes,) = drawing.figure.axes
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("K", "N")
    assert [text.get_text() for text in axes.get_xticklabels()] == ["5", "100"]
    of = drawing_of(make_run("run2", n=(10_000, 100_000), k=(5, 100)), "fastest").rows
    assert of.loc[of["drawn"], "point"].tolist() == (
        drawing.rows.loc[drawing.rows["drawn"], "point"].tolist()
    )


def test_scaling_over_a_size_has_a_line_for_each_number_of_workers(make_run):
    path = make_run("run", n=(10_000,), k=(5, 100))
    usual, over_k = drawing_of(path, "scaling").rows, drawing_of(path, "scaling:k").rows
    key = ["point", "speedup", "efficiency", "over"]
    strong = usual[usual["kind"].eq("strong")]
    assert over_k[key].sort_values("point").values.tolist() == (
        strong[key].sort_values("point").values.tolist()
    )
    workers = ["1 worker", "2 workers", "4 workers"]
    assert sorted(set(over_k["series"])) == [f"cpu_openmp {each}" for each in workers]
    assert set(over_k["problem"]) == {"N = 10⁴, dim 2"}
    # one kind of workers is what all of them are here
    of_threads = drawing_of(path, "scaling:threads").rows
    assert of_threads[key].values.tolist() == usual[key].values.tolist()


def test_noise_has_series_of_a_text_beside_each_other(inputs_run):
    (axes,) = drawing_of(inputs_run, "noise:init").figure.axes
    marks = [line for line in axes.get_lines() if line.get_marker() not in ("None", "o")]
    places = {round(float(at), 6) for line in axes.get_lines() for at in line.get_xdata()[:1]}
    assert len(marks) >= 4
    assert len(places) >= 6
    assert axes.get_xlim() == (0.5, 2.5)


@pytest.mark.parametrize("figure", ["fastest", "scaling", "noise"])
def test_an_axis_with_one_value_is_told_by_every_figure(make_run, figure):
    message = drawing_of(make_run("run", k=(5,)), f"{figure}:k").message
    assert "every point has k = 5; several values have n, " in message


@pytest.mark.parametrize("figure", ["speedup", "tpb"])
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
        (
            "roofline:k",
            "'roofline' has no axis on x that can be chosen; speedup, tpb, dims, scaling, noise, "
            "fastest have one",
        ),
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


def test_the_map_over_dim_and_k_has_them_on_either_axis(make_run):
    path = make_run("run", n=(10_000, 100_000), k=(16, 256, 1000), dim=(2, 32))
    usual, turned = drawing_of(path, "dims"), drawing_of(path, "dims:k")
    assert (usual.name, turned.name) == ("dims", "dims_over_k")
    assert drawing_of(path, "dims:dim").name == "dims"
    shown = [each.rows.loc[each.rows["drawn"], "point"] for each in (usual, turned)]
    assert sorted(shown[0]) == sorted(shown[1])
    axes = turned.figure.axes[0]
    assert [text.get_text() for text in axes.get_xticklabels()] == ["16", "256", "1,000"]
    assert [text.get_text() for text in axes.get_yticklabels()] == ["2", "32"]
    # luigi's limit: 16 fits with both dimensions, 256 with the smaller one, 1000 with none
    assert axes.lines[-1].get_ydata().tolist() == [1.5, 1.5, 0.5, 0.5, -0.5, -0.5]


def test_the_map_over_another_axis_has_the_largest_of_the_other_sizes(make_run):
    path = make_run("run", n=(10_000, 100_000), k=(16, 256), dim=(2, 32))
    drawing = drawing_of(path, "dims:n")
    assert drawing.name == "dims_over_n"
    drawn = drawing.rows[drawing.rows["drawn"]]
    assert set(drawn["n"]) == {10_000, 100_000}
    assert set(drawn["dim"]) == {32}
    assert not drawing.figure.axes[0].lines, "the limit needs dim on an axis"
    words = " ".join(text.get_text() for text in drawing.figure.texts)
    assert "dim = 32" in words
    assert "luigi's limit" not in words
    tunable = drawing_of(path, "dims:threads_per_block").rows
    drawn = tunable[tunable["drawn"]]
    assert set(drawn["threads_per_block"]) == {128, 256, 512, 1024}
    assert set(drawn["n"]) == {100_000}
