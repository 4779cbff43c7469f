import json
import re

import numpy as np
import pytest
import scipy.stats
from made_runs import measurement, write_lines

from analysis.__main__ import main
from analysis.compare import ALIKE, BASES, FASTER, FEW, GAINED, LOST, NEITHER, SLOWER, compare
from analysis.load import RunError, load_run
from analysis.stats import holm


def point(name):
    axes = ["threads_per_block", "samples_per_thread", "threads", "processes", "gpus"]
    of = {"point": name, "version": name, "family": "a", "backend": "cuda", "precision": "fp32"}
    return {**of, "n": 1000, "k": 4, "dim": 2, **dict.fromkeys(axes)}


@pytest.fixture
def write(tmp_path):
    """write(folder, {name: times or row values}) writes a run directory and returns its path."""

    def make(folder, points, gpu="NVIDIA H200", cpu="Xeon"):
        path = tmp_path / folder
        path.mkdir()
        rows = []
        for name, given in points.items():
            if isinstance(given, dict):
                rows.append(measurement(point(name), gpu=gpu, **given))
                continue
            rows += [
                measurement(
                    point(name), iteration_ms=t, repetition=i, repetitions=len(given), gpu=gpu
                )
                for i, t in enumerate(given)
            ]
        write_lines(path / "measurements.jsonl", rows)
        environment = {"gpus": [{"name": gpu}], "cpu": {"model": cpu}}
        (path / "environment.json").write_text(json.dumps(environment))
        return path

    return make


def noisy(median, count=12, seed=1):
    return (median * (1 + np.random.default_rng(seed).normal(0, 0.005, count))).tolist()


def verdicts(old, new, threshold=0.02, **options):
    table = compare(load_run(old), load_run(new), threshold, **options)
    return dict(zip(table["point"], table["verdict"], strict=True))


def test_slower_faster_and_alike(write):
    old = write("old", {"a": noisy(10), "b": noisy(10, seed=2), "c": noisy(10, seed=3)})
    new = write("new", {"a": noisy(11, seed=4), "b": noisy(9, seed=5), "c": noisy(10, seed=6)})
    assert verdicts(old, new) == {"a": SLOWER, "b": FASTER, "c": ALIKE}


def test_ratio_and_p_agree_with_scipy(write):
    a, b = noisy(10), noisy(10.05, seed=9)
    table = compare(load_run(write("old", {"x": a})), load_run(write("new", {"x": b})), 0.0)
    row = table.iloc[0]
    assert row["ratio"] == pytest.approx(np.median(b) / np.median(a))
    assert row["low"] < row["ratio"] < row["high"]
    assert row["p"] == scipy.stats.mannwhitneyu(a, b).pvalue


def test_a_difference_below_the_threshold_is_none(write):
    old, new = write("old", {"a": noisy(10)}), write("new", {"a": noisy(10.15, seed=2)})
    assert verdicts(old, new, 0.0) == {"a": SLOWER}
    assert verdicts(old, new, 0.05) == {"a": ALIKE}


def test_holm_by_hand():
    # 0.01 × 4, 0.03 × 2 raised to the 0.03 × 3 before it, …
    assert holm(np.array([0.01, 0.04, 0.03, 0.03])).tolist() == pytest.approx(
        [0.04, 0.09, 0.09, 0.09]
    )
    assert holm(np.array([0.5, 0.6])).tolist() == [1.0, 1.0]
    assert holm(np.array([])).tolist() == []


def test_runs_of_the_same_thing_rarely_differ(write):
    # without correction 1 in 20 of the 60 points would differ in nearly every pair of runs
    alarms = 0
    for trial in range(20):
        old = {f"p{i}": noisy(10, seed=1000 * trial + i) for i in range(60)}
        new = {f"p{i}": noisy(10, seed=1000 * trial + 500 + i) for i in range(60)}
        found = verdicts(write(f"o{trial}", old), write(f"n{trial}", new), 0.0)
        alarms += bool({SLOWER, FASTER} & set(found.values()))
    assert alarms <= 3


def test_no_verdict_from_too_few_samples(write):
    old, new = write("old", {"a": noisy(10, 5)}), write("new", {"a": noisy(20, 12)})
    table = compare(load_run(old), load_run(new), 0.02)
    assert table["verdict"].tolist() == [FEW]
    assert table["why"].tolist() == ["5 and 12 samples, an interval needs 6 on each side"]


def test_no_verdict_where_correction_leaves_none_within_reach(write):
    # 6 against 6 samples reach p = 2 / 924 at best, which 24 points raise above 5%
    old = write("old", {f"p{i}": noisy(10, 6, seed=i) for i in range(24)})
    new = write("new", {f"p{i}": noisy(10, 6, seed=50 + i) for i in range(24)})
    assert set(verdicts(old, new).values()) == {FEW}
    one = write("one", {"p0": noisy(10, 6)})
    assert verdicts(one, write("two", {"p0": noisy(12, 6, seed=3)})) == {"p0": SLOWER}


def test_clocks_are_never_mixed(write):
    old = write("old", {"a": noisy(10)})
    file = write("new", {"a": noisy(20)}) / "measurements.jsonl"
    file.write_text(file.read_text().replace("cuda_events", "self_reported"))
    assert verdicts(old, file.parent) == {"a": BASES}


def test_points_without_a_result_are_told_apart(write):
    failed = {"status": "failed", "reason": "signal 11", "timing_basis": None}
    refused = {"status": "unsupported", "reason": "needs 3 B"}
    old = write("old", {"a": noisy(1), "b": failed, "c": noisy(1), "d": failed, "e": noisy(1)})
    new = write("new", {"a": failed, "b": noisy(1), "d": failed, "e": refused, "f": noisy(1)})
    expected = {"a": LOST, "b": GAINED, "c": NEITHER, "d": NEITHER, "e": NEITHER, "f": GAINED}
    assert verdicts(old, new) == expected


@pytest.mark.parametrize("other", [{"gpu": "NVIDIA L4"}, {"cpu": "EPYC"}])
def test_other_machines_are_refused_unless_asked_for(write, other):
    old, new = write("old", {"a": noisy(10)}), write("new", {"a": noisy(20)}, **other)
    with pytest.raises(RunError, match="--across-machines"):
        verdicts(old, new)
    assert verdicts(old, new, across=True) == {"a": SLOWER}


def test_exit_status_and_output(write, capsys):
    base = write("base", {"a": noisy(10), "b": noisy(10, seed=2)})
    same = write("same", {"a": noisy(10, seed=3), "b": noisy(10, seed=4)})
    slow = write("slow", {"a": noisy(12, seed=5), "b": noisy(10, seed=4)})
    few = write("few", {"a": noisy(10, 3)})
    assert main(["compare", str(base), str(same)]) == 0
    assert capsys.readouterr().out == "2 no difference found\n"
    assert main(["compare", str(base), str(slow)]) == 1
    out = capsys.readouterr().out
    assert re.search(
        r"\| a \| 10\.\d \| 1[12]\.\d \| 1\.\d+ \[1\.\d+, 1\.\d+\] \| .* \| slower \|", out
    )
    assert out.endswith("1 slower, 1 no difference found\n")
    assert main(["compare", str(base), str(few)]) == 2
    assert main(["compare", str(base), str(base), "--threshold", "-1"]) == 2
    assert main(["compare", str(base.parent), str(base)]) == 2
    assert "must be one run directory each" in capsys.readouterr().err
