"""One row per point, from its samples: median, interval, speedup, or the reason for none."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.measures.noise import NOISY_SHARE
from analysis.measures.places import PLACE, machine_labels, machine_of, places_of
from analysis.measures.speedups import with_speedups
from analysis.measures.stats import Samples, median_interval, units
from analysis.model.ceilings import Ceilings
from analysis.model.run import PROBLEM, Run
from analysis.model.words import AXES, GPU_AXES

NOT_RUN = "not run"
UNTHROTTLED = {"", "none"}

POINT_COLUMNS = [
    *("machine", "point", "version", "family", "backend", *PROBLEM, *AXES, "status", "reason"),
    *("samples", "iteration_ms", "iteration_ms_low", "iteration_ms_high"),
    *("baseline", "baseline_point", "baseline_iteration_ms"),
    *("speedup", "speedup_low", "speedup_high"),
    *("timing_basis", "baseline_timing_basis", "throttled_samples", "verified"),
    "oversubscribed",
    *("iterations", "floor_ms", "gpu", "host"),
]
"""The columns of each point in a figure's CSV: times in ms, speedups, 95% intervals."""

NEWER_COLUMNS = [
    *("launches", "noisy", "noisy_samples", "noise", "inertia_excess", "max_mean_error"),
    *("verified_points", "energy_j", "waited_ms", "data_part", "node", "data_name"),
    *("floor_sustained_ms", *GPU_AXES, "chosen"),
]
"""Further columns, which schema 1 does not have. A point is `noisy` if at least NOISY_SHARE of its
samples are; `noise` says what disturbed them. `verified_points` counts the points whose labels were
verified, of all problems of a batch. `chosen` is what a chooser ran."""


SOLVE_COLUMNS = [
    "solves_differ",
    "restarted",
    "init_ms",
    "solve_ms",
    "least_iterations",
    "most_iterations",
    "inertia",
]
"""What a solve came to, for tables: whether solves of a point may differ (a rule of the spec may
end them, or there are restarts), whether the samples are of restarts, the median times of the
initial centroids and of the solve, its iterations (of all restarts) and its inertia (of the
best)."""


@dataclass(frozen=True)
class Data:
    """The data of figures: the points (see all_points), the rows of phases.jsonl, counters.jsonl
    and convergence.jsonl with their `machine`, the ceilings of each machine's GPU and CPU, the
    parent of each version, and the runs."""

    points: pd.DataFrame
    phases: pd.DataFrame
    counters: pd.DataFrame
    convergence: pd.DataFrame
    ceilings: dict[str, Ceilings]
    cpu_ceilings: dict[str, Ceilings]
    parents: dict[str, str]
    runs: list[Run]


def gather(runs: list[Run], baseline: str) -> Data:
    """Everything that the runs have, machine by machine."""
    labels = machine_labels(runs)

    def joined(name: str) -> pd.DataFrame:
        parts = [
            getattr(run, name).assign(machine=machine_of(run, label, getattr(run, name)))
            for run, label in zip(runs, labels, strict=True)
        ]
        return pd.concat([p for p in parts if len(p)] or parts[:1], ignore_index=True)

    return Data(
        all_points(runs, baseline),
        joined("phases"),
        joined("counters"),
        joined("convergence"),
        {label: run.ceilings for run, label in zip(runs, labels, strict=True) if run.ceilings},
        {
            machine: run.cpu_ceilings
            for run, label in zip(runs, labels, strict=True)
            if run.cpu_ceilings
            for machine in {label, *run.gpus}
        },
        {version: parent for run in runs for version, parent in run.parents.items()},
        runs,
    )


