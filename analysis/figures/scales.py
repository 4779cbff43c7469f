"""Logarithmic axes, their ticks, and the labels that fit along them."""

from __future__ import annotations

import math

from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from analysis.figures.typeset import text_width
from analysis.model.numbers import count_text


def tick_text(value: float) -> str:
    """The text of a tick without superfluous zeros: 0.05, 1, 20, 1,000."""
    return count_text(round(value)) if value >= 1e4 else f"{value:,.10g}"


def log_axis(
    axes: Axes, which: str, low: float, high: float, wanted: int = 5, width: float | None = None
) -> None:
    """Makes a logarithmic axis over low..high (> 0), both included, with about `wanted` round ticks
    for any span. On an x axis of `width` inches there are fewer where their labels would touch.
    """
    margin = max(1.12, (high / low) ** 0.04)  # keeps marks at the ends whole
    low, high = low / margin, high * margin
    axis = axes.xaxis if which == "x" else axes.yaxis
    getattr(axes, f"set_{which}scale")("log")
    getattr(axes, f"set_{which}lim")(low, high)
    ticks = log_ticks(low, high, wanted)
    if width is not None:
        ticks = _apart(ticks, (low, high), wanted, width)
    axis.set_major_locator(FixedLocator(ticks))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: tick_text(value)))


def log_ticks(low: float, high: float, wanted: int = 5) -> list[float]:
    """Round numbers within low..high: decades if they are enough, else 1-2-5 or 1-3, else evenly
    spaced ones.
    """
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    for step in (4, 3, 2, 1):
        ticks = [10.0**p for p in range(first, last + 1) if p % step == 0]
        ticks = [t for t in ticks if low <= t <= high]
        if len(ticks) >= 3 and (step == 1 or len(ticks) >= wanted):
            return ticks
    for leads in ((1, 3), (1, 2, 5)):
        ticks = [lead * 10.0**p for p in range(first, last + 1) for lead in leads]
        ticks = [t for t in ticks if low <= t <= high]
        if len(ticks) >= 3:
            return ticks
    ticks = MaxNLocator(nbins=wanted, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high)
    return [float(t) for t in ticks if low <= t <= high]


def _apart(
    ticks: list[float], limits: tuple[float, float], wanted: int, width: float
) -> list[float]:
    """The ticks, or fewer of them, so that their labels fit side by side along `width` inches."""
    for fewer in (ticks, *(log_ticks(*limits, n) for n in range(wanted - 1, 2, -1))):
        kept = fitting(log_positions(limits, fewer, width), [tick_text(t) for t in fewer])
        if len(kept) == len(fewer):
            break
    return [fewer[i] for i in kept]


def log_positions(limits: tuple[float, float], values: list[float], width: float) -> list[float]:
    """Inches from the left end of a logarithmic axis of `limits` that is `width` inches long."""
    low, span = math.log(limits[0]), math.log(limits[1] / limits[0])
    return [(math.log(value) - low) / span * width for value in values]


def fitting(positions: list[float], texts: list[str], gap: float = 0.08) -> list[int]:
    """The indices of centred labels that fit side by side: the first, the last, and those between
    them that leave `gap` inches. `positions` are ascending inches.
    """
    chosen: list[int] = []
    last = len(texts) - 1
    for i in range(len(texts)):
        reach = positions[i] - text_width(texts[i]) / 2
        while i == last and len(chosen) > 1 and reach < _right(positions, texts, chosen[-1]) + gap:
            chosen.pop()
        if not chosen or reach >= _right(positions, texts, chosen[-1]) + gap:
            chosen.append(i)
    return chosen


def _right(positions: list[float], texts: list[str], i: int) -> float:
    return positions[i] + text_width(texts[i]) / 2
