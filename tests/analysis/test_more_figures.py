"""The values in the figures that explain: phases, ladder, noise, scaling, dims, floor, counters."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from drawn import drawing_of, words
from made_runs import ceilings, counter_rows, point_rows, write_lines
from matplotlib import colormaps
from matplotlib.backends.backend_agg import FigureCanvasAgg

from analysis.figures import FIGURES, draw, roofline
from analysis.figures.clustering import assign, lloyd
from analysis.figures.series import series_names
from analysis.measures.expressions import evaluate
from analysis.measures.fastest import MOST_GIB, condition_text, conditions, fastest
from analysis.measures.generators import generate, random_points
from analysis.measures.kernels import by_kernel, short_name
from analysis.measures.lookup import MissingError, Place, Rows
from analysis.measures.points import gather
from analysis.model.ceilings import load_ceilings
from analysis.model.load import load_run
from analysis.model.words import TABLES
from analysis.pages.report import subject

ROOT = Path(__file__).resolve().parents[2]


def test_the_program_and_the_analysis_share_one_list_of_figures():
    table = (ROOT / "experiments" / "spec" / "figures.inc").read_text()
    listed = re.findall(r"^LLOYD_FIGURE\((\w+),", table, re.MULTILINE)
    assert list(FIGURES) == listed
    assert (
        '#include "experiments/spec/figures.inc"'
        in (ROOT / "experiments" / "spec" / "keys_spec.cpp").read_text()
    )
    modules = (ROOT / "analysis" / "figures").glob("[!_]*.py")
    assert {file.stem for file in modules if "\ndef draw(" in file.read_text()} == set(listed)


def test_every_figure_that_a_spec_names_can_be_drawn():
    for file in (ROOT / "experiments" / "sweeps").glob("*.yaml"):
        for names in re.findall(r"^figures: *\[(.*)\]", file.read_text(), re.MULTILINE):
            assert {name.strip() for name in names.split(",")} <= set(FIGURES), file


def test_phases_are_shares_of_the_time_and_what_is_outside(make_run):
    drawing = drawing_of(make_run(n=(10**6,), k=(100,)), "phases")
    of = drawing.rows[drawing.rows["version"].eq("luigi_v1_fused")].set_index("phase")
    assert set(of.index) == {"assign", "update", "outside"}
    assert of["share_percent"].sum() == pytest.approx(100)
    # the model: 80% assign and 15% update of the noiseless time, which the median is a little over
    ms = of["iteration_ms"].iloc[0]
    assert of.loc["outside", "ms_per_iteration"] == pytest.approx(
        ms - of.loc[["assign", "update"], "ms_per_iteration"].sum()
    )
    ratio = of.loc["assign", "share_percent"] / of.loc["update", "share_percent"]
    assert ratio == pytest.approx(0.8 / 0.15)
    assert any(re.fullmatch(r"assign \d\d%", word) for word in words(drawing))


def test_phases_of_a_run_without_any(make_run):
    path = make_run(n=(10**6,), k=(100,))
    (path / "phases.jsonl").unlink()
    drawing = drawing_of(path, "phases")
    assert drawing.figure is None
    assert drawing.message == "the run has no phases"


def test_the_ladder_has_each_version_below_its_parent(make_run):
    drawing = drawing_of(make_run(n=(10**6,), k=(100,), counters=True), "ladder")
    rows = drawing.rows.set_index("version")
    assert rows.index.tolist() == [
        *("cpu_sequential", "cpu_openmp", "luigi_v1_fused", "luigi_v2_split"),
        *("luigi_v3_shared_centroids", "luigi_v4_device_update"),
    ]
    v3, v1 = rows.loc["luigi_v3_shared_centroids"], rows.loc["luigi_v1_fused"]
    assert v3["parent"] == "luigi_v1_fused"
    assert v3["ratio"] == pytest.approx(v1["iteration_ms"] / v3["iteration_ms"])
    assert v3["ratio_low"] < v3["ratio"] < v3["ratio_high"]
    assert v3["l1_hits"] == 47
    assert np.isnan(rows.loc["cpu_sequential", "ratio"])
    assert any(word.endswith("occ 91% L1 47% L2 62%") for word in words(drawing))


def test_the_ladder_skips_a_parent_that_was_not_measured(make_run):
    gone = [(lambda p: p["version"] == "luigi_v3_shared_centroids", "failed", "no luck")]
    rows = drawing_of(make_run(n=(10**6,), k=(100,), faults=gone), "ladder").rows
    v4 = rows.set_index("version").loc["luigi_v4_device_update"]
    assert v4["parent"] == "luigi_v1_fused"


def test_the_ladder_of_a_run_that_does_not_know_parents(make_run):
    drawing = drawing_of(make_run(n=(10**6,), k=(100,), parents=False), "ladder")
    assert drawing.figure is None
    assert drawing.message == "no version here was measured beside its parent"


def test_parents_of_recorded_runs_are_found_above_them(make_run, tmp_path):
    path = make_run("recorded/h200/a", n=(10**6,), k=(100,), parents=False)
    (tmp_path / "recorded" / "parents.json").write_text('{"luigi_v1_fused": "cpu_openmp"}')
    rows = drawing_of(path, "ladder").rows.set_index("version")
    assert rows.loc["luigi_v1_fused", "parent"] == "cpu_openmp"


def test_noise_is_the_relative_half_width(make_run):
    drawing = drawing_of(make_run(n=(10**6,), k=(100,)), "noise")
    row = drawing.rows.iloc[0]
    half = (row["iteration_ms_high"] - row["iteration_ms_low"]) / 2
    assert row["noise_percent"] == pytest.approx(100 * half / row["iteration_ms"])
    assert row["spread_percent"] >= row["noise_percent"]


def test_noise_needs_samples(make_run):
    drawing = drawing_of(make_run(n=(10**6,), k=(100,), repetitions=5), "noise")
    assert drawing.message == "no point has the 6 samples that an interval needs"


def test_the_map_has_luigis_limit_and_hatches_what_does_not_fit(make_run):
    beyond = [
        (
            lambda p: p["version"].startswith("luigi_v3") and p["k"] * (1 + 2 * p["dim"]) > 4096,
            "unsupported",
            "does not fit",
        )
    ]
    path = make_run(n=(10**5,), k=(16, 256, 1000), dim=(2, 32), threads=(1,), faults=beyond)
    drawing = drawing_of(path, "dims")
    rows = drawing.rows
    some = rows[rows["drawn"] & rows["status"].eq("ok")].iloc[0]
    work = some["n"] * some["k"] * some["dim"]
    assert some["ps_per_term"] == pytest.approx(1e9 * some["iteration_ms"] / work)
    at = [axes.get_title(loc="left") for axes in drawing.figure.axes]
    axes = drawing.figure.axes[at.index("luigi_v3_shared_centroids")]
    hatched = [patch for patch in axes.patches if patch.get_hatch() == "////"]
    # K = 1000 at dim 2; K = 256 and 1000 at dim 32
    assert len(hatched) == 3
    x, y = axes.lines[-1].get_data()
    assert list(zip(x, y, strict=True)) == [(-0.5, 1.5), (0.5, 1.5), (0.5, 0.5), (1.5, 0.5)]
    assert "Hatched: unsupported." in " ".join(words(drawing))


def test_a_map_has_the_colours_of_the_cells_that_it_draws(make_run):
    run = make_run(n=(10**5, 10**6), k=(16, 256), dim=(2,), threads=(1,))
    rows = [json.loads(line) for line in (run / "measurements.jsonl").read_text().splitlines()]
    # as many points of other data, which take far longer: their cells are those of the fast ones
    times = ("solve_ms", "iteration_ms")
    slow = [
        row
        | {"point": row["point"] + "/data:slow", "data": "slow", "data_name": "slow"}
        | {column: 100 * row[column] for column in times}
        for row in rows
    ]
    write_lines(run / "measurements.jsonl", rows + slow)
    drawing = drawing_of(run, "dims:n")
    cells = [p for axes in drawing.figure.axes for p in axes.patches if not p.get_hatch()]
    darkest = min(sum(cell.get_facecolor()[:3]) for cell in cells)
    assert darkest == pytest.approx(sum(colormaps["cividis_r"](1.0)[:3]))


def test_convergence_counts_noisy_points_and_marks_none(make_run):
    run = make_run(n=(10**4,), k=(5,), convergence=True)
    rows = [json.loads(line) for line in (run / "measurements.jsonl").read_text().splitlines()]
    for row in rows:
        row["noisy"] = True
    write_lines(run / "measurements.jsonl", rows)
    small_print = " ".join(words(drawing_of(run, "convergence")))
    assert "Noisy: " in small_print
    assert "Ringed" not in small_print


def test_the_floor_is_at_one(make_run):
    drawing = drawing_of(make_run(n=(10**6,), k=(100,), floors=True), "floor")
    row = drawing.rows[drawing.rows["drawn"]].iloc[0]
    assert row["times_the_floor"] == pytest.approx(row["iteration_ms"] / row["floor_ms"])
    drawing = drawing_of(make_run("other", n=(10**6,), k=(100,)), "floor")
    assert "no floor_ms" in drawing.message


def test_the_floor_names_what_is_faster_than_it(make_run):
    run = make_run(n=(10**6,), k=(100,), floors=True)
    assert "Faster than the floor" not in " ".join(words(drawing_of(run, "floor")))
    rows = [json.loads(line) for line in (run / "measurements.jsonl").read_text().splitlines()]
    for row in rows:
        if row["version"] == "luigi_v1_fused" and row["status"] == "ok":
            row["floor_ms"] = 2 * row["solve_ms"] / row["iterations"]
    write_lines(run / "measurements.jsonl", rows)
    small_print = " ".join(words(drawing_of(run, "floor")))
    assert "Faster than the floor: luigi_v1_fused." in small_print
    assert "a measured ceiling is too low" in small_print.replace("\n", " ")


def test_the_floor_has_a_row_for_each_number_of_gpus(make_run):
    sizes = {"n": (10**6,), "k": (100,), "floors": True, "baseline": None}
    drawing = drawing_of(make_run(**sizes, gpus=(1, 2, 4)), "floor")
    drawn = drawing.rows[drawing.rows["drawn"] & drawing.rows["version"].eq("multi_wgmma")]
    assert sorted(drawn["gpus"]) == [1, 2, 4]
    labels = {text.get_text() for text in drawing.figure.axes[0].get_yticklabels()}
    assert {"fast_wgmma", *(f"multi_wgmma {g}" for g in ("1 GPU", "2 GPUs", "4 GPUs"))} <= labels


def test_points_of_one_problem_differ_in_what_the_version_may_use(make_run):
    points = gather([load_run(make_run(n=(10**6,), k=(100,), gpus=(2,)))], "").points
    assert conditions(points) == ["gpus"]
    alone = points[points["gpus"].isna()].assign(host_memory="pageable")
    assert conditions(alone) == []
    pinned = alone.assign(host_memory="pinned", device_memory=1)
    both = pd.concat([alone, pinned], ignore_index=True)
    assert conditions(both) == ["device_memory", "host_memory"]
    apart = fastest(both, apart=conditions(both))
    assert len(apart) == 2 * len(fastest(alone))
    names = set(series_names(apart[apart["version"].eq("fast_wgmma")], apart=conditions(both)))
    assert names == {"fast_wgmma pageable", "fast_wgmma 1 GiB pinned"}


def test_device_memory_is_in_gib_or_in_bytes():
    values = (0, 4, 4 << 30, 3 << 29)
    texts = ["all memory", "4 GiB", "4 GiB", "1.5 GiB"]
    assert [condition_text("device_memory", value) for value in values] == texts
    unit = (TABLES / "device_memory.h").read_text(encoding="utf-8")
    assert f"kMostGiB = std::int64_t{{1}} << {MOST_GIB.bit_length() - 1};" in unit


def test_the_cpu_roofline_is_of_the_definition(make_run):
    run = make_run(n=(10**5, 10**6), k=(5, 100), dim=(2,), threads=(1, 4), ceilings=True)
    drawing = drawing_of(run, "cpu_roofline")
    rows = drawing.rows[drawing.rows["drawn"]]
    assert set(rows["backend"]) == {"cpu"}
    assert set(rows["n"]) == {10**6}
    row = rows[rows["k"].eq(100)].iloc[0]
    assert row["operations_per_second"] == pytest.approx(
        2 * 10**6 * 100 * 2 / (row["iteration_ms"] / 1e3)
    )
    # points and labels once, centroids read and written
    moved = 10**6 * 2 * 4 + 4 * 10**6 / 20 + 2 * 100 * 2 * 4
    assert row["operations_per_byte"] == pytest.approx(2 * 10**6 * 100 * 2 / moved)
    assert {"L1 2,000 GB/s", "DRAM 200 GB/s", "fp32 3.00 TFLOP/s"} <= set(words(drawing))


def test_the_cpu_roofline_needs_ceilings_of_this_cpu(make_run):
    drawing = drawing_of(make_run(n=(10**6,), k=(100,)), "cpu_roofline")
    assert drawing.figure is None
    assert "no measured ceilings of the run's CPU" in drawing.message
    other = make_run("other", n=(10**6,), k=(100,), ceilings=True)
    file = other / "ceilings.json"
    file.write_text(file.read_text().replace('"cpu": {"model": "', '"cpu": {"model": "Another '))
    assert drawing_of(other, "cpu_roofline").figure is None


def test_ceilings_of_fewer_cores_are_not_used(make_run):
    path = make_run(n=(10**6,), k=(100,), ceilings=True)
    file = path / "ceilings.json"
    measured = json.loads(file.read_text())
    for cores, used in ((96, True), (2, False)):
        measured["cpu"]["cores"] = cores
        file.write_text(json.dumps(measured))
        assert (load_run(path).cpu_ceilings is not None) == used


def test_occupancy_has_a_row_a_kernel(make_run):
    drawing = drawing_of(make_run(n=(10**6,), k=(100,), counters=True), "occupancy")
    rows = drawing.rows[drawing.rows["drawn"]]
    # divide takes 2% of the time: in the rows, not in the picture
    assert set(rows["kernel"]) == {"assign_points"}
    assert len(rows) == 4
    assert set(drawing.rows["kernel"]) == {"assign_points", "divide"}
    assert {"91%", "47%", "96%"} <= set(words(drawing))


@pytest.mark.parametrize("name", ["occupancy", "roofline"])
def test_without_counters_it_is_said(make_run, name):
    drawing = drawing_of(make_run(n=(10**6,), k=(100,)), name)
    assert drawing.figure is None
    assert "the run has no counters" in drawing.message


def test_roofline_by_hand(make_run):
    path = make_run(n=(10**6,), k=(100,), counters=True, ceilings=True)
    drawing = drawing_of(path, "roofline")
    rows = drawing.rows
    row = rows[
        rows["version"].eq("luigi_v1_fused")
        & rows["level"].eq("dram")
        & rows["kernel"].str.contains("assign")
    ].iloc[0]
    # 3 operations a point × cluster × dimension over 12 bytes a point
    assert row["operations_per_byte"] == pytest.approx(3 * 100 * 2 / 12)
    assert row["operations_per_second"] == pytest.approx(3 * 3e6 * 100 * 2 / row["seconds"])
    assert row["time_share"] == pytest.approx(1 / 1.02)
    said = words(drawing)
    assert {"DRAM 4.20 TB/s", "L2 9.00 TB/s", "L1 31.0 TB/s", "fp32 60.0 TFLOP/s"} <= set(said)


@pytest.mark.parametrize(
    ("measured_on", "said"), [("this one", "the machine"), ("one of the same model", "a GPU of")]
)
def test_the_roofline_says_whose_its_roofs_are(make_run, measured_on, said):
    path = make_run(n=(10**6,), k=(100,), counters=True, ceilings=True)
    file = path / "environment.json"
    environment = json.loads(file.read_text())
    environment["ceilings"] = {"gpu": {"file": "elsewhere", "measured_on": measured_on}}
    file.write_text(json.dumps(environment))
    notes = " ".join(words(drawing_of(path, "roofline")))
    assert f"Roofs: medians measured on {said}" in notes.replace("\n", " ")


def test_roofs_as_close_as_letters_share_a_text():
    levels = roofline._levels({"tf32": 4.0, "fp16": 7.6, "bf16": 7.9, "fp64": 3.9}, 1.1)
    assert levels == [[("bf16", 7.9), ("fp16", 7.6)], [("tf32", 4.0), ("fp64", 3.9)]]
    assert roofline._levels({"a": 1.0, "b": 1.09, "c": 1.15}, 1.1) == [
        [("c", 1.15), ("b", 1.09)],
        [("a", 1.0)],
    ]


def test_ceilings_of_another_gpu_are_not_used(make_run):
    path = make_run(n=(10**6,), k=(100,), counters=True, ceilings=True)
    file = path / "ceilings.json"
    file.write_text(file.read_text().replace("NVIDIA H200", "NVIDIA L4"))
    run = load_run(path)
    assert run.ceilings is None
    assert run.warnings == [f"{file}: ceilings of NVIDIA L4, the run is of NVIDIA H200; not used"]
    drawing = drawing_of(path, "roofline")
    assert any("No roofs" in word for word in words(drawing))


def test_a_run_that_names_only_its_cpus_ceilings_has_those(make_run, tmp_path):
    file = tmp_path / "elsewhere.json"
    file.write_text(json.dumps(ceilings("NVIDIA L4")))
    path = make_run(n=(10**6,), k=(100,))
    environment = json.loads((path / "environment.json").read_text())
    environment["ceilings"] = {"gpu": "no measured ceilings", "cpu": {"file": str(file)}}
    (path / "environment.json").write_text(json.dumps(environment))
    run = load_run(path)
    assert run.ceilings is None
    assert run.cpu_ceilings is not None
    assert run.warnings == []
    # a file of the same name, measured later or elsewhere
    for t_utc, used in ((ceilings(None)["t_utc"], True), ("2026-01-01T00:00:00.000Z", False)):
        environment["ceilings"]["cpu"] = {"file": str(file), "t_utc": t_utc}
        (path / "environment.json").write_text(json.dumps(environment))
        assert (load_run(path).cpu_ceilings is not None) == used


def test_a_machine_without_a_gpu_has_no_ceilings_of_one(tmp_path):
    (tmp_path / "ceilings.json").write_text('{"gpu": null, "cpu": {"model": "a"}, "ceilings": []}')
    told = []
    assert load_ceilings(tmp_path, {}, "", told) is None
    assert told == []
    assert load_ceilings(tmp_path, {}, "NVIDIA H200", told) is None
    assert "ceilings of no GPU" in told[0]


@pytest.mark.parametrize("text", ["{", "[]", '{"ceilings": 3}', '{"ceilings": [{"name": 3}]}'])
def test_a_broken_file_of_ceilings_is_said(make_run, text):
    path = make_run(n=(10**6,), k=(100,))
    (path / "ceilings.json").write_text(text)
    run = load_run(path)
    assert run.ceilings is None
    assert len(run.warnings) == 1
    assert "ceilings.json: " in run.warnings[0]


def test_a_counter_of_two_presets_counts_once(make_run):
    point = next(p for p in point_rows_of("luigi_v1_fused"))
    rows = counter_rows(point)
    again = [{**row, "preset": "speed_of_light"} for row in rows if row["unit"] == "ns"]
    path = make_run(n=(10**6,), k=(100,))
    write_lines(path / "counters.jsonl", [*rows, *again])
    table = by_kernel(load_run(path).counters)
    # a mean over 3 launches
    assert table["seconds"].max() == pytest.approx(3 * point["ms"] * 0.8e-3)
    assert len(table) == 2


def point_rows_of(version):
    from made_runs import Sweep

    return [p for p in point_rows(Sweep(n=(10**6,), k=(100,))) if p["version"] == version]


@pytest.mark.parametrize(
    ("kernel", "name"),
    [
        ("void lloyd::(anonymous namespace)::assign<2>(float const*, int)", "assign"),
        ("reduce", "reduce"),
        ("void cub::DeviceRadixSortKernel<x<y>, int>(z*)", "DeviceRadixSortKernel"),
    ],
)
def test_kernels_have_short_names(kernel, name):
    assert short_name(kernel) == name


def with_spec(path, inertia, **data):
    spec = json.loads((path / "spec.resolved.json").read_text())
    spec["data"] = {"generator": "uniform", "seed": 42, **data}
    spec["solve"] = {"init": "random_points", "seed": 1, "iterations": 20}
    (path / "spec.resolved.json").write_text(json.dumps(spec))
    file = path / "measurements.jsonl"
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    write_lines(file, [{**row, "inertia": inertia} for row in rows])
    return path


def test_the_clustering_is_computed_anew_and_must_be_the_one_that_was_measured(make_run):
    points = generate("uniform", 10_000, 2, 42)
    path, labels = lloyd(points, random_points(points, 5, 1), 20)
    inertia = float(((points - path[-1][assign(points, path[-1])]) ** 2).sum())
    good = with_spec(make_run("a", n=(10_000,), k=(5,)), inertia * (1 + 1e-6))
    drawing = drawing_of(good, "clustering")
    rows = drawing.rows
    assert len(rows) == 21 * 5
    last = rows[rows["iteration"].eq(20)]
    assert last[["x", "y"]].to_numpy() == pytest.approx(path[-1])
    assert last["points"].tolist() == np.bincount(labels).tolist()
    bad = with_spec(make_run("b", n=(10_000,), k=(5,)), inertia * 1.01)
    drawing = drawing_of(bad, "clustering")
    assert drawing.figure is None
    assert "another clustering, not drawn" in drawing.message


def test_the_clustering_is_that_of_the_best_seed(make_run):
    """Of seeds of points and of initial centroids, and beside a kind that is not computed here."""
    run = with_spec(make_run("a", n=(1000,), k=(5,)), 0)
    file = run / "measurements.jsonl"
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    several = []
    for data_seed, init_seed in ((42, 1), (7, 3), (7, 4)):
        points = generate("uniform", 1000, 2, data_seed)
        path, _ = lloyd(points, random_points(points, 5, init_seed), 20)
        inertia = float(((points - path[-1][assign(points, path[-1])]) ** 2).sum())
        several.append((inertia, data_seed, "random_points", init_seed, path[-1]))
    expected = min(several, key=lambda each: each[0])[-1]
    several.append((1e-3, 42, "kmeans++", 1, None))
    inputs = [
        {"inertia": inertia, "data_seed": data_seed, "init": init, "init_seed": init_seed}
        | {"end": f"/{data_seed}/{init}/{init_seed}", "schema": 3}
        for inertia, data_seed, init, init_seed, _ in several
    ]
    write_lines(
        file,
        [{**row, **each, "point": row["point"] + each["end"]} for row in rows for each in inputs],
    )
    last = drawing_of(run, "clustering").rows.query("iteration == 20")
    assert last[["x", "y"]].to_numpy() == pytest.approx(expected)
    write_lines(file, [{**row, **inputs[-1]} for row in rows])
    assert "init kmeans++ is not computed here" in drawing_of(run, "clustering").message


def test_clusterings_of_files_and_of_more_dimensions_are_not_drawn(make_run):
    path = with_spec(make_run("a", n=(10_000,), k=(5,)), 1.0, generator=None, file="a.csv")
    assert "the points are not generated" in drawing_of(path, "clustering").message
    path = with_spec(make_run("b", n=(10_000,), k=(5,), dim=(3,)), 1.0)
    assert (
        "no problem here has two dimensions, at most 100 clusters"
        in drawing_of(path, "clustering").message
    )
    path = with_spec(make_run("c", n=(10_000,), k=(5,)), 1.0, generator="sobol")
    assert "unknown generator 'sobol'" in drawing_of(path, "clustering").message


def test_lloyd_by_hand():
    points = np.array([[0.0], [1.0], [10.0], [11.0], [5.5]])
    path, labels = lloyd(points, np.array([[0.0], [11.0], [100.0]]), 2)
    # 5.5 is as far from 0 as from 11: the lower index has it; the third cluster stays empty
    assert path[1].ravel() == pytest.approx([6.5 / 3, 10.5, 100])
    assert labels.tolist() == [0, 0, 1, 1, 0]


@pytest.mark.parametrize("name", [name for name in FIGURES if name not in ("dims", "clustering")])
def test_two_gpus_stay_apart_within_the_page(make_run, name):
    everything = {
        "counters": True,
        "ceilings": True,
        "floors": True,
        "convergence": True,
        "k": (100,),
        "n": (10**6,),
    }
    paths = [make_run("a", **everything)]
    paths.append(make_run("b", gpu="NVIDIA GeForce RTX 5080", gpu_speed=0.25, **everything))
    runs = [load_run(path) for path in paths]
    drawing = draw(name, gather(runs, "cpu_sequential"), subject(runs))
    assert drawing.rows["machine"].nunique() == 2
    renderer = FigureCanvasAgg(drawing.figure).get_renderer()
    drawing.figure.draw(renderer)
    for text in drawing.figure.findobj(match=lambda a: hasattr(a, "get_text")):
        if text.get_text().strip() and text.get_visible():
            box = text.get_window_extent(renderer)
            assert -1 <= box.x0 < box.x1 <= drawing.figure.bbox.width + 1, text.get_text()


def test_intensity_over_the_ridge_says_what_bounds_a_kernel(make_run):
    path = make_run(n=(10**6,), k=(100,), counters=True, ceilings=True)
    place = Place(n=10**6, k=100, dim=2)
    rows = Rows(load_run(path))
    # 3 operations a point × cluster × dimension over 4 bytes of it in the L1; 60 TFLOP/s, 31 TB/s
    assert evaluate("intensity('luigi_v1_fused', 'l1')", rows, place).value == pytest.approx(0.75)
    assert evaluate("ridge('fp32', 'l1')", rows, place).value == pytest.approx(60 / 31)
    bound = evaluate("intensity('luigi_v1_fused', 'l1') / ridge('fp32', 'l1')", rows, place)
    assert bound.value == pytest.approx(0.75 * 31 / 60)
    with pytest.raises(MissingError, match="no measured ceilings of fp16 tensor and l1"):
        evaluate("ridge('fp16 tensor', 'l1')", rows, place)
