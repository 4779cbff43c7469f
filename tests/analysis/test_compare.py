import json
import re

import numpy as np
import pytest
import scipy.stats
from made_runs import measurement, write_lines

from analysis.__main__ import main
from analysis.measures.compare import (
    ALIKE,
    BASES,
    FASTER,
    FEW,
    GAINED,
    LOST,
    NEITHER,
    NOT_RUN,
    OPEN_FASTER,
    OPEN_SLOWER,
    OTHER,
    SLOWER,
    compare,
    not_excluded,
    summary,
)
from analysis.measures.stats import holm
from analysis.model.files import RunError
from analysis.model.load import load_run


def point(name):
    axes = ["threads_per_block", "samples_per_thread", "threads", "processes", "gpus"]
    of = {"point": name, "version": name, "family": "a", "backend": "cuda", "precision": "fp32"}
    return {**of, "n": 1000, "k": 4, "dim": 2, **dict.fromkeys(axes)}


@pytest.fixture
def write(tmp_path):
    """write(folder, {name: times, a list of times for each launch, or row values}) writes a run
    directory and returns its path. Only lists of launches give rows of schema 2."""

    def make(folder, points, gpu="NVIDIA H200", cpu="Xeon", **values):
        path = tmp_path / folder
        path.mkdir()
        rows = []
        for name, given in points.items():
            if isinstance(given, dict):
                rows.append(measurement(point(name), gpu=gpu, **given))
                continue
            several = isinstance(given[0], list)
            for launch, times in enumerate(given if several else [given]):
                newer = {"schema": 2, "launch": launch, "repetitions": None, **values}
                for i, t in enumerate(times):
                    of = {"iteration_ms": t, "repetition": i, "repetitions": len(times)}
                    of |= newer if several else {}
                    rows.append(measurement(point(name), gpu=gpu, **of))
        write_lines(path / "measurements.jsonl", rows)
        environment = {"gpus": [{"name": gpu}], "cpu": {"model": cpu}}
        (path / "environment.json").write_text(json.dumps(environment))
        return path

    return make


def noisy(median, count=12, seed=1):
    return (median * (1 + np.random.default_rng(seed).normal(0, 0.005, count))).tolist()


def launched(median, launches=5, seed=1, scatter=0.005):
    """Samples of several launches, each with a shift of its own."""
    random = np.random.default_rng(seed)
    shifts = median * np.exp(random.normal(0, scatter, launches))
    return [noisy(shift, seed=1000 * seed + i) for i, shift in enumerate(shifts)]


def verdicts(old, new, threshold=0.02, **options):
    table = compare(load_run(old), load_run(new), threshold, **options)
    return dict(zip(table["point"], table["verdict"], strict=True))


def test_slower_faster_and_alike(write):
    old = write("old", {"a": launched(10), "b": launched(10, seed=2), "c": launched(10, seed=3)})
    new = write("new", {"a": launched(11, seed=4), "b": launched(9, seed=5), "c": launched(10)})
    assert verdicts(old, new) == {"a": SLOWER, "b": FASTER, "c": ALIKE}


def test_two_gpus_of_one_model_are_only_perhaps_different(write):
    old = write("old", {"a": launched(10)})
    new = write("new", {"a": launched(11, seed=4)}, gpu_uuid="GPU-other")
    table = compare(load_run(old), load_run(new), 0.02)
    assert table["verdict"].tolist() == [OPEN_SLOWER]
    assert table["why"].tolist() == ["measured on another GPU of this model"]


def test_another_problem_has_no_verdict(write):
    old = write("old", {"a": launched(10), "b": launched(10)})
    new = write(
        "new", {"a": launched(11, seed=4), "b": launched(11, seed=4)}, solve_ms=55.0, iterations=5
    )
    table = compare(load_run(old), load_run(new), 0.02)
    assert table["verdict"].tolist() == [OTHER, OTHER]
    assert table["why"].tolist() == ["iterations: OLD 20, NEW 5"] * 2
    new = write("data", {"a": launched(11)}, data="blobs(k=4)")
    assert verdicts(old, new)["a"] == OTHER


