"""The figures of docs/ that explain: they say what the rows say, and fit the page."""

import json

import numpy as np
import pytest
from made_runs import write_lines
from matplotlib.backends.backend_agg import FigureCanvasAgg
from recorded_runs import recorded_run

from analysis.__main__ import main
from analysis.figures.explained import EXPLAINED, samples, timeline
from analysis.figures.style import look
from analysis.measures.points import all_points
from analysis.model.files import RunError
from analysis.model.load import load_run


def drawn(name, path):
    with look():
        return EXPLAINED[name](load_run(path))


def labels_outside_of_their_axis(figure):
    """matplotlib has labels for a tick before and behind an axis, and does not draw them."""
    return {
        tick.label1
        for axes in figure.axes
        for tick in axes.xaxis.get_major_ticks()
        if not axes.get_xlim()[0] <= tick.get_loc() <= axes.get_xlim()[1]
    }


@pytest.mark.parametrize(("name", "run"), [("timeline", "luigi_nvprof"), ("samples", "quickstart")])
def test_no_text_overflows_the_page(name, run):
    figure = drawn(name, recorded_run(run)).figure
    renderer = FigureCanvasAgg(figure).get_renderer()
    figure.draw(renderer)
    outside = labels_outside_of_their_axis(figure)
    for text in figure.findobj(match=lambda a: hasattr(a, "get_text")):
        if text.get_text().strip() and text.get_visible() and text not in outside:
            box = text.get_window_extent(renderer)
            assert text.get_fontsize() >= 7
            assert -1 <= box.x0 < box.x1 <= figure.bbox.width + 1, text.get_text()


@pytest.fixture
def traced(make_run):
    """Three iterations of 10 µs after a set-up of 100, each a call and a kernel that ends later."""
    path = make_run(n=(10_000,), k=(5,))
    point = {"point": "luigi_v1_fused/n:10000", "version": "luigi_v1_fused", "part": "solve"}
    events = [{**point, "kind": "part", "name": "setup", "start_us": 0, "duration_us": 100}]
    for iteration in range(4):
        at = {"iteration": iteration, "start_us": 100 + 10 * iteration}
        events += [
            {**point, **at, "kind": "iteration", "name": "iteration", "duration_us": 10},
            {**point, **at, "kind": "api", "name": "cudaLaunchKernel", "duration_us": 3},
            {**point, **at, "kind": "kernel", "name": "assign", "duration_us": 6},
        ]
        events[-1]["start_us"] += 3
    write_lines(path / "timeline.jsonl", events)
    return path


def test_a_timeline_has_the_second_and_third_iteration(traced):
    rows = drawn("timeline", traced).rows
    assert rows["kind"].value_counts().to_dict() == {"iteration": 2, "api": 2, "kernel": 2}
    assert set(rows["iteration"]) == {1, 2}
    kernels = rows[rows["kind"].eq("kernel")]
    assert kernels["from_us"].tolist() == [3, 13]


def test_a_run_without_a_trace_has_no_timeline(make_run):
    with pytest.raises(RunError, match=r"run its spec with --profile timeline"):
        timeline(load_run(make_run(n=(10_000,), k=(5,))))


def test_samples_are_all_there_around_their_median(make_run):
    run = load_run(make_run(n=(10_000, 100_000), k=(5, 100)))
    with look():
        rows = samples(run).rows
    points = all_points([run], run.baseline).set_index("point")
    assert rows["version"].nunique() > 3
    for point, of in rows.groupby("point"):
        assert points.loc[point, ["n", "k"]].tolist() == [100_000, 100]
        assert np.allclose(np.sort(of["iteration_ms"]), points.loc[point, "times_ms"].pooled)
        assert np.median(of["percent"]) == pytest.approx(0, abs=1e-9)


def test_a_sample_far_away_leaves_the_others_apart(make_run):
    path = make_run(n=(100_000,), k=(5,), threads_per_block=(256,))
    with look():
        near = samples(load_run(path))
    assert near.rows["percent"].max() < 100
    assert near.figure.axes[0].get_xscale() == "linear"
    file = path / "measurements.jsonl"
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    ok = [row for row in rows if row["version"] == "luigi_v1_fused"]
    ok[-1]["iteration_ms"] *= 30
    write_lines(file, rows)
    with look():
        far = samples(load_run(path))
    assert far.rows["percent"].max() > 2500
    (axes,) = far.figure.axes
    assert axes.get_xscale() == "symlog"
    assert "logarithmic beyond ±10%" in axes.get_xlabel()


def test_a_page_may_hold_them(traced, tmp_path, capsys):
    page = tmp_path / "page.md"
    name = json.loads((traced / "spec.resolved.json").read_text())["name"]
    block = "<!-- figure:BEGIN {0} -->\n<!-- figure:END {0} -->\n"
    page.write_text(block.format(f"{name}:timeline") + block.format(f"{name}:samples"))
    assert main(["readme", str(page), str(traced)]) == 0
    assert page.read_text().count("![") == 2
    for figure in ("timeline", "samples"):
        assert (traced / "figures" / f"{figure}.png").stat().st_size > 5000
    capsys.readouterr()
