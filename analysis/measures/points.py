"""One row per point, from its samples: median, interval, speedup, or the reason for none."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from analysis.measures.stats import Samples, median_interval, ratio_interval, units
from analysis.model.ceilings import Ceilings
from analysis.model.files import RunError, printable
from analysis.model.run import PROBLEM, Run
from analysis.model.words import AXES, GPU_AXES

NOT_RUN = "not run"
BEST_CPU = "best:cpu"
"""A baseline that is no version: the fastest verified version of each problem that ran on the CPU
of the same machine in the same run."""
FASTEST_CPU = "the fastest CPU version"
"""What BEST_CPU is called where it stands for several versions."""
CONDITIONS = {"gpus": 1, "device_memory": 0, "host_memory": "pageable"}
"""Axes that say what a version may use, or where its data are, and what holds for versions that do
not read them. Other than of a tunable, the fastest value does not stand for the others."""
UNTHROTTLED = {"", "none"}
_PROBLEM = [column for column in PROBLEM if column != "precision"]
NOISY_SHARE = 0.25
"""A point is noisy from this share of noisy samples on. A smaller share hardly moves its median."""

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
    *("floor_sustained_ms", *GPU_AXES),
]
"""Further columns, which schema 1 does not have. A point is `noisy` if at least NOISY_SHARE of its
samples are; `noise` says what disturbed them. `verified_points` counts the points whose labels were
verified, of all problems of a batch."""


PLACE = "measured_at"
"""The run that measured a point, and the machine as far as its rows tell (see _places). It is a key
of every ratio: only points of one place are compared."""

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


NOISY = "†"
"""Follows the time of a noisy point in tables, and in figures without marks."""


OVERSUBSCRIBED = "‡"
"""Follows the time of an oversubscribed point in tables."""


def noisy_mark(point: pd.Series) -> str:
    """NOISY for a noisy point, else nothing."""
    return NOISY if point["noisy"] is True else ""


def oversubscribed_note(points: pd.DataFrame) -> str:
    """What OVERSUBSCRIBED means for these points. Empty if none is."""
    count = int((points["status"].eq("ok") & points["oversubscribed"].eq(True)).sum())
    if not count:
        return ""
    noun = f"{count:,} point{'' if count == 1 else 's'}"
    why = "with more threads than cores, or with ranks that share a GPU"
    return f"{OVERSUBSCRIBED} oversubscribed: {noun}, {why}."


def noise_note(points: pd.DataFrame) -> str:
    """What NOISY means for these points, and the worst of each kind that disturbed them. Empty if
    none is noisy."""
    noisy = points[points["noisy"].eq(True)]
    if noisy.empty:
        return ""
    reasons = reasons_of(noisy["noise"].dropna())
    worst = worst_of_each_kind(reasons)
    at_worst = ", at worst" if len(reasons) > len(worst) else ""
    count = f"{len(noisy):,} point{'' if len(noisy) == 1 else 's'}"
    return (
        f"{NOISY} noisy: {count}, with a quarter or more of the samples disturbed{at_worst}: "
        f"{'; '.join(worst) or 'no reason was recorded'}."
    )


def reasons_of(noise: Iterable[str]) -> list[str]:
    """The different reasons in texts of the column `noise`."""
    return [reason for reason in dict.fromkeys("; ".join(noise).split("; ")) if reason]


def worst_of_each_kind(reasons: Iterable[str]) -> list[str]:
    """Reasons that differ only in their numbers are of one kind. The worst of a kind has the
    largest first number, which counts what disturbed the sample. Where that is equal, the shorter
    sample was disturbed more, so the second number decides."""
    kinds: dict[str, list[str]] = {}
    for reason in reasons:
        kind = _PLURAL.sub("", _NUMBER.sub("#", reason))
        kinds.setdefault(kind, []).append(reason)
    return [max(of, key=_severity) for of in kinds.values()]


_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?")
_PLURAL = re.compile(r"(?<=switch)es\b|(?<=page)s\b|(?<=core)s\b")


def _severity(reason: str) -> tuple[float, float]:
    numbers = [float(number.replace(",", "")) for number in _NUMBER.findall(reason)]
    first, second = [*numbers, 0.0, 0.0][:2]
    return first, -second


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
            getattr(run, name).assign(machine=_machine_of(run, label, getattr(run, name)))
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


def _machine_of(run: Run, label: str, rows: pd.DataFrame) -> pd.Series:
    """The machine of each row: the label of its run. If the run has several GPUs, the GPU of the
    row's point, else that of its node, else the label. If its nodes have several CPUs, that of the
    node."""
    machines = run.machines
    if len(run.gpus) < 2 and len({*machines.values()}) < 2:
        return pd.Series(label, index=rows.index, dtype=object)
    of = run.measurements.drop_duplicates("point").set_index("point")
    named = of["gpu"] if len(run.gpus) > 1 else pd.Series(dtype=object)
    nodes = rows["point"].map(of["node"]).map(machines)
    return rows["point"].map(named).astype(object).fillna(nodes).fillna(label)


def _places(run: Run, points: pd.Series) -> pd.Series:
    """Where each point was measured: its node, else its host.

    Virtual machines often share a host's name. So where rows of one host and part have several
    GPUs, as after a run was resumed elsewhere, the GPU is added; CPU rows do not say which host it
    was. A node has one place whatever its GPU is."""
    rows = run.measurements.drop_duplicates("point", keep="last").set_index("point")
    named = rows["node"].fillna(rows["host"]).fillna("")
    gpu = rows["gpu_uuid"].str.split(",").str[0]
    several = gpu.groupby([named, rows["shard"].fillna("")]).transform("nunique").gt(1)
    split = several & rows["node"].isna()
    named = named.where(~split, named + " with " + gpu.fillna("an unknown GPU"))
    return points.map(named).fillna("")


def machine_labels(runs: list[Run]) -> list[str]:
    """A label for each run, which separates runs that must not be mixed.

    Runs of one machine share its name and are drawn together. If they measured the same point,
    the ends of their paths are added that tell them apart, because samples of different runs are
    never pooled.
    """
    labels = [run.machine for run in runs]
    measured = [set(run.measurements["point"]) for run in runs]
    clashing = {
        label
        for i, label in enumerate(labels)
        for j in range(i)
        if labels[j] == label and measured[i] & measured[j]
    }
    ends = _distinct_ends([run.path.resolve() for run in runs])
    return [
        f"{label}, {printable(end)}" if label in clashing else label
        for label, end in zip(labels, ends, strict=True)
    ]


def _distinct_ends(paths: list[Path]) -> list[str]:
    """The ends of the paths, of one length and as short as tells them apart."""
    for length in itertools.count(1):
        ends = ["/".join(path.parts[-length:]) for path in paths]
        if len({*ends}) == len({*paths}):
            return ends  # at the latest when they are whole


def common_baseline(runs: list[Run]) -> str:
    """The common baseline of the runs. Empty if none of them names one.

    Raises RunError if they name different ones, because a figure has one denominator.
    """
    named = {run.baseline: run for run in runs if run.baseline}
    if len(named) > 1:
        which = "; ".join(f"{run.path}: {baseline}" for baseline, run in named.items())
        raise RunError(f"the runs name different baselines ({which}); draw them one at a time")
    return next(iter(named), "")


def all_points(runs: list[Run], baseline: str) -> pd.DataFrame:
    """Every point that was planned or measured, with POINT_COLUMNS, NEWER_COLUMNS, SOLVE_COLUMNS,
    the version that a chooser has `chosen`, and `times_ms` (Samples in ms).

    Points without a result have NaN times, a status (or `not run`) and the reason.
    Speedups are relative to the median of `baseline` for the same problem in the same run and
    PLACE, with the fastest tunables of each side. With BEST_CPU, `baseline` is
    each point's own denominator. If an ok point has no speedup, its `reason` says what is missing.
    """
    labels = machine_labels(runs)
    parts = []
    for at, (run, label) in enumerate(zip(runs, labels, strict=True)):
        of = _points_of(run, label)
        parts.append(of.assign(**{PLACE: f"{at}:" + _places(run, of["point"])}))
    points = pd.concat(parts, ignore_index=True)
    # two runs of one machine may have planned the same point, but only one measured it
    unmeasured = points["status"].eq(NOT_RUN)
    known = set(zip(*(points.loc[~unmeasured, c] for c in ("machine", "point")), strict=True))
    pairs = zip(points["machine"], points["point"], strict=True)
    elsewhere = np.array([pair in known for pair in pairs], dtype=bool)
    points = points[~(unmeasured & elsewhere)].drop_duplicates(["machine", "point"])
    return _with_speedups(points.reset_index(drop=True), baseline)


def require_one_place(points: pd.DataFrame, path: Path) -> None:
    """Raises RunError if ok points of one problem are of several machines or places: their times
    are not compared."""
    ok = points[points["status"].eq("ok")]
    for _, of in ok.groupby(_PROBLEM, dropna=False, sort=False):
        each = of.drop_duplicates(["machine", PLACE])
        found = list(dict.fromkeys(place_text(point) for _, point in each.iterrows()))
        if len(found) > 1:
            raise RunError(
                f"{path}: one problem was measured on {' and on '.join(found)}, whose times are "
                "not compared"
            )


def place_text(point: pd.Series) -> str:
    """The machine and the place of a point, in words."""
    where = point[PLACE].partition(":")[2]
    return f"{point['machine']} ({where})" if where else str(point["machine"])


def named_baseline(points: pd.DataFrame, baseline: str) -> str:
    """The version that BEST_CPU stands for in `points`, or FASTEST_CPU if it stands for several.
    Any other baseline is itself."""
    if baseline != BEST_CPU:
        return baseline
    taken = points["baseline"].dropna().unique()
    return str(taken[0]) if len(taken) == 1 else FASTEST_CPU


def baseline_text(points: pd.DataFrame, baseline: str) -> str:
    """The baseline as a table names it: `fast_cpu_simd, the fastest CPU version here`."""
    named = named_baseline(points, baseline)
    if baseline != BEST_CPU:
        return named
    if named != FASTEST_CPU:
        return f"{named}, {FASTEST_CPU} here"
    return f"{FASTEST_CPU} of each problem"


def over_best_cpu(points: pd.DataFrame) -> pd.DataFrame:
    """The points of one run with their speedups over BEST_CPU, whatever the run's baseline is."""
    return _with_speedups(points, BEST_CPU)


