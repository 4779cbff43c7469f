"""The sentences that stand for figures."""

import json

import pandas as pd
from drawn import drawing_of, words
from made_runs import write_lines

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
