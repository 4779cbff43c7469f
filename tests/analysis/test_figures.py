import json
import re
import time
import xml.etree.ElementTree as ET
from pathlib import Path

import matplotlib.image
import numpy as np
import pandas as pd
import pytest
from drawn import drawing_of
from made_runs import HOST, Sweep, measurement, point_rows, realistic_faults, write_lines
from matplotlib.backends.backend_agg import FigureCanvasAgg

from analysis.__main__ import main
from analysis.figures import FIGURES, style
from analysis.figures.notes import no_result
from analysis.figures.typeset import text_width
from analysis.measures.families import LIBRARIES
from analysis.measures.points import all_points
from analysis.model.load import load_run
from analysis.model.numbers import number_text
from analysis.model.words import AXES
from analysis.pages.findings import finding
from analysis.pages.tables import every_point_cells, headline


def texts(figure):
    return [text.get_text() for text in figure.findobj(match=lambda a: hasattr(a, "get_text"))]


def small_print(drawing):
    return " ".join(" ".join(texts(drawing.figure)).split())


def test_figures_writes_what_the_spec_asks_for_and_says_where(make_run, capsys):
    path = make_run(k=(5,), figures=["speedup", "of_tomorrow", "tpb"])
    assert main(["figures", str(path)]) == 0
    out, err = capsys.readouterr()
    expected = [
        path / "figures" / f"{name}.{ending}"
        for name in ("speedup", "tpb")
        for ending in ("svg", "png", "csv")
    ]
    assert out.splitlines() == [str(p) for p in expected]
    assert err == "of_tomorrow: this version does not draw this figure\n"
    assert ET.parse(expected[0]).getroot().tag.endswith("svg")
    height, width, _ = matplotlib.image.imread(expected[1]).shape
    assert width >= 7 * 200
    assert height >= 3 * 200


def test_the_csv_holds_the_speedups_computed_by_hand(make_run):
    path = make_run(n=(10_000, 100_000), k=(5,))
    main(["figures", str(path), "--only", "speedup"])
    table = pd.read_csv(path / "figures" / "speedup.csv")

    rows = [json.loads(line) for line in (path / "measurements.jsonl").read_text().splitlines()]
    medians = {}
    for row in rows:
        medians.setdefault(row["point"], []).append(row["iteration_ms"])
    medians = {point: float(np.median(times)) for point, times in medians.items()}
    assert len(table) == len(medians) == 40
    for _, row in table.iterrows():
        base = medians[f"cpu_sequential/n:{row['n']}/k:5/dim:2/precision:fp32"]
        assert row["iteration_ms"] == pytest.approx(medians[row["point"]], rel=1e-12)
        assert row["baseline_iteration_ms"] == pytest.approx(base, rel=1e-12)
        assert row["speedup"] == pytest.approx(base / medians[row["point"]], rel=1e-12)
        if row["version"] != "cpu_sequential":
            assert row["speedup_low"] < row["speedup"] < row["speedup_high"]
    # of each version and N one point is in the picture: its fastest
    drawn = table[table["drawn"]]
    assert len(drawn) == 5 * 2
    best = table[table["version"] != "cpu_sequential"].groupby(["version", "n"])["iteration_ms"]
    assert sorted(drawn["iteration_ms"]) == sorted(best.min())


def test_the_speedup_lines_are_at_the_values_of_the_csv(make_run):
    drawing = drawing_of(make_run(k=(5,)), "speedup")
    line = drawing.rows[drawing.rows["drawn"] & drawing.rows["version"].eq("luigi_v2_split")]
    (axes,) = drawing.figure.axes
    drawn = [tuple(zip(*of.lines[0].get_data(), strict=True)) for of in axes.containers]
    assert tuple(zip(line["n"].astype(float), line["speedup"], strict=True)) in drawn
    assert len(drawn) == 5
    assert axes.get_xscale() == axes.get_yscale() == "log"


def test_the_baseline_is_named_with_its_absolute_times(make_run):
    drawing = drawing_of(make_run(k=(5,)), "speedup")
    words = texts(drawing.figure)
    assert "speedup over cpu_sequential" in words
    assert "grey: cpu_sequential, ms per iteration" in words
    times = drawing.rows.drop_duplicates("n")["baseline_iteration_ms"]
    assert {number_text(t) for t in times} <= set(words)


