"""noise: the scatter of each point's samples, against the time of a solve."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes

from analysis.figures import style
from analysis.figures.drawing import Drawing, Subject, csv_rows
from analysis.figures.notes import (
    needing_no_baseline,
    noisy_note,
    nothing_to_draw,
    small_print,
    subtitle,
)
from analysis.figures.page import Page
from analysis.figures.scales import log_axis
from analysis.figures.series import ring, series_names, series_styles
from analysis.figures.typeset import break_label, text_width
from analysis.figures.x_axis import XAxis, named, nothing_on_x, x_axis
from analysis.measures.points import Data

NAME = "noise"
TIME = "time"


def draw(data: Data, subject: Subject, x: str = TIME) -> Drawing:
    """Draws each point's relative 95% half-width of the median (mark) and the half-range of its
    samples (stem) against its time per solve or axis `x`; the spec's max_noise as a line."""
    figure_name = named(NAME, x, TIME)
    points = needing_no_baseline(data.points)
    ok = points[points["status"].eq("ok") & points["iteration_ms_low"].notna()]
    if x != TIME:
        ok = ok[ok[x].notna()]
    rows = csv_rows(points, ok.index)
    if why := _why_not(ok, points, x):
        return Drawing(figure_name, None, rows, why)
    ok = _with_scatter(ok).assign(series=series_names(ok, x))
    for name, column in (("noise", "half_width"), ("spread", "spread")):
        rows[f"{name}_percent"] = ok[column].reindex(rows.index)
    styles = series_styles(ok, points, subject.baseline)
    along = None if x == TIME else x_axis(ok, x)
    ok["at"] = ok["solve_ms"] if along is None else _places(ok, along, list(styles))
    limits = _limits(data)
    limit_name = "max_noise" if style.is_narrow() else "spec's max_noise"
    left, right = 0.6, max(text_width(limit_name), 0.5) + 0.3
    page = Page(
        f"{subject.title}: noise{f' over {along.short}' if along else ''}",
        subtitle(points, subject),
        small_print(points, ok.index, _notes(ok, limits), f"{figure_name}.csv"),
        [f"{len(ok)} points"],
        1,
        2.6,
        left=left,
        right=right,
        below=0.45 + (along.room(style.width() - left - right) if along else 0),
        legend=[
            (break_label(s, 1.7).replace("\n", " "), {**look, "linestyle": "none"})
            for s, look in styles.items()
        ],
    )
    (axes,) = page.axes
    _x_axis(axes, ok["at"], along, page.axes_width)
    _draw_points(axes, ok, styles, limits)
    _draw_limits(axes, limits, limit_name)
    axes.set_ylabel("relative to the median (%)")
    return Drawing(figure_name, page.figure, rows)


def _why_not(ok: pd.DataFrame, points: pd.DataFrame, x: str) -> str:
    """Why `ok`, which are those of the points with an interval, cannot be drawn. Empty if they
    can."""
    if ok.empty:
        few = (points["status"] == "ok").any()
        why = "no point has the 6 samples that an interval needs" if few else ""
        return why or nothing_to_draw(points, f"{named(NAME, x, TIME)}.csv")
    return "" if x == TIME else nothing_on_x(ok, x)


def _with_scatter(ok: pd.DataFrame) -> pd.DataFrame:
    """The points with `solve_ms`, and with `half_width` of the interval and half of the range of
    all samples (`spread`) in % of the median."""
    width = ok["iteration_ms_high"] - ok["iteration_ms_low"]
    return ok.assign(
        solve_ms=ok["iteration_ms"] * ok["iterations"].astype(float).fillna(1),
        half_width=100 * width / 2 / ok["iteration_ms"],
        spread=[100 * (t.pooled[-1] - t.pooled[0]) / 2 / t.median for t in ok["times_ms"]],
    )


def _limits(data: Data) -> list[float]:
    """The max_noise of each spec that has one, in %."""
    limits = [(run.spec.get("measure") or {}).get("max_noise") for run in data.runs]
    return [100 * float(limit) for limit in limits if limit and limit > 0]


def _notes(ok: pd.DataFrame, limits: list[float]) -> list[str]:
    above = int((ok["half_width"] > max(limits)).sum()) if limits else 0
    return [
        "Marks: half of the 95% interval of the median (order statistics), relative to it. Stems: "
        "up to half of the range of all samples. Every sample counts; none was taken out.",
        _noisy(above, len(ok)) if limits else "",
        noisy_note(ok),
    ]


def _x_axis(axes: Axes, places: pd.Series, along: XAxis | None, width: float) -> None:
    if along is None:
        log_axis(axes, "x", places.min(), places.max())
        axes.set_xlabel("time per solve (ms)")
    else:
        along.scale(axes)
        along.ticks(axes, width)
        axes.set_xlabel(along.label)


def _draw_points(
    axes: Axes, ok: pd.DataFrame, styles: dict[str, dict], limits: list[float]
) -> None:
    """Draws a mark and a stem for each point. The y axis has room for the `limits`, too."""
    # a point without any scatter has no place on a logarithmic axis
    above = ok.loc[ok["half_width"] > 0, "half_width"]
    least = max(above.min(), 1e-3) if len(above) else 1e-3
    most = max(ok[["half_width", "spread"]].max(axis=None), *limits, least * 10)
    log_axis(axes, "y", least, most)
    for name, look in styles.items():
        of = ok[ok["series"] == name]
        at = of["half_width"].clip(lower=least)
        axes.vlines(
            of["at"],
            at,
            of["spread"].clip(lower=least),
            color=look["color"],
            linewidth=0.5,
            alpha=0.45,
        )
        axes.plot(of["at"], at, **{**look, "linestyle": "none"})
        noisy = of["noisy"].eq(True)
        ring(axes, of.loc[noisy, "at"].tolist(), at[noisy].tolist())


def _draw_limits(axes: Axes, limits: list[float], name: str) -> None:
    for height in sorted(set(limits)):
        axes.axhline(height, color=style.INK, linewidth=0.8, linestyle=(0, (3, 2)))
        axes.annotate(
            name,
            (1, height),
            xycoords=("axes fraction", "data"),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
        )


def _places(ok: pd.DataFrame, along: XAxis, series: list[str]) -> pd.Series:
    """The places of the points along the axis. Over a text, series are beside each other."""
    at = along.at(ok[along.name])
    if along.is_number:
        return at
    step = 0.6 / len(series)
    return at + (ok["series"].map(series.index) - (len(series) - 1) / 2) * step


def _noisy(above: int, points: int) -> str:
    if not above:
        return "No point is noisier than the spec's max_noise."
    return f"Noisier than the spec's max_noise when their time was up: {above} of {points} points."
