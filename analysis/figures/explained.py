"""Figures of docs/ that explain: what a trace looks like, and what an interval is made of. They
need more than a spec's figures get, so a spec cannot ask for them; `python -m analysis readme`
draws them."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from analysis.figures import style
from analysis.figures.drawing import Drawing
from analysis.figures.page import Page
from analysis.figures.row_axis import at_right, row_labels, rows_axis
from analysis.figures.typeset import text_width, wrap
from analysis.measures.fastest import fastest
from analysis.measures.points import all_points
from analysis.measures.stats import Samples, median_interval
from analysis.model.numbers import count_text
from analysis.model.run import Run
from analysis.model.timeline import events_of

TRACKS = {"iteration": 0, "phase": 1, "api": 2, "kernel": 3, "copy": 3, "memset": 3}
TRACK_NAMES = ["iteration", "phase", "CUDA calls", "GPU"]
SHOWN = (1, 2)
"""The iterations of a trace that are drawn: the first one is still warming up."""


def timeline(run: Run) -> Drawing:
    """Two iterations of each traced point, on the tracks that Perfetto and Nsight Systems have:
    ranges, CUDA calls, and the GPU's kernels and copies."""
    events = events_of(run)
    events = events[events["kind"].isin(TRACKS)]
    shown = pd.concat(_in_window(of) for _, of in events.groupby("point", sort=False))
    colours = _colours(shown)
    legend = [
        (f"{TRACK_NAMES[track]}: {name}", {"color": colour, "marker": "s", "linestyle": "none"})
        for (track, name), colour in colours.items()
    ]
    page = Page(
        f"{run.title}: two iterations on a timeline",
        wrap(run.environment_line(), style.width() - 0.2),
        _grey(
            "Drawn from timeline.jsonl, which timeline.json has in Perfetto's format. The ranges "
            "are the harness's NVTX ranges on the host's clock. The host runs ahead of the GPU: a "
            "kernel begins after the call that launched it, and a copy to the host waits for it."
        ),
        [point.replace("/", ", ") for point in events["point"].unique()],
        1,
        1.05,
        left=max(map(text_width, TRACK_NAMES)) + 0.2,
        right=0.25,
        below=0.4,
        legend=legend,
    )
    for axes, (_, of) in zip(page.axes, shown.groupby("point", sort=False), strict=True):
        width = float(of["window_us"].iloc[0])
        for event in of.itertuples():
            _bar(axes, event, colours)
        rows_axis(axes, TRACK_NAMES, len(TRACK_NAMES))
        axes.set_xlim(0, width)
        axes.set_xticks([tick for tick in axes.get_xticks() if tick <= width])
        axes.set_xlabel("µs")
    return Drawing("timeline", page.figure, shown.drop(columns="window_us"))


def _colours(shown: pd.DataFrame) -> dict[tuple[int, str], str]:
    """A colour for each name on each track but the iterations'; tracks begin again with the first
    colour."""
    colours = {}
    for track in range(1, len(TRACK_NAMES)):
        names = shown.loc[shown["kind"].map(TRACKS).eq(track), "name"].unique()
        for name, colour in zip(names, style.COLOURS * len(names), strict=False):
            colours[track, name] = colour
    return colours


def _in_window(of: pd.DataFrame) -> pd.DataFrame:
    """The events of a point in a window from the beginning of the first of SHOWN to the end of the
    last. `from_us` is their time in the window, which is `window_us` long."""
    ends = of["start_us"] + of["duration_us"]
    ranges = of["kind"].eq("iteration") & of["iteration"].isin(SHOWN)
    start, end = of.loc[ranges, "start_us"].min(), ends[ranges].max()
    inside = of[(of["start_us"] < end) & (ends > start)]
    return inside.assign(from_us=inside["start_us"] - start, window_us=end - start)


def _bar(axes: Axes, event, colours: dict[tuple[int, str], str]) -> None:
    track = TRACKS[event.kind]
    axes.broken_barh(
        [(event.from_us, event.duration_us)],
        (track - 0.38, 0.76),
        facecolor=colours.get((track, event.name), style.FAINT),
        edgecolor="white",
        linewidth=0.4,
    )
    if event.kind == "iteration":
        axes.text(
            event.from_us + event.duration_us / 2,
            track,
            f"iteration {event.iteration}",
            ha="center",
            va="center",
            clip_on=True,
        )


