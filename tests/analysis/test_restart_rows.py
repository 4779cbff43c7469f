"""Rows with restarts: what counts as one observation."""

import json

import numpy as np
import pytest
from made_runs import write_lines

from analysis.figures.notes import method_notes
from analysis.measures.points import all_points
from analysis.measures.stats import Samples, median_interval
from analysis.model.load import load_run
from analysis.pages.tables import every_point_cells

MS = {0: 1.0, 1: 2.0, 2: 4.0}
INERTIA = {0: 103.0, 1: 100.0, 2: 102.0}


@pytest.fixture
def restarted(make_run):
    """Each point has three restarts of two launches, whose samples all take the same time."""
    path = make_run("run", n=(10_000,), k=(5,))
    file = path / "measurements.jsonl"
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    first = {line["point"]: line for line in reversed(lines)}
    more = []
    for line in first.values():
        for restart, launch, repetition in np.ndindex(3, 2, 4):
            own = {"restart": restart, "launch": launch, "repetition": repetition, "schema": 3}
            own |= {"repetitions": None, "init_seed": 7 + restart, "init": "random_points"}
            ms = MS[restart]
            more.append(line | own | {"iteration_ms": ms, "inertia": INERTIA[restart]})
    write_lines(file, more)
    spec = json.loads((path / "spec.resolved.json").read_text())
    spec["solve"] = {"restarts": 3}
    (path / "spec.resolved.json").write_text(json.dumps(spec))
    return path


def test_the_restarts_of_a_point_are_its_observations(restarted):
    run = load_run(restarted)
    assert len(run.measurements) == 24 * run.measurements["point"].nunique()
    assert run.warnings == []
    points = all_points([run], run.baseline)
    point = points[points["status"] == "ok"].iloc[0]
    expected = median_interval(Samples(tuple(np.full(8, ms) for ms in MS.values())))
    assert (point["samples"], point["launches"]) == (24, 3)
    assert point["iteration_ms"] == 2.0
    assert (point["iteration_ms_low"], point["iteration_ms_high"]) == tuple(expected[1:])
    assert point["iteration_ms_high"] > 4  # 24 samples taken as independent: from 1 to 4
    assert point["inertia"] == 100
    header, cells = every_point_cells(points)
    assert {row[header.index("inertia")] for row in cells.values()} == {"100"}


def test_a_figure_says_that_samples_are_of_restarts(restarted):
    points = all_points([load_run(restarted)], "")
    ok = points[points["status"].eq("ok")]
    (first, *_) = method_notes(ok, "Time", "interval (bootstrap)", 0)
    assert first.startswith("Time, median of 24 samples in 3 restarts per point.")
    assert "Bars: interval (Student's t) from the medians of the restarts." in first


def test_a_point_that_was_measured_again_begins_with_its_first_restart(restarted):
    file = restarted / "measurements.jsonl"
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    write_lines(file, lines + [line | {"iteration_ms": 9.0} for line in lines])
    assert load_run(restarted).measurements["iteration_ms"].eq(9).all()