def fastest_cpu_beside(point: pd.Series, rows: pd.DataFrame) -> pd.Series | None:
    """Of `rows`, the fastest verified version on the CPU that solved the problem of `point`, in its
    precision or else in fp32. None if there is none, if it is the baseline, or if `point` ran on
    the CPU itself: then `speedup` says it all."""
    same = rows["backend"].eq("cpu") & rows["verified"].eq(True) & rows["iteration_ms"].notna()
    # the CSV of a figure has no PLACE
    places = [column for column in (PLACE, "node", "host") if column in rows]
    for column in ("machine", *places, *_PROBLEM):
        # an axis that a version does not have is None in rows and NaN in a CSV
        wanted = point[column]
        same &= rows[column].isna() if pd.isna(wanted) else rows[column].eq(wanted)
    for precision in (point["precision"], "fp32"):
        found = rows[same & rows["precision"].eq(precision)]
        if len(found) and point["backend"] != "cpu":
            best = found.loc[found["iteration_ms"].astype(float).idxmin()]
            return best if best["iteration_ms"] < point["baseline_iteration_ms"] else None
    return None


def has_several_baselines(points: pd.DataFrame) -> bool:
    """Whether the speedups of `points` need to say which version they are over."""
    return points.loc[points["speedup"].notna(), "baseline"].nunique() > 1


