import json

import numpy as np
import pytest
from made_runs import measurement, write_lines

from analysis.measures.fastest import fastest
from analysis.measures.places import machine_labels, require_one_place
from analysis.measures.points import all_points
from analysis.measures.speedups import baseline_text, common_baseline, named_baseline
from analysis.model.files import RunError
from analysis.model.load import load_run


def axes(**used):
    names = ["threads_per_block", "samples_per_thread", "threads", "processes", "gpus"]
    return {name: used.get(name) for name in names}


def point(version, n=1000, k=4, precision="fp32", **used):
    own = "".join(f"/{name}:{value}" for name, value in used.items())
    return {
        "point": f"{version}/n:{n}/k:{k}/dim:2{own}/precision:{precision}",
        "version": version,
        "family": version.split("_")[0],
        "backend": "cpu" if version.startswith("cpu") else "cuda",
        "n": n,
        "k": k,
        "dim": 2,
        **axes(**used),
        "precision": precision,
    }


def samples(of, times, **values):
    return [
        measurement(of, iteration_ms=t, repetition=i, repetitions=len(times), **values)
        for i, t in enumerate(times)
    ]


@pytest.fixture
def run_of(tmp_path):
    """run_of(rows, plan=[points], baseline=…, folder=…) writes and reads a run of these rows."""

    def make(rows, plan=(), baseline="cpu_sequential", folder="run", **environment):
        path = tmp_path / folder
        path.mkdir()
        write_lines(path / "measurements.jsonl", rows)
        (path / "spec.resolved.json").write_text(json.dumps({"baseline": baseline}))
        (path / "plan.json").write_text(json.dumps({"points": list(plan)}))
        (path / "environment.json").write_text(json.dumps(environment))
        return load_run(path)

    return make


BASE = [40.0, 41.0, 42.0, 43.0, 44.0, 39.0, 38.0, 37.0, 36.0]  # median 40
FAST = [4.0, 4.1, 4.2, 4.3, 4.4, 3.9, 3.8, 3.7, 3.6]  # median 4
SLOW = [8.0, 8.1, 8.2, 8.3, 8.4, 7.9, 7.8, 7.7, 7.6]  # median 8


def test_medians_intervals_and_speedups_by_hand(run_of):
    rows = samples(point("cpu_sequential"), BASE)
    rows += samples(point("luigi_v1_fused", threads_per_block=128), SLOW)
    rows += samples(point("luigi_v1_fused", threads_per_block=256), FAST)
    points = all_points([run_of(rows)], "cpu_sequential").set_index("point")
    base, slow, fast = (points.loc[p] for p in points.index)
    assert base["iteration_ms"] == 40.0
    assert base["iteration_ms_low"] == 37.0  # the second smallest and the second largest of 9
    assert base["iteration_ms_high"] == 43.0
    assert base["speedup"] == 1.0
    assert slow["speedup"] == 5.0
    assert fast["speedup"] == 10.0
    assert fast["baseline_iteration_ms"] == 40.0
    assert fast["baseline_point"] == base.name
    assert 8.0 < fast["speedup_low"] < 10.0 < fast["speedup_high"] < 12.0
    assert fast["samples"] == 9
    assert (fast["timing_basis"], fast["baseline_timing_basis"]) == ("cuda_events", "steady_clock")


def test_the_fastest_tunables_are_by_median_not_by_minimum(run_of):
    lucky = [9.0] * 8 + [0.1]
    rows = samples(point("luigi_v1_fused", threads_per_block=128), lucky)
    rows += samples(point("luigi_v1_fused", threads_per_block=256), SLOW)
    best = fastest(all_points([run_of(rows)], ""))
    assert best["threads_per_block"].tolist() == [256]


def test_the_baseline_is_at_its_own_fastest(run_of):
    rows = samples(point("cpu_openmp", threads=1), BASE)
    rows += samples(point("cpu_openmp", threads=4), SLOW)
    rows += samples(point("luigi_v1_fused", threads_per_block=256), FAST)
    points = all_points([run_of(rows)], "cpu_openmp").set_index("point")
    assert points.loc[point("luigi_v1_fused", threads_per_block=256)["point"], "speedup"] == 2.0
    assert points.loc[point("cpu_openmp", threads=1)["point"], "speedup"] == 0.2