NEAR, FAR = 10, 100
"""In percent of the median. If a sample is farther away than FAR, the axis of `samples` is linear
up to NEAR only, because the others would be one spot."""


def samples(run: Run) -> Drawing:
    """Every sample of each version at its fastest tunables for one problem, relative to its median,
    with the median's interval: the samples themselves, and what is said of them."""
    points = _at_largest(run)
    labels, widest, tall = row_labels(list(points["version"]), 1.9)
    counts = [f"{len(times)} samples" for times in points["times_ms"]]
    first = points.iloc[0]
    page = Page(
        f"{run.title}: samples, medians and intervals",
        wrap(run.environment_line(), style.width() - 0.2),
        _grey(
            "A dot is one sample. The line is the median, and the bar its 95% interval of order "
            "statistics. Every sample counts; none was taken out."
        ),
        [f"K = {count_text(first['k'])}, N = {count_text(first['n'])}, dim {first['dim']}"],
        1,
        (0.16 + 0.12 * tall) * len(points),
        left=widest + 0.2,
        right=max(map(text_width, counts)) + 0.2,
        below=0.42,
    )
    (axes,) = page.axes
    axes.use_sticky_edges = False  # the axis would begin where a bar does, in the middle of a dot
    rows = []
    for row, point in enumerate(points.itertuples()):
        percents = _draw_samples(axes, row, point.times_ms)
        at_right(axes, row, counts[row], style.GREY)
        rows += [
            {"version": point.version, "point": point.point, "iteration_ms": ms, "percent": percent}
            for ms, percent in zip(point.times_ms.pooled, percents, strict=True)
        ]
    rows_axis(axes, list(labels.values()), len(points))
    drawn = pd.DataFrame(rows)
    _percent_axis(axes, drawn["percent"].max())
    return Drawing("samples", page.figure, drawn)


def _at_largest(run: Run) -> pd.DataFrame:
    """The points with an interval, each version's fastest, at the largest N, K and dim."""
    points = fastest(all_points([run], run.baseline))
    points = points[points["iteration_ms_low"].notna()]
    points = points[points["n"].eq(points["n"].max())]
    return points[points["k"].eq(points["k"].max()) & points["dim"].eq(points["dim"].max())]


def _draw_samples(axes: Axes, row: int, times: Samples) -> np.ndarray:
    """Draws the samples of a point, their median and its interval. Returns the samples in percent
    of the median."""
    median, low, high = median_interval(times)
    percents = 100 * (times.pooled / median - 1)
    # beside one another, so that equal times stay apart; the same in every drawing
    height = row + 0.56 * (np.arange(len(percents)) * 0.618 % 1 - 0.5)
    axes.barh(row, 100 * (high - low) / median, 0.8, 100 * (low / median - 1), color=style.FAINT)
    axes.plot(percents, height, ".", color=style.COLOURS[0], markersize=2.5)
    axes.plot([0, 0], [row - 0.4, row + 0.4], color=style.COLOURS[1])
    return percents


def _percent_axis(axes: Axes, largest: float) -> None:
    label = "time of an iteration, relative to the median (%)"
    if largest > FAR:
        axes.set_xscale("symlog", linthresh=NEAR, linscale=2)
        axes.set_xlim(right=2 * largest)
        axes.xaxis.set_major_formatter("{x:,.0f}")
        label += f"; logarithmic beyond ±{NEAR}%"
    axes.set_xlabel(label)


def _grey(text: str) -> list[tuple[str, str]]:
    return [(line, style.GREY) for line in wrap(text, style.width() - 0.2)]


EXPLAINED = {"timeline": timeline, "samples": samples}
SHOWS = {
    "timeline": "Two iterations of each point on four tracks: iterations, phases, CUDA calls, and "
    "the kernels and copies of the GPU.",
    "samples": "A row for each version with all its samples, their median, and its 95% interval.",
}
"""What stands for a figure where it cannot be seen."""
