"""Other people's fastest version beside ours."""

from __future__ import annotations

import pandas as pd

from analysis.measures.convergence import ROUNDED
from analysis.measures.families import is_ours, is_peer
from analysis.measures.noise import noise_note
from analysis.measures.places import require_one_place
from analysis.measures.points import NOT_RUN, all_points
from analysis.measures.stats import ratio_interval
from analysis.model.files import RunError
from analysis.model.numbers import count_text
from analysis.model.run import Run
from analysis.pages.escape import Code, Words
from analysis.pages.table import Table
from analysis.pages.tables import interval_said, interval_text, listed, time_text

_PROBLEM = ("data_name", "n", "k", "dim", "batch")


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


def problems(points: pd.DataFrame) -> tuple[list[str], list[tuple[list[str], pd.DataFrame]]]:
    """The names of the sizes by which problems differ, and for each problem their values and its
    points. A problem in fp32 goes with what solves it in fp32 or tf32, one of 16 bits with 16 bits.
    """
    half = points["precision"].isin(ROUNDED).rename("half")
    varying = [c for c in _PROBLEM if points[c].nunique(dropna=False) > 1]
    names = {"data_name": "data", "n": "N", "k": "K"}
    parts = []
    for _, of in points.groupby([*_PROBLEM, half], sort=False, dropna=False):
        one = of.iloc[0]
        sizes = [str(one[c]) if c == "data_name" else count_text(int(one[c])) for c in varying]
        parts.append((sizes, of))
    return [names.get(c, c) for c in varying], parts


def beside(run: Run) -> Table:
    """For each problem the fastest version of other people and our two fastest. Raises RunError if
    the run has no result of ours, or measured a problem in several places."""
    points = all_points([run], run.baseline)
    require_one_place(points, run.path)
    of_ours = points[is_ours(points) & points["status"].eq("ok")]
    if of_ours.empty:
        raise RunError(f"{run.path}: no result of this project's own versions")
    header, parts = problems(points)
    rows, shown = [], []
    for sizes, of in parts:
        peer, mine = least(of[is_peer(of)]), of[is_ours(of)]
        ours = least(mine)
        if ours is None:
            continue
        second = least(mine[mine["version"].ne(ours["version"])])
        rows.append([*sizes, who(peer), who(ours), ratio(peer, ours), who(second)])
        shown += [p["times_ms"] for p in (peer, ours, second) if p is not None]
    known = {*header}
    numeric = known - {"data"} | {"faster by"}
    header += ["best peer, ms", "ours, ms", "faster by", "our next, ms"]
    intervals = interval_said(shown)
    said = [run.environment_line(), f"median of an iteration {intervals}"]
    peers = points[is_peer(points)]
    ran = set(peers.loc[peers["status"].eq("ok"), "version"])
    if absent := sorted({*peers.loc[left_out(peers), "version"]} - ran):
        said.append(f"peers that did not run: {', '.join(absent)}")
    if noise := noise_note(points):
        said.append(noise.rstrip("."))
    return Table("beside", listed(said), header, rows, numeric, keys=known)
