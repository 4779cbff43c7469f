"""clustering: for 2-D data, the points in the colour of their cluster, and the centroids' paths.

A run directory contains neither points nor labels. Both are computed here again, from the generator
and the initial centroids that the spec names. If the inertia differs from the measured one, the
clustering is another one and is not drawn."""

from __future__ import annotations

import numpy as np
import pandas as pd

from analysis.figures import style
from analysis.figures.drawing import Drawing, Subject
from analysis.figures.notes import NOTE_WIDTH
from analysis.figures.page import Page
from analysis.figures.typeset import wrap
from analysis.measures.generators import generate, random_points
from analysis.measures.points import Data
from analysis.model.numbers import count_text

NAME = "clustering"
MOST_WORK = 4e7
"""The limit on points × clusters × iterations, which take less than a second."""
MOST_CLUSTERS = 100
"""More clusters cannot be told apart on a page."""
MOST_DRAWN = 8_000
"""The limit on points in the picture. Of more, evenly spaced ones are drawn."""
CLOSE = 1e-4
"""The relative difference of inertia in fp32. Another clustering differs by more."""


def draw(data: Data, subject: Subject) -> Drawing:
    """Draws the largest 2-D problem of the first run that is quick to compute. The rows are the
    centroids, one for each iteration × cluster, and how many points it has at the end."""
    empty = pd.DataFrame(columns=["drawn", "iteration", "cluster", "x", "y", "points"])
    run = data.runs[0]
    made = run.spec.get("data") or {}
    solve = run.spec.get("solve") or {}
    if not made.get("generator"):
        return Drawing(NAME, None, empty, "the points are not generated, so they are not drawn")
    if (init := solve.get("init") or "random_points") != "random_points":
        return Drawing(NAME, None, empty, f"init {init} is not computed here")
    rows = run.measurements
    ok = rows[rows["status"].eq("ok") & rows["dim"].eq(2) & rows["inertia"].notna()]
    work = ok["n"].astype(float) * ok["k"].astype(float) * ok["iterations"].astype(float)
    ok = ok[(work <= MOST_WORK) & (ok["k"] <= MOST_CLUSTERS) & (ok["k"] <= ok["n"])]
    ok = ok[ok["inertia"] > 0]
    if ok.empty:
        why = f"no problem here has two dimensions, at most {MOST_CLUSTERS} clusters and few points"
        return Drawing(NAME, None, empty, why)
    # the most clusters, and among those the most points
    chosen = ok.sort_values(["k", "n"], kind="stable").iloc[-1]
    n, k, iterations = (int(chosen[c]) for c in ("n", "k", "iterations"))
    try:
        points = generate(made["generator"], n, 2, int(made.get("seed") or 42), **_options(made))
    except ValueError as error:
        return Drawing(NAME, None, empty, str(error))
    path, labels = lloyd(points, random_points(points, k, int(solve.get("seed") or 1)), iterations)
    inertia = float(np.sum((points - path[-1][assign(points, path[-1])]) ** 2, dtype=float))
    if not abs(inertia / chosen["inertia"] - 1) < CLOSE:
        why = (
            f"inertia {inertia:.6g} here, {chosen['inertia']:.6g} measured: another clustering, "
            "not drawn"
        )
        return Drawing(NAME, None, empty, why)
    rows = _rows(path, labels)
    return Drawing(NAME, _picture(points, labels, path, chosen, subject, inertia), rows)


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


def _rows(path: np.ndarray, labels: np.ndarray) -> pd.DataFrame:
    steps, k, _ = path.shape
    counts = np.bincount(labels, minlength=k)
    return pd.DataFrame(
        {
            "drawn": True,
            "iteration": np.repeat(np.arange(steps), k),
            "cluster": np.tile(np.arange(k), steps),
            "x": path[:, :, 0].ravel(),
            "y": path[:, :, 1].ravel(),
            "points": np.tile(counts, steps),
        }
    )


def _picture(points, labels, path, chosen, subject, inertia):
    n, k, iterations = len(points), path.shape[1], len(path) - 1
    every = max(1, -(-n // MOST_DRAWN))
    of = slice(None, None, every)
    drawn = "" if every == 1 else f" Every {every}th point is drawn."
    notes = [
        f"Points by cluster; lines: the centroids' paths over {iterations} iterations, from the "
        f"ring (drawn at random from the points) to the black dot.{drawn} Computed anew in float64 "
        f"from the spec's generator and seeds: inertia {inertia:.6g}; of the run: "
        f"{chosen['inertia']:.6g}."
    ]
    title = f"N = {count_text(n)}, K = {count_text(k)}"
    low, high = points.min(axis=0), points.max(axis=0)
    width = min(4.6, style.width() - 0.7)
    page = Page(
        f"{subject.title}: the clustering",
        [str(chosen["data"])],
        [(line, style.GREY) for note in notes for line in wrap(note, NOTE_WIDTH)],
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
    for cluster in range(k):
        axes.plot(*path[:, cluster].T, color="white", linewidth=1.7, zorder=3)
        axes.plot(*path[:, cluster].T, color=style.INK, linewidth=0.8, zorder=3)
    axes.plot(*path[0].T, "o", color=style.INK, markerfacecolor="white", markersize=3.4, zorder=4)
    axes.plot(*path[-1].T, "o", color="black", markeredgecolor="white", markersize=4.2, zorder=5)
    axes.grid(visible=False)
    margin = 0.02 * (high - low)
    axes.set_xlim(low[0] - margin[0], high[0] + margin[0])
    axes.set_ylim(low[1] - margin[1], high[1] + margin[1])
    axes.set_xlabel("x")
    axes.set_ylabel("y")
    return page.figure