def test_the_fastest_cpu_version_is_named_in_figure_table_and_text(make_run):
    path = make_run(k=(5,), baseline="best:cpu")
    drawing = drawing_of(path, "speedup")
    # the model's cpu_openmp is faster than cpu_sequential everywhere
    assert "speedup over cpu_openmp" in texts(drawing.figure)
    assert "cpu_openmp is the fastest CPU version of every problem here." in small_print(drawing)
    assert set(drawing.rows["baseline"]) == {"cpu_openmp"}
    assert not drawing.rows.loc[drawing.rows["version"].eq("cpu_openmp"), "drawn"].any()
    said = headline(load_run(path), all_points([load_run(path)], "best:cpu")).markdown()
    assert "speedup over `cpu_openmp`, the fastest CPU version here" in said


def test_a_slow_cpu_baseline_has_a_second_denominator(make_run):
    drawing = drawing_of(make_run(k=(5,)), "speedup")
    drawn = drawing.rows[drawing.rows["drawn"]].set_index(["version", "n"])
    best = drawn.loc[drawn["speedup"].idxmax()]
    times = drawn.loc[("cpu_openmp", best.name[1]), "iteration_ms"] / best["iteration_ms"]
    said = finding("speedup", drawing.rows, "title")
    assert (
        f"Over cpu_openmp, the fastest CPU version there, it is {number_text(times)} times." in said
    )
    assert f"is cpu_openmp: {number_text(times)}× over that." in small_print(drawing)
    # not where the baseline is the fastest, nor where it is no CPU version
    for baseline in ("cpu_openmp", "luigi_v1_fused", "best:cpu"):
        drawing = drawing_of(make_run(f"over {baseline}", k=(5,), baseline=baseline), "speedup")
        assert "over that." not in small_print(drawing)
        assert "it is" not in finding("speedup", drawing.rows, "title")


def test_dots_of_one_problem_show_both_denominators(make_run):
    drawing = drawing_of(make_run(n=(10_000,), k=(5,)), "speedup")
    drawn = drawing.rows[drawing.rows["drawn"]].set_index("version")
    (axes,) = drawing.figure.axes
    cpu = drawn.loc["cpu_openmp"]
    at = [line.get_xdata()[0] for line in axes.lines if len(set(line.get_xdata())) == 1]
    assert cpu["speedup"] in at
    words = texts(drawing.figure)
    assert "over\ncpu_openmp" in words
    gpus = drawn[drawn["backend"] == "cuda"]
    over = {f"{number_text(cpu['iteration_ms'] / ms)}×" for ms in gpus["iteration_ms"]}
    assert over
    assert over <= set(words)
    # one denominator where the baseline is the fastest CPU version
    drawing = drawing_of(make_run("fastest", n=(10_000,), k=(5,), baseline="cpu_openmp"), "speedup")
    assert not [word for word in texts(drawing.figure) if word.startswith("over\n")]


def test_several_fastest_cpu_versions_are_named_with_their_problems(make_run):
    def fails_at_small_n(row):
        return row["version"] == "cpu_openmp" and row["n"] < 1_000_000

    faults = [(fails_at_small_n, "failed", "out of luck")]
    path = make_run(k=(5,), baseline="best:cpu", faults=faults)
    drawing = drawing_of(path, "speedup")
    assert "speedup over the fastest CPU version" in texts(drawing.figure)
    told = "The fastest CPU version (problems): cpu_sequential (2), cpu_openmp (2); speedup.csv"
    assert told in small_print(drawing)
    over = drawing.rows[drawing.rows["drawn"]].groupby("n")["baseline"].unique()
    assert [list(names) for names in over] == [["cpu_sequential"]] * 2 + [["cpu_openmp"]] * 2
    said = finding("speedup", drawing.rows, "title")
    assert said.startswith("Over the fastest CPU version of each problem (cpu_openmp), ")
    points = all_points([load_run(path)], "best:cpu")
    header, cells = every_point_cells(points)
    assert header[-1] == "over"
    assert {row[-1] for row in cells.values()} == {"cpu_sequential", "cpu_openmp"}