def conditions(points: pd.DataFrame) -> list[str]:
    """The CONDITIONS in which ok points of one problem differ."""
    ok = points[points["status"] == "ok"]
    told = ok.assign(
        **{c: [usual if pd.isna(v) else v for v in ok[c]] for c, usual in CONDITIONS.items()}
    )
    of = told.groupby(["machine", *PROBLEM], dropna=False, sort=False)
    return [c for c in CONDITIONS if len(ok) and of[c].nunique().gt(1).any()]


def condition_text(axis: str, value: object) -> str:
    """`2 GPUs`, `1 GiB`, `pinned`; nothing where the version does not read the axis."""
    if pd.isna(value):
        return ""
    if axis == "gpus":
        return "1 GPU" if value == 1 else f"{int(value)} GPUs"
    if axis == "device_memory":
        return f"{int(value)} GiB" if value else "all memory"
    return str(value)


def fastest(points: pd.DataFrame, x: str = "n", apart: Sequence[str] = ()) -> pd.DataFrame:
    """The ok point with the smallest median time of each version and problem, and of each value of
    axis `x` and of the axes `apart`.

    The choice uses the same samples as the interval. If there are many nearly equal tunables, the
    interval of the chosen one is a little too narrow."""
    ok = points[points["status"] == "ok"]
    key = list(dict.fromkeys(["machine", "version", *PROBLEM, x, *apart]))
    return ok.loc[ok.groupby(key, dropna=False, sort=False)["iteration_ms"].idxmin()]


