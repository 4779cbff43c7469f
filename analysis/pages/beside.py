"""Other people's fastest version beside ours."""

from __future__ import annotations

import pandas as pd

from analysis.measures.convergence import ROUNDED
from analysis.measures.families import is_ours, is_peer
from analysis.measures.points import NOT_RUN, all_points, noise_note
from analysis.measures.stats import ratio_interval
from analysis.model.files import RunError
from analysis.model.numbers import count_text
from analysis.model.run import Run
from analysis.pages.escape import Code, Words
from analysis.pages.table import Table
from analysis.pages.tables import interval_text, listed, time_text

PROBLEM = ("data_name", "n", "k", "dim", "batch")
"""What makes two points one problem, besides the precision."""


def least(points: pd.DataFrame) -> pd.Series | None:
    """The point with the shortest iteration. None if no point has a result."""
    of = points[points["status"].eq("ok")]
    return of.loc[of["iteration_ms"].idxmin()] if len(of) else None


def who(p: pd.Series | None) -> Words:
    """Its version, precision and time in ms."""
    if p is None:
        return "–"
    return Code(p["version"]), f" {p['precision']}: {time_text(p)}"


def ratio(peer: pd.Series | None, p: pd.Series | None) -> str:
    """How many times as long an iteration of `peer` takes as one of `p`."""
    if peer is None or p is None:
        return "–"
    if peer["point"] == p["point"]:
        return "1.00×"
    return interval_text(*ratio_interval(peer["times_ms"], p["times_ms"]), unit="×")


def left_out(points: pd.DataFrame) -> pd.Series:
    """True for points that were not reached, or whose library was not installed."""
    reason = points["reason"].fillna("").astype(str)
    return points["status"].eq(NOT_RUN) | reason.str.contains("has no package", regex=False)


def beside(run: Run) -> Table:
    """For each problem the fastest version of other people and our two fastest. A problem in fp32
    is compared with the peers that solve it in fp32 or tf32, one of 16 bits with those of 16 bits.
    Raises RunError if the run has no result of ours."""
    points = all_points([run], run.baseline)
    of_ours = points[is_ours(points) & points["status"].eq("ok")]
    if of_ours.empty:
        raise RunError(f"{run.path}: no result of this project's own versions")
    points = points.assign(half=points["precision"].isin(ROUNDED))
    key = [*PROBLEM, "half"]
    varying = [c for c in key[:-1] if points[c].nunique(dropna=False) > 1]
    rows = []
    for _, of in points.groupby(key, sort=False, dropna=False):
        peer, mine = least(of[is_peer(of)]), of[is_ours(of)]
        ours = least(mine)
        if ours is None:
            continue
        second = least(mine[mine["version"].ne(ours["version"])])
        sizes = [str(ours[c]) if c == "data_name" else count_text(int(ours[c])) for c in varying]
        rows.append([*sizes, who(peer), who(ours), ratio(peer, ours), who(second)])
    names = {"data_name": "data", "n": "N", "k": "K"}
    header = [names.get(c, c) for c in varying]
    numeric = {*header} - {"data"} | {"faster by"}
    header += ["best peer, ms", "ours, ms", "faster by", "our next, ms"]
    said = [run.environment_line(), "median of an iteration [95% interval]"]
    peers = points[is_peer(points)]
    ran = set(peers.loc[peers["status"].eq("ok"), "version"])
    if absent := sorted({*peers.loc[left_out(peers), "version"]} - ran):
        said.append(f"peers that did not run: {', '.join(absent)}")
    if noise := noise_note(points):
        said.append(noise.rstrip("."))
    return Table("beside", listed(said), header, rows, numeric)