def test_one_launch_cannot_tell_the_program_from_the_process(write):
    old = write("old", {"a": noisy(10), "b": noisy(10, seed=2), "c": noisy(10, seed=3)})
    new = write("new", {"a": noisy(11, seed=4), "b": noisy(9, seed=5), "c": noisy(10, seed=6)})
    table = compare(load_run(old), load_run(new), 0.02)
    assert table["verdict"].tolist() == [OPEN_SLOWER, OPEN_FASTER, ALIKE]
    assert table["why"].iloc[0].startswith("one launch each cannot tell the program from")


@pytest.mark.parametrize(("few", "verdict"), [(2, OPEN_SLOWER), (3, OPEN_SLOWER), (4, SLOWER)])
def test_four_launches_are_enough(write, few, verdict):
    old = write("old", {"a": launched(10, few)})
    new = write("new", {"a": launched(12, few, seed=2)})
    assert verdicts(old, new) == {"a": verdict}
    # whichever side has fewer
    new = write("more", {"a": launched(12, 6, seed=2)})
    assert verdicts(old, new) == {"a": verdict}


def test_launches_that_scatter_more_than_they_differ_are_alike(write):
    old = [noisy(median, seed=i) for i, median in enumerate([9.0, 10.0, 11.0, 9.5, 10.5])]
    new = [noisy(median, seed=9 + i) for i, median in enumerate([11.2, 11.4, 9.2, 11.6, 10.7])]
    # as if all samples were independent
    assert scipy.stats.mannwhitneyu(np.ravel(old), np.ravel(new)).pvalue < 1e-3
    assert verdicts(write("old", {"a": old}), write("new", {"a": new})) == {"a": ALIKE}


def test_a_noisy_point_is_never_just_slower(write):
    disturbed = {"noisy": True, "noise": {"reasons": ["other processes used 1.2 cores"]}}
    old = write("old", {"a": launched(10)}, noisy=False)
    new = write("new", {"a": launched(11, seed=4)}, **disturbed)
    table = compare(load_run(old), load_run(new), 0.02)
    assert table["verdict"].tolist() == [OPEN_SLOWER]
    told = "NEW is noisy (60 of 60 samples, such as: other processes used 1.2 cores)"
    assert table["why"].tolist() == [told]


def test_what_no_difference_leaves_open_is_said(write, capsys):
    old = write("old", {"a": launched(10, scatter=0.1), "b": launched(10)})
    new = write("new", {"a": launched(10, scatter=0.1, seed=7), "b": launched(10, seed=3)})
    assert verdicts(old, new) == {"a": ALIKE, "b": ALIKE}
    main(["compare", str(old), str(new)])
    out = capsys.readouterr().out
    assert re.match(
        r"1 point with no difference found may still be slower by more than 2%, at most by \d+% "
        r"\(a\); --all shows the intervals\n2 no difference found\n$",
        out,
    )


def test_points_without_an_interval_have_no_bound(write, capsys):
    # medians so far apart that the interval would be wider than stats.WIDEST
    apart = [noisy(median, seed=i) for i, median in enumerate([0.001, 1.0, 30.0, 1000.0])]
    names = ("a", "b", "c")
    old = write("old", {"a": launched(10, scatter=0.1), "b": apart, "c": apart})
    new = write("new", {"a": launched(10, scatter=0.1, seed=7), "b": apart, "c": apart})
    assert verdicts(old, new) == dict.fromkeys(names, ALIKE)
    main(["compare", str(old), str(new), "--all"])
    out = capsys.readouterr().out
    assert re.search(
        r"\n1 point with no difference found may still be slower by more than 2%, at most by \d+% "
        r"\(a\); 2 points with no difference found have no interval, hence no bound\n"
        r"3 no difference found\n$",
        out,
    )
    one = compare(load_run(old), load_run(new), 0.02).iloc[[1]]
    said = "1 point with no difference found has no interval, hence no bound"
    assert not_excluded(one, 0.02) == said


