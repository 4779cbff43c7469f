"""The sentences that stand for figures."""

import json

import pandas as pd
import pytest
from drawn import drawing_of, words
from made_runs import write_lines
from recorded_runs import RECORDED

from analysis.measures.speedups import fastest_cpu_beside
from analysis.pages.findings import finding


def test_a_phase_of_few_solves_is_not_what_takes_most(make_run):
    drawing = drawing_of(make_run(n=(10**6,), k=(100,)), "phases")
    rows = drawing.rows
    few = rows[rows["point"].eq(rows["point"].iloc[0])].head(1).assign(phase="rare")
    few["share_percent"] = 100.0
    assert rows["point"].nunique() > 2
    said = finding("phases", pd.concat([rows, few]), "title")
    assert "rare takes most" not in said
    assert "rare" not in said


def test_another_axis_than_threads_per_block_has_no_sentence_about_it(make_run):
    rows = drawing_of(make_run(), "tpb").rows
    assert "Threads per block matter most" in finding("tpb", rows, "title")
    assert "Threads per block" not in finding("tpb:samples_per_thread", rows, "title")


def test_a_step_is_slower_only_where_its_interval_says_so():
    steps = pd.DataFrame(
        {
            "version": ["a", "b", "c"],
            "parent": ["p", "a", "b"],
            "ratio": [2.0, 0.99, 0.8],
            "ratio_low": [1.9, 0.97, 0.7],
            "ratio_high": [2.1, 1.01, 0.9],
        }
    ).assign(n=100, k=5, dim=2, precision="fp32")
    said = finding("ladder", steps, "title")
    assert "1 step of 3 made it slower, most of all c (0.800 times the speed of b)." in said
    assert said.endswith("1 step cannot be told from no change.")
    said = finding("ladder", steps[:2], "title")
    assert "The largest step is from p to a: 2.00 times as fast" in said
    assert "made it slower" not in said
    said = finding("ladder", steps[1:], "title")
    assert "No step is faster. The nearest is from a to b: 0.990 times as fast" in said


def test_oversubscribed_points_are_not_the_nearest_to_the_floor():
    rows = pd.DataFrame(
        {"version": ["a", "b", "c"], "times_the_floor": [2.0, 3.0, 4.0]},
    ).assign(n=100, k=5, dim=2, precision="fp32", oversubscribed=[True, False, None])
    assert finding("floor", rows, "title").startswith("Nearest to the physical floor is b: 3.00")


def test_noise_of_what_a_speedup_names_is_said(make_run):
    rows = drawing_of(make_run(), "speedup").rows
    assert "noisy" not in finding("speedup", rows, "title")
    best = rows.loc[rows["speedup"].idxmax(), "version"]
    rows["noisy"] = rows["version"].eq(best).astype(object)
    assert f"{best} was noisy there." in finding("speedup", rows, "title")


def test_the_least_effect_of_threads_per_block_has_its_problem(make_run):
    said = finding("tpb", drawing_of(make_run(), "tpb").rows, "title")
    assert "N = " in said.split("They matter least to")[1]


def test_speedups_of_solves_of_different_lengths_say_so(make_run):
    path = make_run()
    said = " ".join(words(drawing_of(path, "speedup")))
    assert "numbers of iterations" not in said
    file = path / "measurements.jsonl"
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    for row in rows:
        row["iterations"] = 24 if row["version"] == "luigi_v1_fused" else 20
    write_lines(file, rows)
    said = " ".join(words(drawing_of(path, "speedup")))
    assert "different numbers of iterations, up to 20 and 24" in said


def test_an_efficiency_over_itself_does_not_stand_for_the_scaling():
    rows = pd.DataFrame(
        {
            "version": ["multi", "multi", "peer"],
            "series": ["multi", "multi", "peer"],
            "over": ["single", "single", "peer"],
            "workers": [1, 2, 2],
            "efficiency": [0.99, 0.9, 0.98],
        }
    ).assign(kind="strong", problem="N = 10⁶", oversubscribed=False)
    assert finding("scaling", rows, "title").startswith(
        "With 2 workers multi has an efficiency of 90% over single"
    )
    own = rows.assign(over=rows["version"])
    assert finding("scaling", own, "title").startswith(
        "With 2 workers peer has an efficiency of 98% over peer"
    )


