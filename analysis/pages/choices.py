"""Judges the choices of fast_auto and fast_cpu_auto: the time beside that of the fastest version
of the family."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.measures.families import CHOOSERS, CHOSEN_FROM
from analysis.measures.fastest import fastest
from analysis.measures.noise import noise_note, noisy_mark
from analysis.measures.places import require_one_place
from analysis.measures.points import all_points
from analysis.measures.stats import Interval, ratio_interval
from analysis.model.files import RunError
from analysis.model.numbers import number_text
from analysis.model.run import PROBLEM, Run
from analysis.pages.table import Table
from analysis.pages.tables import interval_text

PROMISE = 0.05
"""A chooser should lose at most this share of the fastest version's time."""


@dataclass(frozen=True)
class _Loss:
    """What a chooser lost at a problem: its time over that of the fastest other version."""

    ratio: Interval
    problem: tuple
    """The values that the table shows of the problem."""
    chosen: str
    mine: pd.Series
    """The chooser's point."""
    alone: float
    """The time in the own row of the chosen version, in ms per iteration. NaN if it has no row."""
    fast: pd.Series
    """The point of the fastest other version."""

    @property
    def is_over(self) -> bool:
        """True if it is more than PROMISE."""
        return self.ratio.value > 1 + PROMISE

    @property
    def is_another(self) -> bool:
        """True if the fastest version was not chosen."""
        return self.chosen.split("/")[0] != self.fast["version"]


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
    chooser, family = _chooser(run, points)
    points = points[points["family"].isin(CHOSEN_FROM[family])]
    points = points.assign(data=points["data_name"].fillna(points["data"]))
    bests = _fastest_by_gpus(points, chooser)
    chosen, chosen_by = _chosen(run, chooser)
    # The sizes are always shown, and of the other columns those in which problems differ.
    sizes = ["precision", "n", "k", "dim"]
    sizes += [c for c in PROBLEM if c not in sizes and points[c].nunique(dropna=False) > 1]
    losses = _losses(bests, sizes, chooser, chosen)
    if not losses:
        raise RunError(f"{run.path}: no problem that {chooser} and another {family}_ version ran")
    shown = [loss for loss in losses if loss.is_over or loss.is_another or not losses_only]
    header = [
        *(*sizes, *(["gpus"] if [*bests] != [1] else [])),
        *("chosen", *(["by"] if len(chosen_by) else []), f"{chooser}, ms", "chosen alone, ms"),
        *("fastest", "fastest, ms", "ratio [95%]"),
    ]
    said = f"{run.title}: {run.environment_line()}. {_summed_up(chooser, losses)}"
    if noise := noise_note(pd.concat(bests.values())):
        said += f" {noise}"
    rows = [_row(loss, chosen_by) for loss in shown]
    times = {name for name in header if name.endswith(", ms")}
    numeric = {"n", "k", "dim", "batch", "gpus", *times}
    known = {*header[: header.index("chosen")]}
    return Table("choices", said, header, rows, numeric, keys=known)


def _chooser(run: Run, points: pd.DataFrame) -> tuple[str, str]:
    """The chooser that the run has, and its family. Raises RunError if it has none or two."""
    present = {c: ladder for ladder, c in CHOOSERS.items() if points["version"].eq(c).any()}
    if not present:
        raise RunError(f"{run.path}: has no row of {' or '.join(CHOOSERS.values())}")
    if len(present) > 1:
        raise RunError(f"{run.path}: has rows of {' and '.join(present)}; this judges one of them")
    return next(iter(present.items()))


def _fastest_by_gpus(points: pd.DataFrame, chooser: str) -> dict[int, pd.DataFrame]:
    """For each number of GPUs that the chooser was given: its points, and those of the others that
    used as many or fewer."""
    is_mine, gpus = points["version"].eq(chooser), points["gpus"].astype("Float64").fillna(1)
    counts = sorted(int(count) for count in gpus[is_mine].unique())
    return {count: fastest(points[gpus.eq(count) | gpus.le(count) & ~is_mine]) for count in counts}


def _chosen(run: Run, chooser: str) -> tuple[pd.Series, pd.Series]:
    """By point of the chooser: what it chose most often, and how."""
    told = run.measurements[run.measurements["version"].eq(chooser)].dropna(subset="chosen")
    chosen = told.groupby("point")["chosen"].agg(lambda names: names.mode().iat[0])
    # without the reason that may follow
    told_by = told["chosen_by"].dropna().astype(str).str.split(":").str[0]
    chosen_by = told_by.groupby(told["point"]).agg(lambda ways: ", ".join(sorted({*ways})))
    return chosen, chosen_by


def _losses(
    bests: dict[int, pd.DataFrame], sizes: list[str], chooser: str, chosen: pd.Series
) -> list[_Loss]:
    """A loss for each problem that the chooser and another version ran, the largest first."""
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
        values = problem if [*bests] == [1] else (*problem, count)
        losses.append(_Loss(ratio, values, name, mine, alone, fast))
    return sorted(losses, key=lambda loss: -loss.ratio.value)


def _row(loss: _Loss, chosen_by: pd.Series) -> list[str]:
    mine, fast = loss.mine, loss.fast
    return [
        *("–" if pd.isna(value) else str(value) for value in loss.problem),
        loss.chosen,
        *([str(chosen_by.get(mine["point"], "–"))] if len(chosen_by) else []),
        number_text(mine["iteration_ms"]) + noisy_mark(mine),
        number_text(loss.alone) if np.isfinite(loss.alone) else "–",
        fast["version"],
        number_text(fast["iteration_ms"]) + noisy_mark(fast),
        interval_text(*loss.ratio, unit="×"),
    ]


def _summed_up(chooser: str, losses: list[_Loss]) -> str:
    another = [loss for loss in losses if loss.is_another]
    by_choice = [
        loss.alone / loss.fast["iteration_ms"] for loss in another if np.isfinite(loss.alone)
    ]
    return (
        f"{chooser} takes more than {PROMISE:.0%} longer than the fastest other version at "
        f"{sum(loss.is_over for loss in losses)} of {len(losses)} problems, at most "
        f"{losses[0].ratio.value:.2f}× its time. At {len(another)} it chose another version"
        + (f", whose own row takes up to {max(by_choice):.2f}× that time" if by_choice else "")
        + ". Where both rows are of the same version, they differ as two processes do."
    )