def test_two_runs_of_one_program_are_named_as_such(write, capsys):
    old, new = write("old", {"a": launched(10)}), write("new", {"a": launched(12, seed=5)})
    plan = {"points": [], "fingerprints": {"binary": "42417dfb67de"}}
    for path in (old, new):
        (path / "plan.json").write_text(json.dumps(plan))
    main(["compare", str(old), str(new)])
    out = capsys.readouterr().out
    assert out.startswith("OLD and NEW are runs of the same program (fingerprint 42417dfb)")
    (new / "plan.json").write_text(json.dumps(plan | {"fingerprints": {"binary": "cd"}}))
    main(["compare", str(old), str(new)])
    assert "same program" not in capsys.readouterr().out


def test_an_external_version_whose_file_changed_may_differ_by_its_code(write, capsys):
    runs = [write(name, {"a": launched(10)}) for name in ("old", "new")]

    def said(*externals):
        for path, external in zip(runs, externals, strict=True):
            fingerprints = {"binary": "42417dfb67de", "external": external}
            (path / "plan.json").write_text(
                json.dumps({"points": [], "fingerprints": fingerprints})
            )
        main(["compare", *map(str, runs)])
        return capsys.readouterr().out.splitlines()[0]

    same = {"python_numpy": "d5", "only_old": "1", "unread": None}
    assert said(
        {**same, "mine_python": "aa", "my_c": "cc"}, {**same, "mine_python": "ab", "my_c": "cd"}
    ) == (
        "OLD and NEW are runs of the same program (fingerprint 42417dfb), but the external files "
        "of these versions differ: mine_python, my_c. Only differences of other versions do not "
        "come from code"
    )
    assert said(same, {"python_numpy": "d5"}).endswith("so no difference comes from its code")


def test_a_launch_that_a_point_lacks_is_no_launch_of_it(write):
    old = write("old", {"a": launched(10), "b": launched(10, seed=2)})
    new = write("new", {"a": launched(11, seed=4), "b": launched(12, 4, seed=5)})
    assert verdicts(old, new) == {"a": SLOWER, "b": SLOWER}


def test_ratio_and_p_agree_with_scipy(write):
    a, b = noisy(10), noisy(10.05, seed=9)
    table = compare(load_run(write("old", {"x": a})), load_run(write("new", {"x": b})), 0.0)
    row = table.iloc[0]
    assert row["ratio"] == pytest.approx(np.median(b) / np.median(a))
    assert row["low"] < row["ratio"] < row["high"]
    assert row["p"] == scipy.stats.mannwhitneyu(a, b).pvalue


def test_a_difference_below_the_threshold_is_none(write):
    old = write("old", {"a": launched(10, scatter=0.001)})
    new = write("new", {"a": launched(10.15, seed=2, scatter=0.001)})
    assert verdicts(old, new, 0.0) == {"a": SLOWER}
    assert verdicts(old, new, 0.05) == {"a": ALIKE}
    told = compare(load_run(old), load_run(new), 0.025)["why"]
    assert told.tolist() == ["differs by less than 2.5%"]


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
        alarms += bool({OPEN_SLOWER, OPEN_FASTER} & set(found.values()))
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
    assert verdicts(one, write("two", {"p0": noisy(12, 6, seed=3)})) == {"p0": OPEN_SLOWER}


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
    expected = {"a": LOST, "b": GAINED, "c": NOT_RUN, "d": NEITHER, "e": NOT_RUN, "f": GAINED}
    assert verdicts(old, new) == expected
    table = compare(load_run(old), load_run(new), 0.02)
    assert summary(table).endswith("2 not run in NEW, 1 no result in either")