def beside_a_chooser(auto, own, other=(3.0, 2.9, 3.1)):
    """Rows of fast_auto, which ran fast_grid, of fast_grid itself and of another version: each with
    its time and the interval of that."""
    columns = ["iteration_ms", "iteration_ms_low", "iteration_ms_high"]
    rows = pd.DataFrame([auto, own, other], columns=columns)
    rows = rows.assign(version=["fast_auto", "fast_grid", "fast_split"], backend="cuda")
    rows = rows.assign(chosen=["fast_grid/threads_per_block:256", None, None], drawn=True)
    rows = rows.assign(machine="GPU", host="a", n=1000, k=5, dim=2, batch=1, precision="fp32")
    rows = rows.assign(data="uniform", data_seed="", init="", init_seed="", verified=True)
    return rows.assign(
        baseline="cpu_openmp",
        baseline_iteration_ms=6.0,
        speedup=6.0 / rows["iteration_ms"],
        floor_ms=0.5,
        times_the_floor=rows["iteration_ms"] / 0.5,
        operations_per_second=1e9 / rows["iteration_ms"],
    )


def test_what_a_chooser_merely_ran_is_the_fastest():
    rows = beside_a_chooser((1.0, 0.9, 1.2), (1.5, 1.1, 1.6))
    assert finding("speedup", rows, "title").startswith(
        "Over cpu_openmp, fast_grid (which fast_auto chose) is the fastest: 4.00 times at "
    )
    assert finding("floor", rows, "title").startswith(
        "Nearest to the physical floor is fast_grid (which fast_auto chose): 3.00 times it"
    )
    assert finding("cpu_roofline", rows, "title").startswith(
        "fast_grid (which fast_auto chose) gets through the distances fastest"
    )


@pytest.mark.parametrize("own", [(1.5, 1.3, 1.6), (1.5, float("nan"), float("nan"))])
def test_a_chooser_that_was_faster_than_what_it_ran_is_named_with_it(own):
    rows = beside_a_chooser((1.0, 0.9, 1.2), own)
    assert finding("speedup", rows, "title").startswith(
        "Over cpu_openmp, fast_auto (which ran fast_grid) is the fastest: 6.00 times at "
    )
    # the CSV of an earlier recording does not say what it ran
    said = finding("speedup", rows.drop(columns="chosen"), "title")
    assert said.startswith("Over cpu_openmp, fast_auto is the fastest: 6.00 times at ")


def test_the_fastest_of_each_problem_is_the_version_that_did_the_work():
    overlap = beside_a_chooser((1.0, 0.9, 1.2), (1.5, 1.1, 1.6))
    apart = beside_a_chooser((1.0, 0.9, 1.2), (1.5, 1.3, 1.6)).assign(n=2000)
    behind = beside_a_chooser((1.5, 1.1, 1.6), (1.0, 0.9, 1.2)).assign(n=3000)
    rows = pd.concat([overlap, apart, behind], ignore_index=True)
    least = rows.groupby("n")["iteration_ms"].transform("min")
    rows["speedup"] = least / rows["iteration_ms"]
    rows["baseline"] = ["fast_auto"] * 6 + ["fast_grid"] * 3
    assert finding("speedup", rows, "title") == (
        "Of 3 problems the fastest version is fast_grid at 2, fast_auto at 1 (where it ran "
        "fast_grid). At 1 the least time is that of fast_auto, whose interval overlaps with that "
        "of the version that it ran."
    )


def test_the_fastest_cpu_version_beside_a_gpu_did_the_work_itself():
    rows = beside_a_chooser((1.0, 0.9, 1.2), (1.1, 1.0, 1.3))
    rows["version"] = ["fast_cpu_auto", "fast_cpu_simd", "luigi_v1_fused"]
    rows["chosen"] = ["fast_cpu_simd", None, None]
    rows["backend"] = ["cpu", "cpu", "cuda"]
    assert fastest_cpu_beside(rows.iloc[2], rows)["version"] == "fast_cpu_simd"
    rows["iteration_ms_low"] = rows["iteration_ms_high"] = rows["iteration_ms"]
    assert fastest_cpu_beside(rows.iloc[2], rows)["version"] == "fast_cpu_auto"


def test_a_figure_over_the_fastest_cpu_says_what_a_chooser_ran():
    drawing = drawing_of(RECORDED / "amd-epyc-2-cores" / "cpu_regimes", "speedup")
    said = " ".join(" ".join(words(drawing)).split())
    assert "fast_cpu_auto (1, where it ran fast_cpu_simd)" in said
