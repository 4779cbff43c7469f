"""clustering: for 2-D data, the points in the colour of their cluster, and the centroids' paths.

A run directory contains no points. They are computed here again, from the generator that the spec
names. Labels and centroids are those that the run kept (--save), else they are computed here, too,
from the initial centroids. If the inertia differs from the measured one, the clustering is another
one and is not drawn."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from analysis.figures import style
from analysis.figures.drawing import Drawing, Subject
from analysis.figures.notes import notes_alone
from analysis.figures.page import Page
from analysis.measures.generators import generate, random_points
from analysis.measures.points import Data
from analysis.model.answers import PARTS, Answers, answers
from analysis.model.numbers import count_text
from analysis.model.run import Run

NAME = "clustering"
MOST_WORK = 4e7
"""The limit on points × clusters × iterations, which take less than a second."""
MOST_CLUSTERS = 100
"""More clusters cannot be told apart on a page."""
MOST_DRAWN = 8_000
"""The limit on points in the picture. Of more, evenly spaced ones are drawn."""
CLOSE = 1e-4
"""The relative difference of inertia in fp32. Another clustering differs by more."""


class _NotDrawnError(Exception):
    """The run has no clustering that can be drawn. The text says why."""


@dataclass(frozen=True)
class _Clustering:
    """The centroids after each iteration that is known (steps × k × 2; the last is the end), the
    cluster of each point, and a sentence about where they are from."""

    path: np.ndarray
    labels: np.ndarray
    origin: str


def draw(data: Data, subject: Subject) -> Drawing:
    """Draws the largest 2-D problem of the first run that is quick to compute; of those whose
    answers were kept, if there are any. The rows are the centroids, one for each iteration ×
    cluster, and how many points it has at the end. Of a kept answer, there is only the end."""
    run = data.runs[0]
    try:
        chosen, kept = _choose(run)
        points = _points(run, chosen)
        found = _computed(run, chosen, points) if kept is None else _kept(kept, chosen)
        note = f"{found.origin} {_compared(found.path[-1], points, chosen['inertia'])}"
    except _NotDrawnError as why:
        columns = ["drawn", "iteration", "cluster", "x", "y", "points"]
        return Drawing(NAME, None, pd.DataFrame(columns=columns), str(why))
    figure = _picture(points, found, chosen, subject, note)
    return Drawing(NAME, figure, _rows(found.path, found.labels, int(chosen["iterations"])))


def _choose(run: Run) -> tuple[pd.Series, Answers | None]:
    """The measurement to draw: with the most clusters, among those the most points, and of seeds
    and restarts the best. With it, the answers of the run, if its own was kept."""
    solve = run.spec.get("solve") or {}
    if solve.get("distance") == "cosine":
        raise _NotDrawnError(
            "two-dimensional points of length 1 lie on a circle, so they are not drawn"
        )
    rows = run.measurements
    names = rows["data_name"].fillna("")
    generated = [name for name in names.unique() if run.source(name).get("generator")]
    rows = rows[names.isin(generated)]
    if rows.empty:
        raise _NotDrawnError("the points are not generated, so they are not drawn")
    kept = answers(run)
    rows = rows[rows["status"].eq("ok") & rows["dim"].eq(2) & rows["inertia"].gt(0)]
    rows = rows[rows["batch"].eq(1)]
    rows = rows[rows["k"].le(MOST_CLUSTERS) & rows["k"].le(rows["n"])]
    whole = rows["point"].isin([point for point in kept if len(kept.parts(point)) == len(PARTS)])
    init = rows["init"].where(rows["init"].ne(""), solve.get("init") or "random_points")
    drawn = whole if whole.any() else init.eq("random_points")
    if len(rows) and not drawn.any():
        others = ", ".join(init.unique())
        raise _NotDrawnError(
            f"init {others} is not computed here; --save labels,centroids keeps answers"
        )
    rows = rows[drawn]
    steps = 1.0 if whole.any() else rows["iterations"].astype(float)
    rows = rows[rows["n"].astype(float) * rows["k"].astype(float) * steps <= MOST_WORK]
    if rows.empty:
        raise _NotDrawnError(
            f"no problem here has two dimensions, at most {MOST_CLUSTERS} clusters and few points"
        )
    order = {"k": True, "n": True, "inertia": False}
    ranked = rows.sort_values([*order], ascending=[*order.values()], kind="stable")
    return ranked.iloc[-1], kept if whole.any() else None


def _points(run: Run, chosen: pd.Series) -> np.ndarray:
    """The points (n × 2) that were clustered, from the spec's generator."""
    name = chosen["data_name"]
    made = run.source(name if isinstance(name, str) else "")
    try:
        seed = int(chosen["data_seed"] or made.get("seed") or 42)
        return generate(made["generator"], int(chosen["n"]), 2, seed, **_options(made))
    except ValueError as error:
        raise _NotDrawnError(str(error)) from error


def _kept(kept: Answers, chosen: pd.Series) -> _Clustering:
    answer = kept[chosen["point"]]
    origin = (
        f"Points by cluster, and the centroids, after {int(chosen['iterations'])} iterations: the "
        f"answer of {chosen['version']} that the run kept."
    )
    return _Clustering(answer.centroids[None].astype(float), answer.labels.astype(int), origin)


def _computed(run: Run, chosen: pd.Series, points: np.ndarray) -> _Clustering:
    k, iterations = int(chosen["k"]), int(chosen["iterations"])
    solve = run.spec.get("solve") or {}
    start = random_points(points, k, int(chosen["init_seed"] or solve.get("seed") or 1))
    origin = (
        f"Points by cluster; lines: the centroids' paths over {iterations} iterations, from "
        "the ring (drawn at random from the points) to the black dot. Computed anew in float64 "
        "from the spec's generator and seeds."
    )
    return _Clustering(*lloyd(points, start, iterations), origin)


