"""OLD against NEW, point by point: Mann-Whitney's test with Holm's correction, ratios of medians by
bootstrap."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pandas as pd
from scipy.stats import mannwhitneyu

from analysis.derive import all_points
from analysis.load import Run, RunError
from analysis.stats import CONFIDENCE, holm, ratio_interval

SLOWER, FASTER, ALIKE = "slower", "faster", "no difference found"
FEW, BASES = "too few samples", "different clocks"
LOST, GAINED, NEITHER = "lost", "gained", "no result in either"
COLUMNS = ["point", "verdict", "old_ms", "new_ms", "ratio", "low", "high", "p", "why"]


def compare(old: Run, new: Run, threshold: float, across: bool = False) -> pd.DataFrame:
    """One row for each point that either run has: COLUMNS.

    `ratio` is NEW's median over OLD's with its 95% interval, `p` Mann-Whitney's two-sided p after
    Holm's correction over all points tested. A point is slower or faster when p is below 5% and
    the whole interval is beyond `threshold` (0.02: 2%). No verdict where even samples that do not
    overlap could not reach 5%, and none across clocks. `lost`: a result in OLD and none in NEW.

    Raises RunError for runs of different machines, unless `across`."""
    if not across:
        _refuse_other_machines(old, new)
    sides = [all_points([run], "").set_index("point") for run in (old, new)]
    names = list(dict.fromkeys([*sides[0].index, *sides[1].index]))
    rows = [_pair(name, *(_row(side, name) for side in sides)) for name in names]
    table = pd.DataFrame(rows, columns=[*COLUMNS, "reachable"])
    tested = table["p"].notna()
    table.loc[tested, "p"] = holm(table.loc[tested, "p"].to_numpy())
    for index in table.index[tested]:
        row = table.loc[index]
        if row["p"] < 1 - CONFIDENCE:
            beyond = row["low"] > 1 + threshold, row["high"] < 1 / (1 + threshold)
            table.loc[index, "verdict"] = SLOWER if beyond[0] else FASTER if beyond[1] else ALIKE
            why = "" if any(beyond) else f"differs by less than {threshold:.0%}"
            table.loc[index, "why"] = why
        elif row["reachable"] * tested.sum() >= 1 - CONFIDENCE:
            table.loc[index, ["verdict", "why"]] = (
                FEW,
                (f"{row['why']} among {tested.sum()} points: even samples apart would not show"),
            )
        else:
            table.loc[index, ["verdict", "why"]] = ALIKE, ""
    return table[COLUMNS]


def exit_status(table: pd.DataFrame) -> int:
    """For CI: 1 when a point is slower or lost, 2 when no point could be judged, else 0."""
    verdicts = set(table["verdict"])
    if verdicts & {SLOWER, LOST}:
        return 1
    return 0 if verdicts & {FASTER, ALIKE} else 2


def summary(table: pd.DataFrame) -> str:
    """`2 slower, 1 faster, 37 no difference found`."""
    counts = Counter(table["verdict"])
    order = [SLOWER, LOST, FASTER, GAINED, ALIKE, FEW, BASES, NEITHER]
    return ", ".join(f"{counts[verdict]} {verdict}" for verdict in order if counts[verdict])


def _refuse_other_machines(old: Run, new: Run) -> None:
    for what, a, b in (
        ("GPU", old.gpu, new.gpu),
        ("CPU", *((run.environment.get("cpu") or {}).get("model") for run in (old, new))),
    ):
        if a != b:
            raise RunError(
                f"{new.path}: measured on the {what} {b or 'unknown'}, {old.path} on "
                f"{a or 'unknown'}; --across-machines compares them all the same"
            )


def _row(side: pd.DataFrame, name: str) -> pd.Series | None:
    return side.loc[name] if name in side.index else None


def _pair(name: str, old: pd.Series | None, new: pd.Series | None) -> tuple:
    """COLUMNS and the least p that so many samples can reach; p as yet uncorrected."""
    said = [_why_not(side) for side in (old, new)]
    empty = (np.nan,) * 6
    if any(said):
        verdict = NEITHER if all(said) else GAINED if said[0] else LOST
        if verdict == LOST and (new is None or new["status"] in ("unsupported", "not run")):
            # not asked for, or not possible here: nothing that NEW's code did
            verdict = NEITHER
        return name, verdict, *empty, f"OLD: {said[0] or 'ok'}; NEW: {said[1] or 'ok'}", np.nan
    bases = [side["timing_basis"] for side in (old, new)]
    medians = [side["iteration_ms"] for side in (old, new)]
    if bases[0] != bases[1]:
        return name, BASES, *medians, *empty[2:], f"{bases[0]} and {bases[1]}", np.nan
    samples = [side["times_ms"] for side in (old, new)]
    counts = [len(s) for s in samples]
    ratio = ratio_interval(samples[1], samples[0])
    said = f"{counts[0]} and {counts[1]} samples"
    if min(counts) == 0 or np.isnan(ratio.low):
        why = f"{said}, an interval needs 6 on each side"
        return name, FEW, *medians, *ratio, np.nan, why, np.nan
    p = float(mannwhitneyu(*samples, alternative="two-sided").pvalue)
    return name, ALIKE, *medians, *ratio, p, said, 2 / math.comb(sum(counts), counts[0])


def _why_not(side: pd.Series | None) -> str:
    if side is None:
        return "not there"
    return "" if side["status"] == "ok" else f"{side['status']} ({side['reason']})"
