"""Which of several points stands for a version, and what distinguishes those that are left."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from analysis.model.run import PROBLEM

CONDITIONS = {"gpus": 1, "device_memory": 0, "host_memory": "pageable"}
"""Axes that say what a version may use, or where its data are, and what holds for versions that do
not read them. Other than of a tunable, the fastest value does not stand for the others."""

MOST_GIB = 1 << 20
"""device_memory is in GiB up to here, and in bytes above (kernels/core/device_memory.h)."""


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
        gib = value if value <= MOST_GIB else value / 2**30
        return f"{gib:g} GiB" if value else "all memory"
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