def within_cores(points: pd.DataFrame, apart: Sequence[str] = ()) -> pd.DataFrame:
    """Leaves out the oversubscribed points of each version and problem that has another result, so
    that none of them is its fastest. The values of the axes `apart` are looked at separately."""
    within = points["status"].eq("ok") & ~points["oversubscribed"].eq(True)
    key = [points[column] for column in ("machine", "version", *PROBLEM, *apart)]
    replaceable = within.groupby(key, dropna=False, sort=False).transform("any")
    return points[within | ~replaceable]


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

    points = points.reindex(
        columns=[*POINT_COLUMNS, *NEWER_COLUMNS, *SOLVE_COLUMNS, "chosen", "times_ms"]
    )
    points = points.reset_index(drop=True)
    points["machine"] = _machine_of(run, machine, points)
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


def _with_speedups(points: pd.DataFrame, baseline: str) -> pd.DataFrame:
    """A copy with the columns of the speedup over `baseline`."""
    points = points.assign(baseline=baseline or None, baseline_elsewhere=False)
    if not baseline:
        return points
    problem = [*_PROBLEM, "machine", PLACE]
    if baseline == BEST_CPU:
        base = _fastest_on_cpu(points, problem)
    else:
        base = fastest(points[points["version"] == baseline], apart=[PLACE])
    denominators: dict[tuple, dict[str, tuple]] = {}
    for key, of in zip(_keys(base, problem), base.itertuples(index=False), strict=True):
        denominators.setdefault(key, {})[of.precision] = of

    names = ["baseline", "baseline_point", "baseline_iteration_ms", "baseline_timing_basis"]
    names += ["speedup", "speedup_low", "speedup_high"]
    columns = ["point", "precision", "status", "times_ms"]
    rows = []
    for key, (point, precision, status, times) in zip(
        _keys(points, problem), zip(*(points[c] for c in columns), strict=True), strict=True
    ):
        choices = denominators.get(key, {}) if status == "ok" else {}
        # a version in another precision is compared with the baseline's fp32, or its only precision
        of = choices.get(precision, choices.get("fp32", next(iter(choices.values()), None)))
        if of is None:
            named = None if baseline == BEST_CPU else baseline
            rows.append((named, None, np.nan, None, np.nan, np.nan, np.nan))
            continue
        ratio = (1.0, 1.0, 1.0) if of.point == point else ratio_interval(of.times_ms, times)
        rows.append((of.version, of.point, of.iteration_ms, of.timing_basis, *ratio))
    points[names] = pd.DataFrame(rows, columns=names, index=points.index)
    orphan = points["status"].eq("ok") & points["speedup"].isna()
    points.loc[orphan, "reason"] = (
        "no version on this machine's CPU has a verified result for this problem"
        if baseline == BEST_CPU
        else f"{baseline} has no result for this problem on this machine"
    )
    if baseline != BEST_CPU:
        _name_other_places(points, orphan, base, baseline)
    return points


def _name_other_places(
    points: pd.DataFrame, orphan: pd.Series, base: pd.DataFrame, baseline: str
) -> None:
    """Says of the points without a speedup where the baseline ran instead, and marks those whose
    baseline ran on another node of the same run (`baseline_elsewhere`)."""
    ran: dict[tuple, list[str]] = {}
    for key, place in zip(_keys(base, _PROBLEM), base[PLACE], strict=True):
        ran.setdefault(key, []).append(place)
    mine = points[orphan]
    for at, key in zip(mine.index, _keys(mine, _PROBLEM), strict=True):
        run, _, here = mine.at[at, PLACE].partition(":")
        others = [place.partition(":") for place in dict.fromkeys(ran.get(key, []))]
        elsewhere = [name for of, _, name in others if of == run and name != here]
        if elsewhere:
            where = f"{', '.join(elsewhere)}, this point on {here}"
            points.at[at, "reason"] = f"{baseline} ran on {where}"
            points.at[at, "baseline_elsewhere"] = True
        elif any(of != run for of, *_ in others):
            points.at[at, "reason"] = (
                f"{baseline} has a result for this problem in another run only"
            )


def _fastest_on_cpu(points: pd.DataFrame, problem: list[str]) -> pd.DataFrame:
    """The fastest verified point on the CPU of each problem and precision."""
    verified = points["status"].eq("ok") & points["verified"].eq(True)
    cpu = points[verified & points["backend"].eq("cpu")]
    places = cpu.groupby([*problem, "precision"], dropna=False, sort=False)["iteration_ms"]
    return cpu.loc[places.idxmin()]


def _keys(points: pd.DataFrame, columns: list[str]) -> list[tuple]:
    return list(zip(*(points[c].astype(str) for c in columns), strict=True))
