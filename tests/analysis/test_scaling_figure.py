"""The figure of strong and weak scaling: what is divided by what."""

import json

import pytest
from drawn import drawing_of, words
from made_runs import write_lines

from analysis.measures.points import gather
from analysis.model.load import load_run


def test_strong_scaling_by_hand(make_run):
    path = make_run(n=(10**6,), k=(30,), dim=(20,), threads=(1, 2, 4))
    drawing = drawing_of(path, "scaling")
    rows = drawing.rows.set_index("workers")
    points = gather([load_run(path)], "cpu_sequential").points
    base = points.loc[points["version"].eq("cpu_sequential"), "iteration_ms"].iloc[0]
    own = points[points["version"].eq("cpu_openmp") & points["threads"].eq(4)]
    assert rows.loc[4.0, "speedup"] == pytest.approx(base / own["iteration_ms"].iloc[0])
    assert rows.loc[4.0, "efficiency"] == pytest.approx(rows.loc[4.0, "speedup"] / 4)
    assert set(rows["kind"]) == {"strong"}
    titles = [axes.get_title(loc="left").replace("\n", " ") for axes in drawing.figure.axes]
    assert titles == [
        "Strong: N = 10⁶, K = 30, dim 20, speedup",
        "Strong: N = 10⁶, K = 30, dim 20, efficiency",
    ]


def test_weak_scaling_is_found_where_n_grows_with_the_workers(make_run):
    odd = [
        (lambda p: p["version"] == "cpu_openmp" and p["n"] != 10**5 * p["threads"], "not run", "")
    ]
    sizes = (10**5, 2 * 10**5, 4 * 10**5)
    path = make_run(n=sizes, k=(30,), threads=(1, 2, 4), threads_per_block=(256,), faults=odd)
    rows = drawing_of(path, "scaling").rows
    assert set(rows["kind"]) == {"weak"}
    rows = rows.set_index("workers")
    expected = rows.loc[1.0, "iteration_ms"] / rows.loc[4.0, "iteration_ms"]
    assert rows.loc[4.0, "efficiency"] == pytest.approx(expected)


def test_two_zipped_sizes_are_weak_scaling(make_run):
    """On a machine with two cores there are no more."""
    odd = [
        (lambda p: p["version"] == "cpu_openmp" and p["n"] != 10**5 * p["threads"], "not run", "")
    ]
    sizes = {"n": (10**5, 2 * 10**5), "k": (30,), "threads_per_block": (256,)}
    drawing = drawing_of(make_run(**sizes, threads=(1, 2), faults=odd), "scaling")
    assert drawing.rows["kind"].tolist() == ["weak", "weak"]
    # a sweep over sizes and threads has points of one share by chance: 1e5 / 1 and 2e5 / 2
    crossed = drawing_of(make_run("crossed", **sizes, threads=(1, 2)), "scaling")
    assert set(crossed.rows["kind"]) == {"strong"}
    lost = [*odd, (lambda p: p["threads"] == 2 and p["n"] == 2 * 10**5, "not run", "")]
    apart = [(lambda p: p["threads"] == 2 and p["n"] != 10**5, "not run", ""), *lost[1:]]
    apart += [(lambda p: p["threads"] == 1 and p["n"] == 10**5, "not run", "")]
    drawing = drawing_of(make_run("apart", **sizes, threads=(1, 2), faults=apart), "scaling")
    assert "no problem was solved with several numbers of threads" in drawing.message


def test_a_point_over_itself_has_no_interval(make_run):
    path = make_run(n=(10**6,), k=(30,), threads=(1, 2), baseline=None)
    own = drawing_of(path, "scaling").rows.set_index("workers")
    assert own.loc[1.0, "speedup"] == 1
    assert own.loc[1.0, ["speedup_low", "speedup_high"]].isna().all()
    assert own.loc[2.0, ["speedup_low", "speedup_high"]].notna().all()


def test_the_small_print_of_scaling_counts_the_baseline(make_run):
    path = make_run(n=(10**6,), k=(30,), threads=(1, 2))
    file = path / "measurements.jsonl"
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    for row in rows:
        row["noisy"] = row["version"] == "cpu_sequential"
    write_lines(file, rows)
    assert "noisy: 1 point" in " ".join(words(drawing_of(path, "scaling")))


def test_several_gpus_are_compared_with_the_version_for_one(make_run):
    sizes = {"n": (8 * 10**6,), "k": (1024,), "dim": (128,), "threads": (1,), "baseline": None}
    path = make_run(**sizes, gpus=(1, 2, 4))
    drawing = drawing_of(path, "scaling")
    rows = drawing.rows.set_index("workers")
    points = gather([load_run(path)], "").points
    single = points.loc[points["version"].eq("fast_wgmma"), "iteration_ms"].iloc[0]
    assert set(rows["over"]) == {"fast_wgmma"}
    for gpus in (1, 2, 4):
        own = points[points["version"].eq("multi_wgmma") & points["gpus"].eq(gpus)]
        speedup = single / own["iteration_ms"].iloc[0]
        assert rows.loc[gpus, "speedup"] == pytest.approx(speedup)
        assert rows.loc[gpus, "efficiency"] == pytest.approx(speedup / gpus)
    assert rows.loc[1, "efficiency"] < 1
    said = " ".join(text.get_text() for text in drawing.figure.texts).replace("\n", " ")
    assert "Speedup over fast_wgmma, the version for one GPU; efficiency: speedup by GPUs" in said
    assert {axes.get_xlabel() for axes in drawing.figure.axes} == {"GPUs"}
    # one number of GPUs suffices beside the version for one, and none does without it
    assert drawing_of(make_run("two", **sizes, gpus=(2,)), "scaling").rows["workers"].tolist() == [
        2
    ]
    alone = [(lambda p: p["version"] == "fast_wgmma", "not run", "")]
    drawing = drawing_of(make_run("alone", **sizes, gpus=(2,), faults=alone), "scaling")
    assert drawing.figure is None


