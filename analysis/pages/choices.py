"""Judges the choices of fast_auto and fast_cpu_auto: the time beside that of the fastest version
of the family."""

from __future__ import annotations

import numpy as np
import pandas as pd

from analysis.measures.families import CHOOSERS, CHOSEN_FROM
from analysis.measures.points import (
    all_points,
    fastest,
    noise_note,
    noisy_mark,
    require_one_place,
)
from analysis.measures.stats import ratio_interval
from analysis.model.files import RunError
from analysis.model.run import PROBLEM, Run
from analysis.pages.table import Table
from analysis.pages.tables import interval_text

PROMISE = 0.05
"""A chooser should lose at most this share of the fastest version's time."""


def choices(run: Run) -> Table:
    """A table with a row for each problem of `run` that a chooser and another version of its family
    ran. A chooser that was given several GPUs is beside all versions that used as many or fewer. A
    row has the version that was chosen (most often) and how, that version's time in its own row,
    the fastest version, the medians (ms per iteration) and the ratio of the chooser's time to the
    fastest one with its interval. The largest loss comes first. Raises RunError if the run has no
    such problem, or measured a problem in several places."""
    return _table(run, losses_only=False)


def summary(run: Run) -> Table:
    """The same table, but only with problems at which the chooser lost more than PROMISE, or did
    not choose the fastest version."""
    return _table(run, losses_only=True)


def _table(run: Run, losses_only: bool) -> Table:
    points = all_points([run], "")
    require_one_place(points, run.path)
    present = [c for c in CHOOSERS.values() if points["version"].eq(c).any()]
    if not present:
        raise RunError(f"{run.path}: has no row of {' or '.join(CHOOSERS.values())}")
    if len(present) > 1:
        raise RunError(f"{run.path}: has rows of {' and '.join(present)}; this judges one of them")
    chooser = present[0]
    family = next(ladder for ladder, name in CHOOSERS.items() if name == chooser)
    points = points[points["family"].isin(CHOSEN_FROM[family])]
    points = points.assign(data=points["data_name"].fillna(points["data"]))
    is_mine, gpus = points["version"].eq(chooser), points["gpus"].astype("Float64").fillna(1)
    counts = sorted(int(count) for count in gpus[is_mine].unique())
    bests = {count: fastest(points[gpus.eq(count) | gpus.le(count) & ~is_mine]) for count in counts}
    told = run.measurements[run.measurements["version"].eq(chooser)].dropna(subset="chosen")
    chosen = told.groupby("point")["chosen"].agg(lambda names: names.mode().iat[0])
    # without the reason that may follow
    told_by = told["chosen_by"].dropna().astype(str).str.split(":").str[0]
    chosen_by = told_by.groupby(told["point"]).agg(lambda ways: ", ".join(sorted({*ways})))
    # The sizes are always shown, and of the other columns those in which problems differ.
    sizes = ["precision", "n", "k", "dim"]
    sizes += [c for c in PROBLEM if c not in sizes and points[c].nunique(dropna=False) > 1]
    losses = []
    for count, problem, of in (
        (count, problem, of)
        for count, best in bests.items()
        for problem, of in best.groupby(sizes, sort=False, dropna=False)
    ):
        auto, others = of[of["version"].eq(chooser)], of[of["version"].ne(chooser)]
        if auto.empty or others.empty:
            continue
        mine, fast = auto.iloc[0], others.loc[others["iteration_ms"].idxmin()]
        name = str(chosen.get(mine["point"], "–"))
        alone = others.loc[others["version"].eq(name.split("/")[0]), "iteration_ms"].min()
        ratio = ratio_interval(mine["times_ms"], fast["times_ms"])
        values = problem if counts == [1] else (*problem, count)
        losses.append((ratio, values, name, mine, alone, fast))
    if not losses:
        raise RunError(f"{run.path}: no problem that {chooser} and another {family}_ version ran")
    losses.sort(key=lambda loss: -loss[0][0])

    def is_over(loss) -> bool:
        return loss[0][0] > 1 + PROMISE

    def is_another(loss) -> bool:
        return loss[2].split("/")[0] != loss[-1]["version"]

    another = [loss for loss in losses if is_another(loss)]
    by_choice = [alone / fast["iteration_ms"] for *_, alone, fast in another if np.isfinite(alone)]
    if losses_only:
        shown = [loss for loss in losses if is_over(loss) or is_another(loss)]
    else:
        shown = losses
    rows = [
        [
            *("–" if pd.isna(value) else str(value) for value in values),
            *(
                name,
                *([str(chosen_by.get(mine["point"], "–"))] if len(chosen_by) else []),
                f"{mine['iteration_ms']:.3g}{noisy_mark(mine)}",
                f"{alone:.3g}" if np.isfinite(alone) else "–",
            ),
            *(fast["version"], f"{fast['iteration_ms']:.3g}{noisy_mark(fast)}"),
            interval_text(*ratio, unit="×"),
        ]
        for ratio, values, name, mine, alone, fast in shown
    ]
    said = (
        f"{chooser} takes more than {PROMISE:.0%} longer than the fastest other version at "
        f"{sum(map(is_over, losses))} of {len(losses)} problems, at most "
        f"{losses[0][0][0]:.2f}× its time. At {len(another)} it chose another version"
        + (f", whose own row takes up to {max(by_choice):.2f}× that time" if by_choice else "")
        + ". Where both rows are of the same version, they differ as two processes do."
    )
    if noise := noise_note(pd.concat(bests.values())):
        said += f" {noise}"
    header = [
        *(*sizes, *(["gpus"] if counts != [1] else [])),
        *("chosen", *(["by"] if len(chosen_by) else []), "ms", "its own", "fastest", "ms"),
        "ratio [95%]",
    ]
    said = f"{run.title}: {run.environment_line()}. {said}"
    return Table("choices", said, header, rows, {"n", "k", "dim", "batch", "gpus", "ms", "its own"})
