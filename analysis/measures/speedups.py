"""Speedups over a baseline, and how texts name it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from analysis.measures.families import merely_chose
from analysis.measures.fastest import fastest
from analysis.measures.places import PLACE
from analysis.measures.stats import ratio_interval
from analysis.model.files import RunError
from analysis.model.run import PROBLEM, PROBLEM_BUT_PRECISION, Run

BEST_CPU = "best:cpu"
"""A baseline that is no version: the fastest verified version of each problem that ran on the CPU
of the same machine in the same run."""

FASTEST_CPU = "the fastest CPU version"
"""What BEST_CPU is called where it stands for several versions."""


def over(run: Run, baseline: str | None) -> Run:
    """The run with speedups over `baseline` instead of its spec's; with None the run as it is.

    Raises RunError if `baseline` has no result in the run."""
    if baseline is None:
        return run
    done = run.measurements[run.measurements["status"].eq("ok")]
    meant = done["backend"].eq("cpu") if baseline == BEST_CPU else done["version"].eq(baseline)
    if not meant.any():
        planned = dict.fromkeys([*run.plan["version"], *done["version"]])
        there = [version for version in planned if version in set(done["version"])]
        raise RunError(
            f"--baseline: '{baseline}' has no result in {run.path}; "
            f"these versions have one: {', '.join(there) or 'none'}"
        )
    return replace(run, spec={**run.spec, "baseline": baseline})


def common_baseline(runs: list[Run]) -> str:
    """The common baseline of the runs. Empty if none of them names one.

    Raises RunError if they name different ones, because a figure has one denominator.
    """
    named = {run.baseline: run for run in runs if run.baseline}
    if len(named) > 1:
        which = "; ".join(f"{run.path}: {baseline}" for baseline, run in named.items())
        raise RunError(
            f"the runs name different baselines ({which}); draw them one at a time, or give "
            "--baseline"
        )
    return next(iter(named), "")


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


def baseline_chosen_text(points: pd.DataFrame, baseline: str) -> str:
    """The same for a table of all `points`, where a baseline with several points at one problem
    counts with its fastest."""
    text = baseline_text(points, baseline)
    own = points[points["status"].eq("ok") & points["version"].eq(baseline)]
    chosen = own.duplicated(["machine", *PROBLEM]).any()
    return f"{text} at its fastest for each problem" if chosen else text


def has_several_baselines(points: pd.DataFrame) -> bool:
    """Whether the speedups of `points` need to say which version they are over."""
    return points.loc[points["speedup"].notna(), "baseline"].nunique() > 1


def over_best_cpu(points: pd.DataFrame) -> pd.DataFrame:
    """The points of one run with their speedups over BEST_CPU, whatever the run's baseline is."""
    return with_speedups(points, BEST_CPU)


def fastest_cpu_beside(point: pd.Series, rows: pd.DataFrame) -> pd.Series | None:
    """Of `rows`, the fastest verified version on the CPU that solved the problem of `point`, in its
    precision or else in fp32. A chooser that merely ran another one does not count. None if there
    is none, if it is the baseline, or if `point` ran on the CPU itself: then `speedup` says it
    all."""
    same = rows["backend"].eq("cpu") & rows["verified"].eq(True) & rows["iteration_ms"].notna()
    # the CSV of a figure has no PLACE
    places = [column for column in (PLACE, "node", "host") if column in rows]
    for column in ("machine", *places, *PROBLEM_BUT_PRECISION):
        # an axis that a version does not have is None in rows and NaN in a CSV
        wanted = point[column]
        same &= rows[column].isna() if pd.isna(wanted) else rows[column].eq(wanted)
    for precision in (point["precision"], "fp32"):
        found = rows[same & rows["precision"].eq(precision)]
        found = found[~merely_chose(found, ["machine"])]
        if len(found) and point["backend"] != "cpu":
            best = found.loc[found["iteration_ms"].astype(float).idxmin()]
            return best if best["iteration_ms"] < point["baseline_iteration_ms"] else None
    return None


def with_speedups(points: pd.DataFrame, baseline: str) -> pd.DataFrame:
    """A copy with the columns of the speedup over `baseline`."""
    points = points.assign(baseline=baseline or None, baseline_elsewhere=False)
    if not baseline:
        return points
    problem = [*PROBLEM_BUT_PRECISION, "machine", PLACE]
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
    for key, place in zip(_keys(base, PROBLEM_BUT_PRECISION), base[PLACE], strict=True):
        ran.setdefault(key, []).append(place)
    mine = points[orphan]
    for at, key in zip(mine.index, _keys(mine, PROBLEM_BUT_PRECISION), strict=True):
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