def test_the_libraries_among_the_studies_versions_exist():
    folder = Path(__file__).parents[2] / "kernels" / "python"
    assert {*LIBRARIES} <= {file.stem for file in folder.glob("python_*.py")}


def test_a_run_of_cpu_versions_names_the_nearest_library():
    def row(version, k, speedup):
        problem = {"machine": "m", "n": 10**6, "k": k, "dim": 2, "precision": "fp32", "data": ""}
        return {
            **problem,
            "version": version,
            "baseline": {5: "fast_cpu_simd", 100: "fast_cpu_tree"}[k],
            "speedup": speedup,
            "iteration_ms": 1 / speedup,
        }

    rows = [row("fast_cpu_simd", 5, 1.0), row("python_sklearn", 5, 0.5), row("peer_it", 5, 0.4)]
    rows += [row("fast_cpu_tree", 100, 1.0), row("fast_cpu_simd", 100, 0.9)]
    said = finding("speedup", pd.DataFrame(rows), "title")
    assert said == (
        "Of 2 problems the fastest version is fast_cpu_simd at 1, fast_cpu_tree at 1. Of the "
        "libraries, python_sklearn comes nearest: it takes 2.00 times as long at N = 10⁶, K = 5, "
        "dim 2, fp32."
    )


def test_there_is_a_panel_for_each_k_and_dim(make_run):
    drawing = drawing_of(make_run(k=(5, 100), dim=(2, 8)), "speedup")
    titles = [axes.get_title(loc="left") for axes in drawing.figure.axes]
    assert titles == ["K = 5, dim 2", "K = 5, dim 8", "K = 100, dim 2", "K = 100, dim 8"]


def test_points_without_a_result_are_listed_under_the_figure_and_in_the_csv(make_run):
    drawing = drawing_of(make_run(faults=realistic_faults()), "speedup")
    said = small_print(drawing)
    assert "Without result: 23 of 240 points." in said
    assert (
        "luigi_v3_shared_centroids unsupported at k=1,000 (16 points): needs 96,000 B of shared "
        "memory per block, device allows 49,152 B (static)"
    ) in said
    assert "cpu_openmp timeout at n=10⁷, k=1,000 (3 points): ended after 600 s" in said
    bad = drawing.rows[drawing.rows["status"] != "ok"]
    assert len(bad) == 23
    assert not bad["drawn"].any()
    assert bad["speedup"].isna().all()
    assert bad["reason"].notna().all()


def test_an_incorrect_point_is_never_drawn(make_run):
    wrong = [(lambda p: p["version"] == "luigi_v4_device_update", "incorrect", "17 labels differ")]
    drawing = drawing_of(make_run(k=(5,), faults=wrong), "speedup")
    assert len(drawing.figure.axes[0].containers) == 4
    assert "luigi_v4_device_update incorrect (16 points): 17 labels differ" in small_print(drawing)


def test_points_that_were_never_run_are_listed(make_run):
    cut = [(lambda p: p["n"] == 10**7, "not run", "")]
    said = small_print(drawing_of(make_run(k=(5,), faults=cut), "speedup"))
    assert "Without result: 20 of 80 points." in said
    assert "not run at n=10⁷ (20 points): the run ended before it" in said


def test_a_version_without_its_baseline_is_listed(make_run):
    cut = [(lambda p: p["version"] == "cpu_sequential" and p["n"] == 10**7, "timeout", "600 s")]
    drawing = drawing_of(make_run(k=(5,), faults=cut), "speedup")
    said = small_print(drawing)
    assert "Without result: 1; without a speedup: 19; of 80 points." in said
    assert (
        "without a speedup at n=10⁷ (19 points): cpu_sequential has no result for this problem "
        "on this machine"
    ) in said
    assert drawing.rows[drawing.rows["drawn"]]["n"].max() == 10**6