def all_points(runs: list[Run], baseline: str) -> pd.DataFrame:
    """Every point that was planned or measured, with POINT_COLUMNS, NEWER_COLUMNS, SOLVE_COLUMNS
    and `times_ms` (Samples in ms).

    Points without a result have NaN times, a status (or `not run`) and the reason.
    Speedups are relative to the median of `baseline` for the same problem in the same run and
    PLACE, with the fastest tunables of each side. With BEST_CPU, `baseline` is
    each point's own denominator. If an ok point has no speedup, its `reason` says what is missing.
    """
    labels = machine_labels(runs)
    parts = []
    for at, (run, label) in enumerate(zip(runs, labels, strict=True)):
        of = _points_of(run, label)
        parts.append(of.assign(**{PLACE: f"{at}:" + places_of(run, of["point"])}))
    points = pd.concat(parts, ignore_index=True)
    # two runs of one machine may have planned the same point, but only one measured it
    unmeasured = points["status"].eq(NOT_RUN)
    known = set(zip(*(points.loc[~unmeasured, c] for c in ("machine", "point")), strict=True))
    pairs = zip(points["machine"], points["point"], strict=True)
    elsewhere = np.array([pair in known for pair in pairs], dtype=bool)
    points = points[~(unmeasured & elsewhere)].drop_duplicates(["machine", "point"])
    return with_speedups(points.reset_index(drop=True), baseline)


_NEWER_COUNTS = ("launches", "noisy_samples", "verified_points")
_COUNTS = ("n", "k", "dim", "batch", *AXES, "throttled_samples", "iterations", *_NEWER_COUNTS)


def _points_of(run: Run, machine: str) -> pd.DataFrame:
    """The points of a run in the order of its plan, whatever became of them."""
    points = _measured(run)
    points = pd.concat(
        [part for part in (points, _unmeasured(run, points)) if len(part)] or [points],
        ignore_index=True,
    )
    order = {point: place for place, point in enumerate(run.plan["point"])}
    # the plan's order, so that a shuffled run does not shuffle colours and tables
    place = points["point"].map(order).fillna(len(order))
    points = points.iloc[np.argsort(place.to_numpy(), kind="stable")]

    points = points.reindex(columns=[*POINT_COLUMNS, *NEWER_COLUMNS, *SOLVE_COLUMNS, "times_ms"])
    points = points.reset_index(drop=True)
    points["machine"] = machine_of(run, machine, points)
    intervals = [
        median_interval(t) if isinstance(t, Samples) else (np.nan,) * 3 for t in points["times_ms"]
    ]
    names = ["iteration_ms", "iteration_ms_low", "iteration_ms_high"]
    points[names] = np.array(intervals, dtype=float).reshape(-1, 3)
    points["samples"] = [len(t) if isinstance(t, Samples) else 0 for t in points["times_ms"]]
    points["floor_ms"] = points["floor_ms"].astype(float)
    for column in _COUNTS:
        points[column] = points[column].astype("Int64")
    return points


def _measured(run: Run) -> pd.DataFrame:
    """A row for each point that has rows, with what they say together: its status and reason, its
    samples (`times_ms`, None unless it is ok), throttling, NEWER_COLUMNS and SOLVE_COLUMNS."""
    rows = run.measurements
    points = rows.drop_duplicates("point").copy()
    results = _results(rows, points)
    for place, column in enumerate(("status", "reason", "times_ms")):
        points[column] = [result[place] for result in results]
    throttled = rows["throttle"].notna() & ~rows["throttle"].astype(str).str.lower().isin(
        UNTHROTTLED
    )
    throttled_count = throttled.groupby(rows["point"]).sum()
    points["throttled_samples"] = points["point"].map(throttled_count).astype("Int64")
    newer = _newer(rows)
    for column in newer:
        points[column] = newer[column].reindex(points["point"]).to_numpy()
    solve = run.spec.get("solve") or {}
    stops_early = any((solve.get(rule) or 0) > 0 for rule in ("tolerance", "min_changes"))
    points["solves_differ"] = stops_early or (solve.get("restarts") or 1) > 1
    points["restarted"] = (
        points["point"].map(rows.groupby("point")["restart"].max().gt(0)).astype(object)
    )
    points["launches"] = [len(t.launches) if t else None for t in points["times_ms"]]
    return points


