"""Convergence: from convergence.jsonl to the figure, the table and the page."""

import json

import numpy as np
import pandas as pd
import pytest
from made_runs import write_lines

from analysis.__main__ import main
from analysis.figures import draw
from analysis.figures.convergence import _median
from analysis.figures.series import panel_title, varies
from analysis.figures.typeset import text_width, wrap
from analysis.measures.convergence import curves, solves, summary
from analysis.measures.points import gather
from analysis.model.files import RunError
from analysis.model.load import load_run
from analysis.pages.converged import convergence
from analysis.pages.report import subject

# inertia after each iteration of each restart; the best of all is 100
INERTIA = {
    "cpu_sequential": [[300, 150, 100.9, 100.05, 100], [400, 120, 110, 110]],
    "cpu_openmp": [[300, 100.5, 101.5, 100.2]],
}


@pytest.fixture
def converged(make_run):
    path = make_run("run", n=(10_000,), k=(5,), threads=(2,), gpu=None)
    rows = [json.loads(line) for line in (path / "measurements.jsonl").read_text().splitlines()]
    lines = [
        {"point": point, "version": version, "restart": restart, "iteration": iteration}
        | {"inertia": inertia, "max_shift": None, "changed_labels": None}
        for point, version in dict.fromkeys((row["point"], row["version"]) for row in rows)
        for restart, values in enumerate(INERTIA.get(version, []))
        for iteration, inertia in enumerate(values)
    ]
    write_lines(path / "convergence.jsonl", lines)
    return path


def gathered(path):
    run = load_run(path)
    return gather([run], run.baseline), run


def test_a_panel_names_the_seed_once_and_breaks_between_words():
    rows = pd.DataFrame({"data_name": [None], "data": ["blobs(centers=20, sigma=0.5, seed=3)"]})
    told = panel_title(["k", "data", "data_seed"], (20, rows["data"][0], "3"), rows)
    assert told == "K\u00a0=\u00a020, blobs(centers=20, sigma=0.5), data\u00a0seed\u00a03"
    width = text_width("blobs(centers=20, sig")
    assert wrap(told, width)[1:3] == ["blobs(centers=20,", "sigma=0.5),"]
    assert panel_title(["data"], (rows["data"][0],), rows) == rows["data"][0]
    named = rows.assign(data_name="clouds")
    assert panel_title(["k", "data"], (20, rows["data"][0]), named) == "K\u00a0=\u00a020, clouds"


def test_a_file_without_a_seed_does_not_make_seeds_vary():
    assert not varies(pd.Series(["42", "", "42"]))
    assert varies(pd.Series(["42", "", "7"]))


def test_times_are_those_after_which_a_solve_stays_near_the_best(converged):
    data, _ = gathered(converged)
    rows = curves(data)
    assert rows["best_inertia"].eq(100).all()
    assert rows["excess"].max() == pytest.approx(3)
    ms = data.points.set_index("version")["iteration_ms"]
    found = solves(rows).set_index(["version", "restart"])
    first = found.loc[("cpu_sequential", 0)]
    assert first["iterations"] == 4
    assert first["total_ms"] == pytest.approx(4 * ms["cpu_sequential"])
    assert first["to_1_percent_ms"] == pytest.approx(2 * ms["cpu_sequential"])
    assert first["to_0_1_percent_ms"] == pytest.approx(3 * ms["cpu_sequential"])
    assert found.loc[("cpu_sequential", 1), ["to_1_percent_ms", "to_0_1_percent_ms"]].isna().all()
    # after one iteration it is near, but after two it is not
    other = found.loc[("cpu_openmp", 0)]
    assert other["to_1_percent_ms"] == pytest.approx(3 * ms["cpu_openmp"])
    assert np.isnan(other["to_0_1_percent_ms"])


def test_a_summary_goes_over_restarts(converged):
    data, _ = gathered(converged)
    row = summary(solves(curves(data))).set_index("version").loc["cpu_sequential"]
    assert (row["solves"], row["iterations"], row["to_1_percent_ms_reached"]) == (2, 3.5, 1)
    assert np.isnan(row["to_1_percent_ms"])  # the median of a time and never
    assert row["inertia"] == 105
    assert row["worst_excess"] == pytest.approx(0.1)


def test_rounded_points_have_a_best_of_their_own(converged):
    file = converged / "measurements.jsonl"
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    for row in rows:
        if row["version"] == "cpu_openmp":
            row["precision"] = "fp16"
    write_lines(file, rows)
    (converged / "plan.json").unlink()
    rows = curves(gathered(converged)[0])
    best = rows.drop_duplicates("version").set_index("version")["best_inertia"]
    assert best.to_dict() == {"cpu_sequential": 100, "cpu_openmp": 100.2}


def test_the_figure_has_a_panel_for_iterations_and_one_for_time(converged):
    data, run = gathered(converged)
    drawing = draw("convergence", data, subject([run]))
    iterations, time = drawing.figure.axes
    assert (iterations.get_xlabel(), time.get_xlabel()) == ("iterations", "time (ms)")
    assert "(%)" in time.get_ylabel()
    assert drawing.rows["drawn"].all()
    assert len(drawing.rows) == 13
    # iteration 0, the initial centroids, is drawn
    assert min(line.get_xdata()[0] for line in iterations.get_lines()[2:]) == 0
    assert "1 of 2 solves" in drawing.figure.caption


def test_a_run_without_it_says_what_writes_it(make_run):
    path = make_run("run", n=(10_000,), k=(5,))
    data, run = gathered(path)
    drawing = draw("convergence", data, subject([run]))
    assert drawing.figure is None
    assert "figures: [convergence]" in drawing.message
    with pytest.raises(RunError, match=r"no convergence\.jsonl"):
        convergence(run)


def test_the_table_is_markdown_latex_and_csv(converged, capsys):
    assert main(["tables", str(converged)]) == 0
    names = {line.rsplit("/", 1)[1] for line in capsys.readouterr().out.splitlines()}
    assert {"convergence.md", "convergence.tex", "convergence.csv"} <= names
    values = pd.read_csv(converged / "tables" / "convergence.csv").set_index("version")
    assert values.loc["cpu_sequential", "inertia"] == 105
    text = (converged / "tables" / "convergence.md").read_text()
    assert "never" in text.split("cpu_openmp")[1]
    assert "– (1 of 2)" in text


def test_the_page_shows_table_iterations_and_inertia(converged, tmp_path):
    spec = json.loads((converged / "spec.resolved.json").read_text())
    (converged / "spec.resolved.json").write_text(json.dumps({**spec, "solve": {"tolerance": 1}}))
    assert main(["report", str(converged), "-o", str(tmp_path / "out")]) == 0
    (page,) = (tmp_path / "out").glob("*/index.html")
    html = page.read_text()
    assert 'id="convergence-heading"' in html
    assert 'id="figure-convergence"' in html
    for heading in ("iterations", "ms a solve", "inertia"):
        assert f'class="number"><button type="button">{heading}</button>' in html


def test_a_row_of_an_unknown_kind_is_refused(converged):
    file = converged / "convergence.jsonl"
    file.write_text(file.read_text().replace('"iteration": 3', '"iteration": "x"', 1))
    with pytest.raises(RunError, match=r"convergence\.jsonl:4: iteration"):
        load_run(converged)


def test_the_median_of_lines_that_have_stopped():
    each = [(np.arange(3.0), np.array([8.0, 4, 2])), (np.arange(2.0), np.array([6.0, 6]))]
    at, values = _median(each, whole=True)
    assert at.tolist() == [0, 1, 2]
    assert values.tolist() == [7, 5, 4]