def test_speedup_is_over_the_same_problem_only(run_of):
    rows = samples(point("cpu_sequential", n=1000), BASE)
    rows += samples(point("luigi_v1_fused", n=2000, threads_per_block=256), FAST)
    points = all_points([run_of(rows)], "cpu_sequential")
    other = points[points["n"] == 2000].iloc[0]
    assert np.isnan(other["speedup"])
    assert other["reason"] == "cpu_sequential has no result for this problem on this machine"


def test_best_cpu_is_the_fastest_verified_version_on_the_cpu_of_each_problem(run_of):
    rows = samples(point("cpu_sequential"), BASE)
    rows += samples(point("cpu_openmp", threads=4), SLOW)
    rows += samples(point("cpu_eigen"), FAST, verified=None)
    rows += samples(point("luigi_v1_fused", threads_per_block=256), FAST)
    rows += samples(point("cpu_sequential", k=5), SLOW)
    rows += samples(point("cpu_openmp", k=5, threads=4), BASE)
    rows += samples(point("luigi_v1_fused", k=5, threads_per_block=256), FAST)
    rows += samples(point("luigi_v1_fused", k=6, threads_per_block=256), FAST)
    points = all_points([run_of(rows, baseline="best:cpu")], "best:cpu")
    speedups = points.set_index(["version", "k"])["speedup"]
    assert speedups["cpu_sequential", 4] == 0.2
    assert speedups["cpu_openmp", 4] == 1.0
    assert speedups["luigi_v1_fused", 4] == 2.0
    assert speedups["luigi_v1_fused", 5] == 2.0
    over = points.set_index(["version", "k"])["baseline"]
    assert over["luigi_v1_fused", 4] == "cpu_openmp"
    assert over["luigi_v1_fused", 5] == "cpu_sequential"
    assert over["luigi_v1_fused", 6] is None
    (alone,) = points.loc[points["k"].eq(6), "reason"]
    assert alone == "no version on this machine's CPU has a verified result for this problem"
    assert named_baseline(points, "best:cpu") == "the fastest CPU version"
    assert baseline_text(points, "best:cpu") == "the fastest CPU version of each problem"
    four = points[points["k"].eq(4)]
    assert baseline_text(four, "best:cpu") == "cpu_openmp, the fastest CPU version here"
    assert baseline_text(four, "cpu_sequential") == "cpu_sequential"


def test_best_cpu_is_of_the_same_run_and_host(run_of):
    one = run_of(samples(point("cpu_sequential"), BASE), baseline="best:cpu", folder="a")
    rows = samples(point("luigi_v1_fused", threads_per_block=256), FAST)
    two = run_of(rows, baseline="best:cpu", folder="b")
    points = all_points([one, two], "best:cpu").set_index("version")
    assert points.loc["cpu_sequential", "speedup"] == 1.0
    assert np.isnan(points.loc["luigi_v1_fused", "speedup"])
    rows += samples(point("cpu_sequential"), BASE, host="elsewhere")
    points = all_points([run_of(rows, folder="c")], "best:cpu").set_index("version")
    assert np.isnan(points.loc["luigi_v1_fused", "speedup"])


def test_a_speedup_is_within_one_run(run_of):
    """Two runs of one model of machine may be of two machines, or of two programs."""
    one = run_of(samples(point("cpu_sequential"), BASE), folder="a")
    two = run_of(samples(point("cpu_openmp"), FAST), folder="b")
    points = all_points([one, two], "cpu_sequential").set_index("version")
    assert np.isnan(points.loc["cpu_openmp", "speedup"])
    assert points.loc["cpu_openmp", "reason"] == (
        "cpu_sequential has a result for this problem in another run only"
    )