def _results(rows: pd.DataFrame, points: pd.DataFrame) -> list[tuple]:
    """Status, reason and samples of each point. One bad row makes the whole point bad."""
    bad = rows[rows["status"] != "ok"].drop_duplicates("point").set_index("point")
    wrong = set(rows.loc[(rows["status"] == "ok") & rows["verified"].eq(False), "point"])
    times = samples_of(rows[rows["iteration_ms"] > 0])
    results = []
    for point, first_reason in zip(points["point"], points["why_no_time"], strict=True):
        if point in bad.index:
            results.append((bad.at[point, "status"], bad.at[point, "reason"], None))
        elif point in wrong:
            results.append(("incorrect", "its result was not verified", None))
        elif point not in times:
            results.append(("failed", first_reason or "no time was recorded", None))
        else:
            results.append(("ok", None, times[point]))
    return results


def _unmeasured(run: Run, points: pd.DataFrame) -> pd.DataFrame:
    """The planned points that are not among `points`, with the reason for that."""
    planned = run.plan[~run.plan["point"].isin(points["point"])].copy()
    refused = planned["available"].eq(False)
    planned["status"] = np.where(refused, "unsupported", NOT_RUN)
    planned["reason"] = planned["reason"].where(refused, "the run ended before it")
    known = dict(zip(points["data_name"].fillna(""), points["data"], strict=True))
    planned["data"] = [known.get(name, name or None) for name in planned["data_name"].fillna("")]
    planned["throttled_samples"] = 0
    return planned


def sampled(points: pd.DataFrame) -> pd.Series:
    """Which points had only a sample of their labels verified."""
    whole = points["n"] * points["batch"].fillna(1)
    return points["verified"].eq(True) & (points["verified_points"] < whole).fillna(False)


def samples_of(usable: pd.DataFrame, column: str = "iteration_ms") -> dict[str, Samples]:
    """Each point's samples of a time, launch by launch or restart by restart."""
    apart: dict[str, list[tuple[int, np.ndarray]]] = {}
    groups = usable.groupby(["point", units(usable)], sort=False)[column]
    for (point, unit), samples in groups:
        apart.setdefault(point, []).append((int(unit), np.sort(samples.to_numpy())))
    return {
        point: Samples(tuple(times for _, times in of), tuple(number for number, _ in of))
        for point, of in apart.items()
    }


def _newer(rows: pd.DataFrame) -> pd.DataFrame:
    """NEWER_COLUMNS of each point, except the number of its launches, and SOLVE_COLUMNS, except
    `solves_differ`."""
    points = rows.groupby("point", sort=False)
    table = points[["inertia_excess", "verified_points", "energy_j", "data_part", "node"]].first()
    table["max_mean_error"] = points["max_mean_error"].max()
    table["waited_ms"] = points["waited_ms"].median()
    table["init_ms"] = points["init_ms"].median()
    table["solve_ms"] = points["solve_ms"].median()
    table["least_iterations"] = points["iterations"].min()
    table["most_iterations"] = points["iterations"].max()
    table["inertia"] = points["inertia"].min()
    known = rows.loc[rows["noisy"].notna(), ["point", "noisy", "noise"]]
    noisy = known[known["noisy"].eq(True)]
    count = known["noisy"].eq(True).groupby(known["point"]).sum().reindex(table.index)
    table["noisy_samples"] = count.astype("Int64")
    table["noisy"] = (count >= NOISY_SHARE * points.size()).astype(object).where(count.notna())
    # each disturbance is named once
    table["noise"] = (
        noisy.groupby("point", sort=False)["noise"]
        .agg(lambda texts: "; ".join(dict.fromkeys(texts.dropna())))
        .reindex(table.index)
    )
    return table
