"""Families of versions that tables and figures treat apart."""

from __future__ import annotations

import pandas as pd

CHOOSERS = {"fast": "fast_auto", "fast_cpu": "fast_cpu_auto"}
"""The ladders of this project, each with the version that only passes problems on to the others. So
a chooser is never itself the fastest."""

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


def is_ours(points: pd.DataFrame) -> pd.Series:
    """True for the rows of this project's ladders, without the choosers."""
    return points["family"].isin(OURS) & ~points["version"].isin(CHOOSERS.values())