def test_a_speedup_is_within_one_host(run_of):
    rows = samples(point("cpu_sequential"), BASE) + samples(point("cpu_openmp"), FAST, host="b")
    points = all_points([run_of(rows)], "cpu_sequential").set_index("version")
    assert np.isnan(points.loc["cpu_openmp", "speedup"])
    assert points.loc["cpu_openmp", "reason"] == "cpu_sequential ran on node17, this point on b"


def test_hosts_of_one_name_are_told_apart_by_the_gpu(run_of):
    """As after a run was resumed on another virtual machine: the CPU rows do not say which."""
    fused, split = (point(v, threads_per_block=256) for v in ("luigi_v1_fused", "luigi_v2_split"))
    rows = samples(fused, FAST) + samples(split, SLOW, gpu_uuid="GPU-other")
    run = run_of(rows + samples(point("cpu_sequential"), BASE), baseline="luigi_v1_fused")
    points = all_points([run], "luigi_v1_fused").set_index("version")
    assert points.loc["luigi_v1_fused", "speedup"] == 1
    assert points["speedup"].isna().sum() == 2
    assert points.loc["luigi_v2_split", "reason"] == (
        "luigi_v1_fused ran on node17 with GPU-0b5c, this point on node17 with GPU-other"
    )
    with pytest.raises(RunError, match=r"with GPU-0b5c.* and on .*with GPU-other"):
        require_one_place(points.reset_index(), run.path)
    same = [row | {"node": "n1", "host": "n1"} for row in rows]
    points = all_points([run_of(same, folder="node")], "luigi_v1_fused").set_index("version")
    assert points.loc["luigi_v2_split", "speedup"] == 0.5
    require_one_place(points.reset_index(), run.path)


def test_a_precision_that_the_baseline_lacks_is_over_its_fp32(run_of):
    rows = samples(point("cpu_sequential"), BASE)
    rows += samples(point("cpu_sequential", precision="fp64"), SLOW)
    rows += samples(point("fast_assign", precision="tf32"), FAST)
    rows += samples(point("fast_assign", precision="fp64"), FAST)
    points = all_points([run_of(rows)], "cpu_sequential").set_index(["version", "precision"])
    assert points.loc[("fast_assign", "tf32"), "speedup"] == 10.0
    assert points.loc[("fast_assign", "fp64"), "speedup"] == 2.0


@pytest.mark.parametrize("status", ["unsupported", "incorrect", "failed", "timeout"])
def test_points_without_a_result_keep_status_and_reason_and_no_number(run_of, status):
    bad = point("luigi_v1_fused", threads_per_block=256)
    rows = [*samples(point("cpu_sequential"), BASE)]
    rows.append(measurement(bad, status=status, reason="why", iteration_ms=1.0))
    row = all_points([run_of(rows)], "cpu_sequential").iloc[-1]
    assert (row["status"], row["reason"], row["samples"]) == (status, "why", 0)
    assert np.isnan([row["iteration_ms"], row["speedup"]]).all()


def test_an_ok_row_that_was_verified_wrong_is_incorrect(run_of):
    rows = samples(point("luigi_v1_fused", threads_per_block=256), FAST, verified=False)
    row = all_points([run_of(rows)], "").iloc[0]
    assert row["status"] == "incorrect"
    assert np.isnan(row["iteration_ms"])


@pytest.mark.parametrize("time", [None, 0.0])
def test_an_ok_point_without_a_time_is_not_ok(run_of, time):
    rows = samples(
        point("luigi_v1_fused", threads_per_block=256),
        [time],
        null_reasons={"iteration_ms": "the clock went back"},
    )
    row = all_points([run_of(rows)], "").iloc[0]
    assert (row["status"], row["reason"]) == ("failed", "the clock went back")


