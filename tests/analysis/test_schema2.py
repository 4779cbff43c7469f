"""Rows of schema 2: launches, noise, imprecise results, and what else came with it."""

import json

import numpy as np
import pytest
from made_runs import write_lines

from analysis.__main__ import main
from analysis.figures import FIGURES, draw
from analysis.measures.noise import noise_note, worst_of_each_kind
from analysis.measures.points import all_points, gather
from analysis.model.load import load_run
from analysis.pages.report import subject


def rewrite(path, change):
    """Each row of measurements.jsonl as `change` returns it; None leaves it out."""
    file = path / "measurements.jsonl"
    rows = [change(json.loads(line)) for line in file.read_text().splitlines()]
    write_lines(file, [row for row in rows if row])


def second(row, launches=3, noisy=lambda row: False, **values):
    """A row of schema 1 as schema 2 has it: its repetitions dealt out to launches."""
    row = {key: value for key, value in row.items() if key != "repetitions"}
    per_launch = 9 // launches
    row |= {"schema": 2, "launch": row["repetition"] // per_launch}
    row |= {"repetition": row["repetition"] % per_launch, "waited_ms": 1.5, "energy_j": 0.25}
    row |= {"inertia_excess": 2e-5, "max_mean_error": 3e-6, "data_part": "first 5 of 9 rows"}
    disturbed = bool(noisy(row))
    reasons = ["other processes used 1.2 cores"] if disturbed else []
    return row | {"noisy": disturbed, "noise": {"other_cpu": 1.2, "reasons": reasons}} | values


def of_v4(row):
    return row["version"] == "luigi_v4_device_update"


@pytest.fixture
def run(make_run):
    """A run of 3 launches of 3 repetitions; v4 is noisy, v2 imprecise."""
    everything = {"counters": True, "ceilings": True, "floors": True}
    few = {"threads_per_block": (128, 256), "threads": (1, 2)}
    path = make_run(n=(10_000, 100_000), k=(5, 100), dim=(2, 8), **few, **everything)

    def change(row):
        row = second(row, noisy=of_v4)
        if row["version"] != "luigi_v2_split":
            return row
        if row["launch"] or row["repetition"]:
            return None
        why = "inertia is 14% above the float64 run's"
        return row | {"status": "imprecise", "reason": why, "inertia_excess": 0.14}

    rewrite(path, change)
    return path


def test_samples_are_told_apart_by_launch(run):
    points = all_points([load_run(run)], "cpu_sequential").set_index("point")
    point = points[points["version"].eq("luigi_v1_fused")].iloc[0]
    assert (point["samples"], point["launches"]) == (9, 3)
    launches = point["times_ms"].launches
    assert [len(times) for times in launches] == [3, 3, 3]
    assert point["iteration_ms"] == np.median([np.median(times) for times in launches])
    assert point["iteration_ms_low"] < point["iteration_ms"] < point["iteration_ms_high"]
    assert np.isfinite(point["speedup_low"])
    columns = ["waited_ms", "energy_j", "inertia_excess", "max_mean_error", "data_part"]
    assert point[columns].tolist() == [1.5, 0.25, 2e-5, 3e-6, "first 5 of 9 rows"]


def test_noise_and_its_reason_reach_the_points(run):
    points = all_points([load_run(run)], "")
    noisy = points[points["noisy"].eq(True)]
    assert set(noisy["version"]) == {"luigi_v4_device_update"}
    assert set(noisy["noise"]) == {"other processes used 1.2 cores"}
    assert noisy["noisy_samples"].eq(9).all()


def test_a_few_disturbed_samples_do_not_make_a_point_noisy(make_run):
    path = make_run(n=(10_000,), k=(5,))
    rewrite(
        path, lambda row: second(row, noisy=lambda row: row["launch"] == row["repetition"] == 0)
    )
    points = all_points([load_run(path)], "")
    assert points["noisy_samples"].eq(1).all()
    assert points["noisy"].eq(False).all()


def test_what_could_not_be_observed_is_neither_noisy_nor_quiet(make_run):
    path = make_run(n=(10_000,), k=(5,))
    rewrite(path, lambda row: second(row) | {"noisy": None, "noise": None})
    points = all_points([load_run(path)], "")
    assert points["noisy"].isna().all()
    assert points["noisy_samples"].isna().all()


REASONS = [
    "1 involuntary context switch in 2.1 ms",
    "other processes used 0.3 of 16 cores",
    "52 involuntary context switches in 14.9 ms",
    "52 involuntary context switches in 1,200 ms",
    "9 involuntary context switches in 1.08e+03 ms",
    "1 page read from disk",
    "3 pages read from disk",
    "other processes used 12.5 of 16 cores",
]
WORST = (
    "52 involuntary context switches in 14.9 ms; other processes used 12.5 of 16 cores; "
    "3 pages read from disk"
)


def test_the_worst_of_each_kind_of_noise_is_named(make_run, tmp_path):
    """In notes and in the report, instead of the first ones or of all."""
    path = make_run(n=(10_000,), k=(5,))

    def disturbed(row):
        reasons = REASONS[row["repetition"] % len(REASONS) :][:1]
        return row | {"noisy": True, "noise": {"reasons": reasons}}

    rewrite(path, disturbed)
    note = noise_note(all_points([load_run(path)], "cpu_sequential"))
    assert note.endswith(f" of the samples disturbed, at worst: {WORST}.")
    assert main(["report", str(path), "-o", str(tmp_path / "out")]) == 0
    (page,) = (tmp_path / "out").glob("*/index.html")
    assert f"at worst: {WORST} (8 reasons)" in page.read_text()


def test_a_noisy_baseline_that_is_shown_too_counts_once(make_run):
    path = make_run(n=(1000, 10_000), k=(5,), baseline="best:cpu")

    def changed(row):
        row = second(row, noisy=lambda row: row["version"] == "cpu_sequential")
        if row["version"] == "cpu_sequential" and row["n"] == 10_000:
            row |= {name: row[name] / 1e6 for name in ("solve_ms", "iteration_ms")}
        return row

    rewrite(path, changed)
    loaded = load_run(path)
    drawing = draw("speedup", gather([loaded], loaded.baseline), subject([loaded]))
    noisy = drawing.rows[drawing.rows["noisy"].eq(True)]
    assert noisy["drawn"].all()
    assert set(noisy["baseline"]) == {"cpu_sequential", "cpu_openmp"}
    assert f"noisy: {len(noisy)} points," in texts(drawing.figure)


def test_the_worst_noise_of_older_rows_has_no_powers_of_ten():
    reasons = ["279 involuntary context switches in 2.67e+03 ms"]
    assert worst_of_each_kind(reasons) == ["279 involuntary context switches in 2,670 ms"]


def test_imprecise_points_have_no_time_and_no_speedup_but_a_reason(run):
    points = all_points([load_run(run)], "cpu_sequential")
    imprecise = points[points["version"].eq("luigi_v2_split")]
    assert set(imprecise["status"]) == {"imprecise"}
    assert imprecise[["iteration_ms", "speedup"]].isna().all(axis=None)
    assert set(imprecise["reason"]) == {"inertia is 14% above the float64 run's"}
    assert imprecise["inertia_excess"].eq(0.14).all()


def texts(figure):
    found = figure.findobj(match=lambda artist: hasattr(artist, "get_text"))
    return " ".join(" ".join(text.get_text() for text in found).split())


# the others draw no times, or one problem of them: see MARKED
MARKED = {"speedup", "ladder", "phases", "floor", "tpb", "dims", "noise", "fastest"}


@pytest.mark.parametrize("name", FIGURES)
def test_figures_mark_noisy_points_and_list_imprecise_ones(run, name):
    loaded = load_run(run)
    drawing = draw(name, gather([loaded], loaded.baseline), subject([loaded]))
    if drawing.figure is None:
        assert drawing.message
        return
    said = texts(drawing.figure)
    if name in MARKED:
        assert "†" in said, name
        assert "other processes used 1.2 cores" in said, name
        assert "inertia is 14% above the float64 run's" in said, name
    if "drawn" in drawing.rows and "version" in drawing.rows:
        drawn = drawing.rows[drawing.rows["drawn"].eq(True)]
        if "status" in drawn:
            assert "imprecise" not in set(drawn.loc[drawn["iteration_ms"].notna(), "status"])


def test_rings_stand_round_the_marks_of_noisy_points(run):
    loaded = load_run(run)
    drawing = draw("noise", gather([loaded], loaded.baseline), subject([loaded]))
    rings = [line for line in drawing.figure.axes[0].lines if line.get_markersize() == 7.5]
    points = all_points([loaded], "")
    assert sum(len(line.get_xdata()) for line in rings) == int(points["noisy"].eq(True).sum()) > 0


def test_the_csv_has_the_new_columns_and_an_old_one_has_not(run, make_run):
    new = {"launches", "noisy", "noise", "inertia_excess", "max_mean_error", "energy_j"}
    new |= {"waited_ms", "data_part", "noisy_samples"}
    old = make_run("old", n=(10_000,), k=(5,))
    for path, has in ((run, new), (old, set())):
        assert main(["figures", str(path), "--only", "noise"]) == 0
        header = (path / "figures" / "noise.csv").read_text().splitlines()[0].split(",")
        assert new & set(header) == has


def test_tables_and_report_say_what_is_noisy_and_what_is_imprecise(run, tmp_path, capsys):
    assert main(["readme-table", str(run)]) == 0
    table = capsys.readouterr().out
    assert "† noisy: " in table
    assert all("†" in line for line in table.splitlines() if "luigi_v4_device_update" in line)
    assert "imprecise: inertia is 14% above the float64 run's" in table
    assert main(["report", str(run), "-o", str(tmp_path / "out")]) == 0
    (page,) = (tmp_path / "out").glob("*/index.html")
    for expected in ("Noisy: 16 points", "9 of 9", "imprecise", "J a solve"):
        assert expected in page.read_text(), expected


def test_a_launch_that_was_measured_again_counts_once(make_run):
    path = make_run(n=(10_000,), k=(5,))
    file = path / "measurements.jsonl"
    rows = [second(json.loads(line)) for line in file.read_text().splitlines()]
    mine = [row for row in rows if row["point"] == rows[0]["point"]]
    # launch 1 failed and was taken again; of launch 2 the last repetition was taken again
    failed = {**mine[3], "status": "failed", "reason": "signal 9", "iteration_ms": None}
    again = {**mine[8], "iteration_ms": 7.0}
    write_lines(file, [*mine[:3], failed, *mine[3:], again])
    loaded = load_run(path)
    assert set(loaded.measurements["status"]) == {"ok"}
    assert len(loaded.measurements) == 9
    assert loaded.measurements["iteration_ms"].eq(7.0).sum() == 1