def test_many_reasons_are_summarised_within_the_page(make_run):
    faults = [
        (lambda p, i=i: p["threads_per_block"] == 128 << i and p["k"] > 5, status, why)
        for i, (status, why) in enumerate(
            [
                ("failed", "worker {n} ended by signal 11 at " + "0x7f" * 200),
                ("timeout", "ended after {k} s"),
                ("incorrect", "{n} of {k} labels differ"),
            ]
        )
    ]
    path = make_run(faults=faults)
    points = all_points([load_run(path)], "cpu_sequential")
    lines = no_result(points, "speedup.csv")
    assert lines[0] == "Without result: 96 of 240 points. Each one is in speedup.csv."
    assert len(lines) <= 9
    assert all(text_width(line) <= style.WIDTH for line in lines)
    # each kind counts its points, and together they are all
    counts = re.findall(r"\((\d+) points\)", " ".join(" ".join(lines).split()))
    assert counts == ["32", "32", "32"]
    assert "ended after 100 s" in " ".join(" ".join(lines).split())


def test_more_kinds_than_lines_are_counted():
    frame = pd.DataFrame(
        {
            "version": [f"v{i}" for i in range(30)],
            "status": "failed",
            "reason": [f"{'abcdefghijklmnopqrstuvwxyzABCD'[i]} broke" for i in range(30)],
            **dict.fromkeys(["n", "k", "dim", "precision", "machine"], 1),
            **dict.fromkeys(AXES),
        }
    )
    lines = no_result(frame, "x.csv")
    assert len(lines) == 9
    assert lines[-1] == "… and 23 more kinds."


@pytest.mark.parametrize("name", list(FIGURES))
@pytest.mark.parametrize(
    "values",
    [
        {},
        {"k": (5,)},
        {"k": (5, 100), "n": (10_000,)},
        {"dim": (2, 8, 20)},
        {"n": tuple(range(10_000, 100_000, 10_000)), "k": (5,)},
    ],
)
def test_no_text_overflows_the_page_or_is_too_small_to_print(make_run, name, values):
    everything = {"counters": True, "ceilings": True, "floors": True, "convergence": True}
    drawing = drawing_of(make_run(faults=realistic_faults(), **everything, **values), name)
    if (figure := drawing.figure) is None:
        assert name in ("dims", "clustering")  # need several dim and K, and a generator
        return
    renderer = FigureCanvasAgg(figure).get_renderer()
    figure.draw(renderer)
    assert figure.get_figwidth() == 7.0
    for text in figure.findobj(match=lambda a: hasattr(a, "get_text")):
        if not text.get_text().strip() or not text.get_visible():
            continue
        assert text.get_fontsize() >= 7
        box = text.get_window_extent(renderer)
        assert box.x0 >= -1, text.get_text()
        assert box.x1 <= figure.bbox.width + 1, text.get_text()
        assert box.y0 >= -1, text.get_text()


def test_line_labels_do_not_overlap(make_run):
    figure = drawing_of(make_run(), "speedup").figure
    renderer = FigureCanvasAgg(figure).get_renderer()
    labels = [t for t in figure.texts if t.get_text().startswith(("luigi", "cpu_"))]
    labels = [t for t in labels if "points)" not in t.get_text()]
    boxes = [t.get_window_extent(renderer) for t in labels]
    assert len(boxes) == 3 * 6
    for i, box in enumerate(boxes):
        for other in boxes[:i]:
            apart = min(box.x1, other.x1) <= max(box.x0, other.x0) or (
                min(box.y1, other.y1) - max(box.y0, other.y0) < 1.5
            )
            assert apart


def test_a_version_has_the_same_colour_in_every_figure(make_run):
    path = make_run(k=(5,), n=(10_000, 100_000))

    def colours(name):
        return {
            text.get_text(): text.get_color()
            for text in drawing_of(path, name).figure.texts
            if text.get_text().startswith("luigi") and "\n" not in text.get_text()
        }

    tpb = colours("tpb")
    assert len(tpb) == 2
    assert tpb.items() <= colours("speedup").items()


def test_one_n_draws_points_not_lines(make_run):
    drawing = drawing_of(make_run(n=(1_000_000,), k=(5,)), "speedup")
    (axes,) = drawing.figure.axes
    assert len(axes.containers) == 5
    assert all(of.lines[0].get_linestyle() == "None" for of in axes.containers)
    assert "K = 5, N = 10⁶" in texts(drawing.figure)
    fast = drawing.rows[drawing.rows["drawn"]]["speedup"].max()
    assert f"{number_text(fast)}×" in texts(drawing.figure)