def test_planned_points_without_rows_are_listed(run_of):
    done = point("cpu_sequential")
    refused = point("luigi_v1_fused", threads_per_block=128)
    cut = point("luigi_v1_fused", threads_per_block=256)
    plan = [
        {**cut, "available": True, "reason": None},
        {**done, "available": True, "reason": None},
        {**refused, "available": False, "reason": "no driver"},
    ]
    points = all_points([run_of(samples(done, BASE), plan)], "cpu_sequential")
    # in the plan's order
    assert points["point"].tolist() == [p["point"] for p in (cut, done, refused)]
    assert points["status"].tolist() == ["not run", "ok", "unsupported"]
    assert points["reason"].tolist() == ["the run ended before it", None, "no driver"]


def test_throttled_samples_are_counted(run_of):
    rows = samples(point("luigi_v1_fused", threads_per_block=256), FAST)
    for row, throttle in zip(rows, ["sw_power_cap", "", "none", None, "hw_slowdown"], strict=False):
        row["throttle"] = throttle
    assert all_points([run_of(rows)], "")["throttled_samples"].tolist() == [2]


def test_runs_of_different_machines_stay_apart(run_of):
    fused = point("luigi_v1_fused", threads_per_block=256)
    one = run_of(samples(point("cpu_sequential"), BASE) + samples(fused, FAST), folder="a")
    two = run_of(
        samples(point("cpu_sequential"), SLOW) + samples(fused, FAST, gpu="NVIDIA L4"), folder="b"
    )
    assert machine_labels([one, two]) == ["NVIDIA H200", "NVIDIA L4"]
    points = all_points([one, two], "cpu_sequential").set_index(["machine", "version"])
    assert points.loc[("NVIDIA H200", "luigi_v1_fused"), "speedup"] == 10.0
    assert points.loc[("NVIDIA L4", "luigi_v1_fused"), "speedup"] == 2.0


def test_the_same_point_of_two_runs_is_never_pooled(run_of):
    fused = point("luigi_v1_fused", threads_per_block=256)
    one = run_of(samples(fused, FAST), folder="monday")
    two = run_of(samples(fused, SLOW), folder="tuesday")
    points = all_points([one, two], "")
    assert points["machine"].tolist() == ["NVIDIA H200, monday", "NVIDIA H200, tuesday"]
    assert points["iteration_ms"].tolist() == [4.0, 8.0]


def test_runs_in_folders_of_one_name_are_told_apart(run_of, tmp_path):
    fused = point("luigi_v1_fused", threads_per_block=256)
    for host in ("a", "b"):
        (tmp_path / host).mkdir()
    runs = [run_of(samples(fused, ms), folder=f"{at}/k5") for at, ms in (("a", FAST), ("b", SLOW))]
    assert machine_labels(runs) == ["NVIDIA H200, a/k5", "NVIDIA H200, b/k5"]
    assert all_points(runs, "")["iteration_ms"].tolist() == [4.0, 8.0]


def test_sweeps_of_one_machine_come_together(run_of):
    one = run_of(samples(point("luigi_v1_fused", k=4, threads_per_block=256), FAST), folder="k4")
    two = run_of(samples(point("luigi_v1_fused", k=9, threads_per_block=256), SLOW), folder="k9")
    points = all_points([one, two], "")
    assert points["machine"].tolist() == ["NVIDIA H200"] * 2
    assert points["k"].tolist() == [4, 9]


def test_a_point_that_one_run_planned_and_another_measured_is_not_missing(run_of):
    fused = point("luigi_v1_fused", threads_per_block=256)
    gpu = {"gpus": [{"name": "NVIDIA H200"}]}
    cut = run_of([], [{**fused, "available": True, "reason": None}], folder="cut", **gpu)
    done = run_of(samples(fused, FAST), folder="done", **gpu)
    points = all_points([cut, done], "")
    assert points["status"].tolist() == ["ok"]


def test_different_baselines_are_refused(run_of):
    one = run_of([], baseline="cpu_sequential", folder="a")
    two = run_of([], baseline="cpu_openmp", folder="b")
    none = run_of([], baseline=None, folder="c")
    assert common_baseline([one, none]) == "cpu_sequential"
    assert common_baseline([none]) == ""
    with pytest.raises(RunError, match="different baselines"):
        common_baseline([one, two])
