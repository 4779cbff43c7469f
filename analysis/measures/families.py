"""Families of versions that tables and figures treat apart."""

from __future__ import annotations

import pandas as pd

CHOOSERS = {"fast": "fast_auto", "fast_cpu": "fast_cpu_auto"}
"""The ladders of this project, each with the version that only passes problems on to the others:
its chooser."""

CHOSEN_FROM = {"fast": ("fast", "multi"), "fast_cpu": ("fast_cpu",)}
"""The families that each chooser knows."""

OURS = (*CHOOSERS, "stream", "multi")
"""All families of this project's own ladders."""

_PEER = "peer"
LIBRARIES = ("python_scipy", "python_sklearn")
"""Versions of a study that call a library's k-means, as peers do."""


def is_peer(points: pd.DataFrame) -> pd.Series:
    """True for the rows of other people's libraries."""
    return points["version"].str.startswith(f"{_PEER}_") | points["version"].isin(LIBRARIES)


def repeats_another(points: pd.DataFrame, problem: list[str]) -> pd.Series:
    """True for the rows of a chooser where the version that it chose has a row of its own, of the
    same values of the columns `problem`. Also where a row does not say what was chosen."""
    of = points.groupby(problem, dropna=False, sort=False).ngroup()
    measured = set(zip(of, points["version"], strict=True))
    there = [
        not isinstance(chosen, str) or (place, chosen.partition("/")[0]) in measured
        for place, chosen in zip(of, points["chosen"], strict=True)
    ]
    return points["version"].isin(CHOOSERS.values()) & pd.Series(there, points.index, dtype=bool)


def ran_version(row: pd.Series) -> str:
    """The version that a chooser ran, without what it was run with. Empty for other versions, and
    where a row does not say."""
    chosen = row.get("chosen")
    if row["version"] not in CHOOSERS.values() or not isinstance(chosen, str):
        return ""
    return chosen.partition("/")[0]


def ran_text(rows: pd.DataFrame) -> str:
    """`where it ran a, b`: the versions that the rows of a chooser ran. Empty for other
    versions."""
    ran = dict.fromkeys(filter(None, (ran_version(row) for _, row in rows.iterrows())))
    return f"where it ran {', '.join(ran)}" if ran else ""


def merely_chose(points: pd.DataFrame, problem: list[str]) -> pd.Series:
    """True for the rows of a chooser whose interval of the time overlaps with that of the version
    that it ran, of the same values of the columns `problem`: the time is that version's."""
    if not points["version"].isin(CHOOSERS.values()).any():
        return pd.Series(False, points.index)
    at = points.groupby(problem, dropna=False, sort=False).ngroup()
    own: dict[tuple, list[pd.Series]] = {}
    for place, (_, row) in zip(at, points.iterrows(), strict=True):
        own.setdefault((place, row["version"]), []).append(row)
    low, high = "iteration_ms_low", "iteration_ms_high"
    mere = [
        any(
            row[low] <= ran[high] and ran[low] <= row[high]
            for ran in own.get((place, ran_version(row)), [])
        )
        for place, (_, row) in zip(at, points.iterrows(), strict=True)
    ]
    return pd.Series(mere, points.index, dtype=bool)


def is_ours(points: pd.DataFrame) -> pd.Series:
    """True for the rows of this project's ladders, without the choosers."""
    return points["family"].isin(OURS) & ~points["version"].isin(CHOOSERS.values())