def test_weak_scaling_of_gpus_needs_two_sizes_and_the_version_for_one(make_run):
    def other(point):
        several = point["version"] == "multi_wgmma" and point["n"] != 10**8 * point["gpus"]
        return several or (point["version"] == "fast_wgmma" and point["n"] != 10**8)

    sizes = {"n": (10**8, 2 * 10**8), "k": (64,), "threads": (1,), "baseline": None}
    path = make_run(**sizes, gpus=(1, 2), faults=[(other, "not run", "")])
    drawing = drawing_of(path, "scaling")
    rows = drawing.rows.set_index("workers")
    points = gather([load_run(path)], "").points
    points = points[points["status"].eq("ok")]
    single = points.loc[points["version"].eq("fast_wgmma"), "iteration_ms"].iloc[0]
    both = points.loc[points["gpus"].eq(2), "iteration_ms"].iloc[0]
    assert set(rows["kind"]) == {"weak"}
    assert rows.loc[2, "efficiency"] == pytest.approx(single / both)
    assert "100,000,000 points per GPU" in rows["problem"].iloc[0].replace("10⁸", "100,000,000")
    said = " ".join(text.get_text() for text in drawing.figure.texts).replace("\n", " ")
    assert "efficiency is T(1) / T(GPUs). T(1) is that of fast_wgmma, the version for one" in said


def test_scaling_of_a_run_without_workers_says_so(make_run):
    drawing = drawing_of(make_run(n=(10**6,), k=(30,), threads=(4,)), "scaling")
    assert drawing.figure is None
    assert "several numbers of threads" in drawing.message


def test_a_parallel_baseline_counts_with_its_fewest_workers(make_run):
    path = make_run(n=(10**6,), k=(30,), dim=(20,), threads=(1, 2, 4), baseline="cpu_openmp")
    file = path / "measurements.jsonl"
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    rows = [row for row in rows if row["version"] == "cpu_openmp" and row["threads"] != 1]
    own = [
        {**row, "version": "cpu_pthreads", "point": f"cpu_pthreads/threads:{row['threads']}"}
        for row in rows
    ]
    write_lines(file, rows + own)
    (path / "plan.json").unlink()
    at = drawing_of(path, "scaling").rows.set_index("workers")
    assert at["over_workers"].eq(2).all()
    assert at.loc[2, "efficiency"] == pytest.approx(1)
    assert at.loc[4, "efficiency"] == pytest.approx(at.loc[4, "speedup"] / 2)


def test_the_ideal_begins_where_the_fewest_workers_are(make_run):
    path = make_run(n=(10**6,), k=(100,))
    file = path / "measurements.jsonl"
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    one = [row for row in rows if row["version"] == "cpu_openmp"]
    one = [row for row in one if row["point"] == one[0]["point"]]
    scaled = [
        {
            **row,
            "version": "cpu_pthreads",
            "threads": threads,
            "point": f"cpu_pthreads/threads:{threads}",
            "iteration_ms": row["iteration_ms"] * 4 / threads,
        }
        for threads in (4, 8, 16)
        for row in one
    ]
    write_lines(file, scaled)
    (path / "plan.json").unlink()
    drawing = drawing_of(path, "scaling")
    at = drawing.rows.set_index("workers")
    assert at["over_workers"].eq(4).all()
    assert at.loc[16, "speedup"] == pytest.approx(4)
    speedup = drawing.figure.axes[0]
    dashed = [line for line in speedup.lines if line.get_linestyle() == "--"]
    assert [list(line.get_xydata()[-1]) for line in dashed] == [[16, 4]]
    assert "Speedup over 4 workers of the same version" in " ".join(words(drawing))


def on_nodes(path, node_of):
    """Gives each row of a run the node that `node_of` returns for it."""
    file = path / "measurements.jsonl"
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    write_lines(file, [{**row, "schema": 3, "node": node_of(row)} for row in rows])
    return path


def test_a_point_is_not_drawn_over_itself_because_its_baseline_ran_elsewhere(make_run):
    sizes = {"n": (10**5, 10**6), "k": (30,), "threads": (1, 2), "threads_per_block": (256,)}
    moved = on_nodes(
        make_run("moved", **sizes),
        lambda row: "a2" if row["version"] == "cpu_openmp" and row["n"] == 10**6 else "a1",
    )
    drawing = drawing_of(moved, "scaling")
    rows = drawing.rows
    assert set(rows.loc[rows["version"].eq("cpu_openmp"), "n"]) == {10**5}
    assert "cpu_sequential ran on a1, this point on a2" in " ".join(words(drawing))


def test_a_line_that_two_nodes_share_is_missed_with_its_reason(make_run):
    sizes = {"n": (10**5, 10**6), "k": (30,), "threads": (1, 2), "threads_per_block": (256,)}
    split = on_nodes(
        make_run("split", **sizes, baseline=None),
        lambda row: "a2" if row["threads"] == 2 and row["n"] == 10**6 else "a1",
    )
    drawing = drawing_of(split, "scaling")
    assert set(drawing.rows["n"]) == {10**5}
    assert "ran on a2, this on a1" in " ".join(words(drawing))
    assert "ran on a1, this on a2" in " ".join(words(drawing))