def test_problems_of_one_n_each_draw_points_not_lines(make_run):
    path = make_run(n=(10_000, 1_000_000), k=(5, 100))
    kept = {(10_000, 5), (1_000_000, 100)}
    file = path / "measurements.jsonl"
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    write_lines(file, [row for row in rows if (row["n"], row["k"]) in kept])
    (path / "plan.json").unlink()
    drawing = drawing_of(path, "speedup")
    titles = [axes.get_title(loc="left") for axes in drawing.figure.axes]
    assert titles == ["K = 5, N = 10⁴", "K = 100, N = 10⁶"]
    for axes in drawing.figure.axes:
        assert all(of.lines[0].get_linestyle() == "None" for of in axes.containers)


def test_tpb_draws_medians_against_threads_per_block(make_run):
    drawing = drawing_of(make_run(n=(10_000,), k=(5, 100)), "tpb")
    assert [a.get_title(loc="left") for a in drawing.figure.axes] == [
        "K = 5, N = 10⁴",
        "K = 100, N = 10⁴",
    ]
    rows = drawing.rows[drawing.rows["k"].eq(5) & drawing.rows["version"].eq("luigi_v1_fused")]
    x, y = drawing.figure.axes[0].containers[0].lines[0].get_data()
    assert list(x) == [128, 256, 512, 1024]
    assert list(y) == rows["iteration_ms"].tolist()
    low, high = (
        c.get_segments()[0][:, 1] for c in drawing.figure.axes[0].containers[0].lines[2][:1]
    ).__next__()
    assert (low, high) == pytest.approx(
        (rows["iteration_ms_low"].iloc[0], rows["iteration_ms_high"].iloc[0])
    )
    assert drawing.rows["threads_per_block"].notna().all()


def test_tpb_of_one_number_of_threads_has_nothing_to_compare(make_run):
    drawing = drawing_of(make_run(n=(10_000,), k=(5,), threads_per_block=(256,)), "tpb")
    assert drawing.figure is None
    assert drawing.message.startswith("every version in this run has 256 threads per block")


def test_tpb_of_a_run_without_threads_per_block_says_so(make_run, capsys):
    path = make_run(k=(5,), threads_per_block=())
    assert main(["figures", str(path), "--only", "tpb"]) == 0
    assert capsys.readouterr().err == (
        "tpb: not drawn: no version in this run has threads per block\n"
    )
    assert not (path / "figures").exists()


def test_no_result_at_all_draws_nothing_and_lists_the_points(make_run, capsys):
    path = make_run(k=(5,), faults=[(lambda p: True, "failed", "out of memory")])
    assert main(["figures", str(path), "--only", "speedup"]) == 0
    out, err = capsys.readouterr()
    assert out == ""
    assert "speedup: not drawn: no point has a result\n  Without result: " in err
    assert "(80 points): out of memory" in err
    assert not (path / "figures").exists()


def test_only_the_baseline_has_a_result(make_run, capsys):
    path = make_run(
        k=(5,), faults=[(lambda p: p["version"] != "cpu_sequential", "failed", "no luck")]
    )
    assert main(["figures", str(path), "--only", "speedup"]) == 0
    assert "no version but the baseline, cpu_sequential, has a result" in capsys.readouterr().err


def test_without_a_baseline_the_speedup_is_not_drawn(make_run, capsys):
    path = make_run(k=(5,), baseline=None)
    assert main(["figures", str(path), "--only", "speedup"]) == 0
    assert "the spec names no baseline" in capsys.readouterr().err


def test_timing_bases_throttling_and_verification_are_in_the_small_print(make_run):
    path = make_run(k=(5,), throttled=lambda r: r["repetition"] == 3 and r["n"] == 10**7)
    file = path / "measurements.jsonl"
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    for row in rows:
        if row["version"] == "luigi_v1_fused":
            row["verified"] = None
        if row["version"] == "cpu_openmp" and row["n"] == 10**7:
            row["oversubscribed"] = True
    write_lines(file, rows)
    said = small_print(drawing_of(path, "speedup"))
    assert "luigi_v4_device_update by CUDA events; cpu_openmp, cpu_sequential by" in said
    assert "Throttled: 4 of 216 samples" in said
    assert "Not verified: 4 points." in said
    assert "Oversubscribed: 1 point ran more threads than there are cores." in said
    assert "median of 9 samples of one launch per point" in said