def _compared(end: np.ndarray, points: np.ndarray, measured: float) -> str:
    """Says the inertia with the centroids `end`, and the measured one. Raises _NotDrawnError if
    they are of two clusterings."""
    inertia = float(np.sum((points - end[assign(points, end)]) ** 2, dtype=float))
    if not abs(inertia / measured - 1) < CLOSE:
        raise _NotDrawnError(
            f"inertia {inertia:.6g} here, {measured:.6g} measured: another clustering, not drawn"
        )
    return f"Inertia {inertia:.6g} here; of the run: {measured:.6g}."


def lloyd(points: np.ndarray, start: np.ndarray, iterations: int) -> tuple[np.ndarray, np.ndarray]:
    """Runs Lloyd's algorithm in float64. Returns the centroids before and after each iteration
    ((iterations + 1) × k × dim) and the labels of the last assignment. Ties go to the lowest index,
    and empty clusters keep their centroid."""
    path = [start.astype(float)]
    labels = np.zeros(len(points), dtype=int)
    for _ in range(iterations):
        labels = assign(points, path[-1])
        counts = np.bincount(labels, minlength=len(start))
        sums = np.stack(
            [
                np.bincount(labels, weights=points[:, t], minlength=len(start))
                for t in range(points.shape[1])
            ],
            axis=1,
        )
        filled = counts[:, None] > 0
        path.append(np.where(filled, sums / np.maximum(counts, 1)[:, None], path[-1]))
    return np.array(path), labels


def assign(points: np.ndarray, centroids: np.ndarray) -> np.ndarray:
    """The nearest centroid of each point, in float64."""
    labels = np.empty(len(points), dtype=int)
    rows = max(1, 4_000_000 // len(centroids))
    for begin in range(0, len(points), rows):
        some = points[begin : begin + rows].astype(float)
        squared = sum(
            (some[:, t, None] - centroids[None, :, t]) ** 2 for t in range(points.shape[1])
        )
        labels[begin : begin + rows] = squared.argmin(axis=1)
    return labels


def _options(made: dict) -> dict:
    return {name: made.get(name) for name in ("range", "centers", "sigma")}


def _hues(centroids: np.ndarray) -> list[str]:
    """A colour for each cluster that its nearest neighbours do not have."""
    hues = [colour for colour in style.COLOURS if colour != "#000000"]
    chosen: list[int] = []
    for cluster, centre in enumerate(centroids):
        order = np.argsort(((centroids[:cluster] - centre) ** 2).sum(axis=1))
        near = [chosen[other] for other in order[:12]]
        # the colour whose nearest use among the neighbours is farthest away
        chosen.append(max(range(len(hues)), key=lambda h, near=near: _first(near, h)))
    return [hues[h] for h in chosen]


def _first(near: list[int], hue: int) -> int:
    return near.index(hue) if hue in near else len(near)


def _rows(path: np.ndarray, labels: np.ndarray, iterations: int) -> pd.DataFrame:
    """`path` ends after `iterations`."""
    steps, k, _ = path.shape
    counts = np.bincount(labels, minlength=k)
    return pd.DataFrame(
        {
            "drawn": True,
            "iteration": np.repeat(np.arange(iterations + 1 - steps, iterations + 1), k),
            "cluster": np.tile(np.arange(k), steps),
            "x": path[:, :, 0].ravel(),
            "y": path[:, :, 1].ravel(),
            "points": np.tile(counts, steps),
        }
    )


def _picture(
    points: np.ndarray, found: _Clustering, chosen: pd.Series, subject: Subject, note: str
) -> Figure:
    path, labels = found.path, found.labels
    n, k = len(points), path.shape[1]
    every = max(1, -(-n // MOST_DRAWN))
    of = slice(None, None, every)
    note += "" if every == 1 else f" One point in {every} is drawn."
    title = f"N = {count_text(n)}, K = {count_text(k)}"
    low, high = points.min(axis=0), points.max(axis=0)
    width = min(4.6, style.width() - 0.7)
    page = Page(
        f"{subject.title}: the clustering",
        [str(chosen["data"])],
        notes_alone([note]),
        [title],
        1,
        width * min(1.0, max(0.5, (high[1] - low[1]) / max(high[0] - low[0], 1e-30))),
        left=max((style.width() - width) / 2, 0.55),
        right=(style.width() - width) / 2 if style.width() - width > 1.1 else 0.15,
        below=0.42,
    )
    (axes,) = page.axes
    hues = np.array(_hues(path[-1]))
    axes.scatter(
        *points[of].T, c=hues[labels[of]], s=2.2 if n > 2000 else 6, linewidths=0, rasterized=True
    )
    if len(path) > 1:
        for cluster in range(k):
            axes.plot(*path[:, cluster].T, color="white", linewidth=1.7, zorder=3)
            axes.plot(*path[:, cluster].T, color=style.INK, linewidth=0.8, zorder=3)
        ring = {"markerfacecolor": "white", "markersize": 3.4, "zorder": 4}
        axes.plot(*path[0].T, "o", color=style.INK, **ring)
    axes.plot(*path[-1].T, "o", color="black", markeredgecolor="white", markersize=4.2, zorder=5)
    axes.grid(visible=False)
    margin = 0.02 * (high - low)
    axes.set_xlim(low[0] - margin[0], high[0] + margin[0])
    axes.set_ylim(low[1] - margin[1], high[1] + margin[1])
    axes.set_xlabel("x")
    axes.set_ylabel("y")
    return page.figure