def test_points_that_lack_a_result_are_counted(make_run, capsys):
    sizes = {"n": (10_000, 100_000), "k": (5,), "threads_per_block": (128,), "threads": (1, 2, 4)}
    refused = (lambda row: row["version"] == "luigi_v2_split", "unsupported", "needs 3 B")
    failed = (lambda row: row["version"] == "luigi_v1_fused", "failed", "signal 11")
    whole = str(make_run("whole", faults=[refused], **sizes))
    part = str(make_run("part", **{**sizes, "n": (10_000,)}, faults=[refused, failed]))
    assert main(["compare", whole, part]) == 1
    out = capsys.readouterr().out.replace("/precision:fp32", "")
    assert [line.split(" | ")[0] for line in out.splitlines() if line.startswith("| ")] == [
        *("| point", "| ---", "| luigi_v1_fused/n:10000/k:5/dim:2/threads_per_block:128"),
    ]
    assert (
        "not run in NEW: 7 points (cpu_sequential 1, cpu_openmp 3, luigi_v1_fused 1, "
        "luigi_v3_shared_centroids 1, luigi_v4_device_update 1)\n"
        "  the first: cpu_sequential/n:100000/k:5/dim:2, "
        "cpu_openmp/n:100000/k:5/dim:2/threads:1, cpu_openmp/n:100000/k:5/dim:2/threads:2\n"
        "no result in either: 2 points (luigi_v2_split 2)\n"
        "  luigi_v2_split/n:10000/k:5/dim:2/threads_per_block:128, "
        "luigi_v2_split/n:100000/k:5/dim:2/threads_per_block:128\n"
        "--all lists these points\n"
    ) in out
    assert main(["compare", whole, part, "--all"]) == 1
    out = capsys.readouterr().out
    assert "--all" not in out
    assert out.count(" | not run in NEW: OLD: ok; NEW: not there |") == 7
    assert main(["compare", part, whole]) == 0
    assert capsys.readouterr().out.startswith(
        "gained: 8 points (luigi_v1_fused 2, cpu_sequential 1, "
    )


@pytest.mark.parametrize("other", [{"gpu": "NVIDIA L4"}, {"cpu": "EPYC"}])
def test_other_machines_are_refused_unless_asked_for(write, other):
    old, new = write("old", {"a": launched(10)}), write("new", {"a": launched(20)}, **other)
    with pytest.raises(RunError, match="--across-machines"):
        verdicts(old, new)
    assert verdicts(old, new, across=True) == {"a": SLOWER}


def test_exit_status_and_output(write, capsys):
    base = write("base", {"a": launched(10), "b": launched(10, seed=2)})
    same = write("same", {"a": launched(10, seed=3), "b": launched(10, seed=4)})
    slow = write("slow", {"a": launched(12, seed=5), "b": launched(10, seed=4)})
    few = write("few", {"a": noisy(10, 3)})
    once = write("once", {"a": noisy(12), "b": noisy(10)})
    quick = write("quick", {"a": noisy(8), "b": noisy(10)})
    assert main(["compare", str(base), str(same)]) == 0
    assert capsys.readouterr().out == "2 no difference found\n"
    assert main(["compare", str(base), str(slow)]) == 1
    out = capsys.readouterr().out
    assert re.search(
        r"\| a \| [19]\S* \| 1[12]\.\d \| 1\.\d+ \[1\.\d+, 1\.\d+\] \| .* \| slower \|", out
    )
    assert out.endswith("1 slower, 1 no difference found\n")
    assert main(["compare", str(base), str(few)]) == 2
    # a slowdown that one launch cannot prove is neither passed nor failed
    assert main(["compare", str(base), str(once)]) == 2
    assert capsys.readouterr().out.endswith("1 perhaps slower, 1 no difference found\n")
    assert main(["compare", str(base), str(quick)]) == 0
    assert main(["compare", str(base), str(base), "--threshold", "-1"]) == 2
    assert main(["compare", str(base.parent), str(base)]) == 2
    assert "OLD must be one run or the parts of one sweep; " in capsys.readouterr().err
    assert main(["compare", str(base), str(base)]) == 2
    assert "OLD and NEW are the same run" in capsys.readouterr().err


def test_the_order_is_that_of_the_arguments(write, capsys):
    before = write("z", {"a": launched(10)})
    after = write("a", {"a": launched(12, seed=5)})
    assert main(["compare", str(before), str(after)]) == 1
    assert capsys.readouterr().out.endswith("1 slower\n")
    assert main(["compare", str(after), str(before)]) == 0
    assert capsys.readouterr().out.endswith("1 faster\n")