def test_few_samples_are_said_and_have_no_bar(make_run):
    drawing = drawing_of(make_run(k=(5,), repetitions=3), "speedup")
    assert "20 points without a bar: an interval needs 6 samples." in small_print(drawing)
    assert drawing.rows["speedup_low"][drawing.rows["drawn"]].isna().all()


def test_two_gpus_are_labelled_and_never_mixed(make_run, tmp_path, capsys):
    one = make_run("a", k=(5,))
    two = make_run("b", k=(5,), gpu="NVIDIA L4", gpu_speed=0.25)
    out = tmp_path / "out"
    assert main(["figures", str(one), str(two), "--only", "speedup", "--out", str(out)]) == 0
    assert "2 runs that must not be mixed (NVIDIA H200; NVIDIA L4)" in capsys.readouterr().err
    table = pd.read_csv(out / "speedup.csv")
    big = table[table["version"].eq("luigi_v2_split") & table["n"].eq(10**7) & table["drawn"]]
    fast, slow = big.sort_values("speedup", ascending=False)["speedup"]
    assert big["machine"].nunique() == 2
    assert fast / slow == pytest.approx(4, rel=0.05)


def test_foreign_text_is_shown_as_it_is(make_run):
    odd = "needs $x_1$ ^ {and} <tags> & \\frac\nover lines"
    path = make_run(k=(5,), title="a $b$ c_d", faults=[(lambda p: p["n"] == 10**7, "failed", "")])
    file = path / "measurements.jsonl"
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    write_lines(file, [{**r, "reason": odd} if r["status"] == "failed" else r for r in rows])
    drawing = drawing_of(path, "speedup")
    FigureCanvasAgg(drawing.figure).draw()
    assert "a $b$ c_d" in texts(drawing.figure)
    assert "needs $x_1$ ^ {and} <tags> & \\frac over lines" in small_print(drawing)


def test_the_same_rows_give_the_same_bytes(make_run, tmp_path):
    path = make_run(k=(5,))
    for folder in ("one", "two"):
        main(["figures", str(path), "--out", str(tmp_path / folder)])
    for file in (tmp_path / "one").iterdir():
        assert file.read_bytes() == (tmp_path / "two" / file.name).read_bytes()
    svg = (tmp_path / "one" / "speedup.svg").read_text()
    assert "<text" not in svg  # letters are paths: it looks the same where the font is missing
    assert str(time.localtime().tm_year) not in svg.split("<defs>")[0]
    assert HOST not in svg


def test_a_hundred_thousand_rows_take_seconds(tmp_path):
    points = list(
        point_rows(
            Sweep(
                n=tuple(10_000 * 2**i for i in range(10)),
                k=(2, 4, 8, 16, 32, 64),
                dim=(2, 8),
                threads_per_block=tuple(range(64, 1025, 64)),
            )
        )
    )
    random = np.random.default_rng(1)
    rows = [
        measurement(p, iteration_ms=p["ms"] * noise, repetition=i, repetitions=12)
        for p in points
        for i, noise in enumerate(1 + random.random(12) / 100)
    ]
    assert len(rows) > 97_000
    write_lines(tmp_path / "measurements.jsonl", rows)
    (tmp_path / "spec.resolved.json").write_text('{"baseline": "cpu_sequential"}')
    start = time.process_time()
    assert main(["figures", str(tmp_path), "--only", "speedup"]) == 0
    assert time.process_time() - start < 30  # a few seconds; CI machines are slow and shared


def test_what_is_said_about_scaling_leaves_out_more_threads_than_cores():
    line = {"version": "cpu_openmp", "series": "cpu_openmp", "over": "cpu_sequential"}
    line |= {"kind": "strong", "problem": "N = 10⁴"}
    rows = [line | {"workers": 16, "efficiency": 0.9, "oversubscribed": False}]
    rows += [line | {"workers": 16, "efficiency": 0.4, "problem": "N = 100"}]
    rows += [line | {"workers": 64, "efficiency": 0.1, "oversubscribed": True}]
    assert finding("scaling", pd.DataFrame(rows), "title") == (
        "With 16 workers cpu_openmp has an efficiency of 90% over cpu_sequential (strong scaling, "
        "N = 10⁴); the least is 40% (cpu_openmp, N = 100)."
    )
