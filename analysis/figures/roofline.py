"""roofline: operations per second of each kernel against operations per byte at L1, L2 and DRAM,
under the machine's measured ceilings (Williams, Waterman & Patterson 2009; hierarchical: Yang et
al. 2020)."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from analysis.figures import style
from analysis.figures.drawing import Drawing, Subject, not_drawn
from analysis.figures.notes import notes_alone, subtitle
from analysis.figures.page import Page
from analysis.figures.placement import label_ends, stacked_height
from analysis.figures.scales import log_axis
from analysis.figures.series import series_names, series_styles
from analysis.figures.typeset import break_label, text_width, widest_line
from analysis.measures.fastest import fastest
from analysis.measures.kernels import by_kernel, short_name
from analysis.measures.points import Data
from analysis.model.ceilings import LEVELS, Ceiling, Ceilings
from analysis.model.numbers import count_text, number_text
from analysis.model.run import PROBLEM

NAME = "roofline"
KINDS = {
    "fp32": ("fp32 (no tensor cores)", ("fp32",)),
    "tensor": ("Tensor cores", ("tf32 tensor", "bf16 tensor", "fp16 tensor")),
    "fp64": ("fp64", ("fp64", "fp64 tensor")),
    "fp16": ("fp16 (no tensor cores)", ()),
}
FILLS = {"dram": "full", "l2": "bottom", "l1": "none"}
MOST_NAMES = 8
"""More kernels in one panel are not named, because their lines to the marks would cross."""
LARGEST_MARK = 9.0
SMALLEST_MARK = 3.0
LINE_INCHES = 0.14
"""The height of a line of text. Roofs that are closer share one."""


def draw(data: Data, subject: Subject) -> Drawing:
    """Draws a panel for each arithmetic that a kernel used, with three joined marks for each
    version × kernel. Their size is the kernel's share of the version's GPU time. Measured roofs are
    thick, those of the datasheet thin. There is one row for each point × kernel × arithmetic ×
    level of memory."""
    rows = _rows(data)
    if rows.empty:
        why = "the run has no counters of operations, bytes and time (preset roofline)"
        return not_drawn(NAME, data.points, why)
    shown, left_out = _largest_only(rows)
    rows["drawn"] = rows.index.isin(shown.index)
    looks = series_styles(shown, data.points, subject.baseline)
    kinds = [kind for kind in KINDS if kind in set(shown["arithmetic"])]
    machines = list(dict.fromkeys(shown["machine"]))
    roofs = [data.ceilings[m] for m in machines if m in data.ceilings]
    shown["named"] = _named(shown)
    labels = _labels(shown)
    page = Page(
        f"{subject.title}: roofline",
        subtitle(data.points[data.points["point"].isin(shown["point"])], subject),
        notes_alone(_notes(shown, _roofs_said(data, roofs), left_out)),
        [KINDS[kind][0] for kind in kinds],
        1,
        max(min(3.8, 0.8 * style.width()), stacked_height(labels)),
        left=0.62,
        right=widest_line(labels) + 0.24,
        below=0.42,
        # the fill of a mark is its level; machines differ in the dashes of the line
        legend=[(s, {**look, "fillstyle": "full"}) for s, look in looks.items()],
    )
    for kind, axes in zip(kinds, page.axes, strict=True):
        _panel(axes, shown[shown["arithmetic"].eq(kind)], KINDS[kind][1], roofs, looks, page)
    return Drawing(NAME, page.figure, rows)


def _named(shown: pd.DataFrame) -> pd.Series:
    """Which kernels have a name: the longest of each version, unless a panel would have more than
    MOST_NAMES. The legend has the versions' colours."""
    longest = _longest(shown)
    names = shown[longest].groupby("arithmetic")["series"].nunique()
    few = shown["arithmetic"].map(names).fillna(0) <= MOST_NAMES
    return longest & few & (not style.is_narrow())


def _longest(shown: pd.DataFrame) -> pd.Series:
    return shown["time_share"].eq(shown.groupby("series")["time_share"].transform("max"))


def _roofs_said(data: Data, roofs: list[Ceilings]) -> str:
    """Where the roofs are from. A run may take them from another GPU of its model."""
    if not roofs:
        return "No roofs: no ceilings.json for this machine (run_experiment --ceilings)."
    used = [run.environment.get("ceilings") for run in data.runs]
    gpus = [of.get("gpu") for of in used if isinstance(of, dict)]
    places = {gpu.get("measured_on") for gpu in gpus if isinstance(gpu, dict)} - {None}
    where = "the machine" if places <= {"this one"} else "a GPU of this model"
    return f"Roofs: medians measured on {where}; thin and dotted: the datasheet's."


def _notes(shown: pd.DataFrame, roofs_said: str, left_out: str) -> list[str]:
    return [
        "One mark per kernel and memory level, joined: full at DRAM, half at L2, hollow at L1; as "
        "large as the kernel's share of its version's GPU time. Operations and bytes are counted "
        "(CUPTI), time is the kernel's own in the counters' pass. fp32 and fp64: additions and "
        "multiplications 1, fused 2.",
        roofs_said,
        left_out,
        _unnamed(shown),
    ]


def _unnamed(shown: pd.DataFrame) -> str:
    """Where to find the names of kernels that the picture has no room for."""
    if style.is_narrow():
        return f"{NAME}.csv has the names of the kernels."
    if not (_longest(shown) & ~shown["named"]).any():
        return ""
    return f"{NAME}.csv has the names of the kernels in panels of more than {MOST_NAMES} versions."


def _rows(data: Data) -> pd.DataFrame:
    table = by_kernel(data.counters)
    table = table[table["seconds"] > 0]
    total = table.groupby(["machine", "point"])["seconds"].transform("sum")
    table = table.assign(time_share=table["seconds"] / total)
    best = fastest(data.points)
    head = ["machine", "point", *PROBLEM]
    table = table.merge(best[head], on=["machine", "point"])
    parts = []
    # a kernel is under the roof of its main arithmetic, because compilers write some constants of
    # fp32 kernels with half-precision instructions
    most = table[list(KINDS)].fillna(0).idxmax(axis=1)
    for kind in KINDS:
        for level in LEVELS:
            part = table[most.eq(kind) & (table[kind] > 0) & (table[level] > 0)]
            if part.empty:
                continue
            keep = part[[*head, "version", "phase", "kernel", "seconds", "time_share"]]
            parts.append(
                keep.assign(
                    arithmetic=kind,
                    level=level,
                    operations=part[kind],
                    bytes=part[level],
                    operations_per_byte=part[kind] / part[level],
                    operations_per_second=part[kind] / part["seconds"],
                )
            )
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def _largest_only(rows: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """Selects the largest problem, and kernels with at least 1% of their version's time."""
    key = ["n", "k", "dim"]
    problems = rows[key].drop_duplicates()
    largest = problems.assign(work=problems.astype(float).prod(axis=1)).sort_values("work")
    n, k, dim = (int(v) for v in largest.iloc[-1][key])
    shown = rows[rows["n"].eq(n) & rows["k"].eq(k) & rows["dim"].eq(dim)]
    shown = shown[shown["time_share"] >= 0.01]
    said = f"N = {count_text(n)}, K = {count_text(k)}, dim {dim}"
    left = f", the largest of {len(problems)} problems" if len(problems) > 1 else ""
    text = f"{said}{left}. Kernels below 1% of their version's GPU time are left out."
    return shown.assign(series=series_names(shown)), text


def _panel(axes: Axes, of: pd.DataFrame, rates: tuple, roofs: list[Ceilings], looks, page) -> None:
    _scale(axes, of, rates, roofs, page.axes_width)
    for turn, roof in enumerate(roofs):
        _draw_roof(axes, roof, rates, page.axes_width, turn, len(roofs) > 1)
    ends = []
    of = of.sort_values("operations_per_byte", kind="stable")
    for _, marks in of.groupby(["series", "kernel"], sort=False):
        look = looks[marks["series"].iloc[0]]
        _draw_kernel(axes, marks, look)
        if marks["named"].iloc[0]:
            place = (marks["operations_per_byte"].max(), _height(marks).iloc[0])
            ends.append((*place, _label(marks.iloc[0]), look["color"]))
    axes.set_xlabel("operations per byte")
    axes.set_ylabel("10⁹ operations per second")
    label_ends(axes, ends)


def _scale(axes: Axes, of: pd.DataFrame, rates: tuple, roofs: list[Ceilings], width: float) -> None:
    """Gives the axes, which are `width` inches wide, a range with room for the marks, the ridges of
    the roofs, and the names of the rates to the right of them."""
    xs, ys = of["operations_per_byte"], _height(of)
    peaks = [rate / 1e9 for roof in roofs for rate in _measured(roof, rates).values()]
    top = max([ys.max(), *peaks]) * 2
    log_axis(axes, "y", min(ys.min() / 3, top / 1e3), top)
    left, right = xs.min() / 2, xs.max() * 2
    for turn, roof in enumerate(roofs if peaks else []):
        ridges = [max(peaks) * 1e9 / b.measured for b in roof.bandwidths.values()]
        if ridges:
            left = min(left, ridges[0] / 20)
            names = [text for text, _ in _rate_names(axes, _measured(roof, rates))]
            share = min((max(map(text_width, names), default=0) + 0.2) / width, 0.6)
            room = (max(ridges) / left) ** (share / (1 - share))
            right = max(right, max(ridges) * max(2, room * 8**turn))
    log_axis(axes, "x", left, right)


def _measured(roof: Ceilings, rates: tuple) -> dict[str, float]:
    return {rate: roof.rates[rate].measured for rate in rates if rate in roof.rates}


def _height(marks: pd.DataFrame) -> pd.Series:
    return marks["operations_per_second"] / 1e9


def _draw_kernel(axes: Axes, marks: pd.DataFrame, look: dict) -> None:
    """Draws the joined marks of a kernel, one for each level of memory."""
    share = float(marks["time_share"].iloc[0])
    size = max(SMALLEST_MARK, LARGEST_MARK * math.sqrt(share))
    line = {"color": look["color"], "linestyle": look["linestyle"]}
    axes.plot(marks["operations_per_byte"], _height(marks), lw=0.8, zorder=2.5, **line)
    for (_, mark), y in zip(marks.iterrows(), _height(marks), strict=True):
        style_of = {
            **look,
            "linestyle": "none",
            "fillstyle": FILLS[mark["level"]],
            "markersize": size,
        }
        axes.plot(mark["operations_per_byte"], y, **style_of, zorder=3)


def _labels(shown: pd.DataFrame) -> list[str]:
    """The labels of the named kernels."""
    named = shown[shown["named"]].drop_duplicates("series")
    return [_label(kernel) for _, kernel in named.iterrows()]


def _label(kernel: pd.Series) -> str:
    share = f"{short_name(kernel['kernel'])} {100 * kernel['time_share']:.0f}%"
    return f"{break_label(kernel['series'], 1.4)}\n{break_label(share, 1.4)}"


MEASURED, DATASHEET = {"lw": 1.0, "ls": "-"}, {"lw": 0.6, "ls": (0, (1, 2))}
"""The lines of a roof."""


def _draw_roof(
    axes: Axes, roof: Ceilings, rates: tuple, width: float, turn: int, named: bool
) -> None:
    """Draws slanted lines of bandwidth up to the highest rate, and flat lines of the rates. The
    panel is `width` inches wide. `turn` counts the roofs, which have names if they are several."""
    colour = [style.INK, "#7a7a7a", "#aaaaaa"][turn % 3]
    suffix = f", {roof.device.removeprefix('NVIDIA ')}" if named else ""
    known = {rate: roof.rates[rate] for rate in rates if rate in roof.rates}
    peak = max((c.measured for c in known.values()), default=axes.get_ylim()[1] * 1e9) / 1e9
    for place, (level, bandwidth) in enumerate(roof.bandwidths.items()):
        _draw_bandwidth(axes, bandwidth, peak, colour)
        said = f"{LEVELS[level]} {number_text(bandwidth.measured / 1e12)} TB/s{suffix}"
        shift = 4**turn
        if style.is_narrow():  # if the lines are closer than letters are high
            said, shift = LEVELS[level], shift * 4**place
        _name_bandwidth(axes, bandwidth.measured / 1e9, said, shift, width, colour)
    fastest_memory = max((b.measured for b in roof.bandwidths.values()), default=1.0)
    for ceiling in known.values():
        _draw_rate(axes, ceiling, fastest_memory, colour)
    _name_rates(axes, _measured(roof, rates), suffix, turn, colour)


def _draw_bandwidth(axes: Axes, bandwidth: Ceiling, peak: float, colour: str) -> None:
    left, right = axes.get_xlim()
    for value, look in ((bandwidth.measured, MEASURED), (bandwidth.datasheet, DATASHEET)):
        if value:
            xs = np.array([left, min(peak / (value / 1e9), right)])
            axes.plot(xs, xs * value / 1e9, color=colour, zorder=1.5, **look)


def _name_bandwidth(
    axes: Axes, slope: float, said: str, shift: float, width: float, colour: str
) -> None:
    """Writes on the line of a bandwidth, a little way inside the panel and `shift` times farther to
    the right."""
    (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    start = max(left * 1.35, bottom * 2 / slope) * shift
    rise = _inches_high(axes) / math.log(top / bottom)
    run = width / math.log(right / left)
    axes.text(
        start,
        start * slope / 1.12,
        said,
        rotation=math.degrees(math.atan(rise / run)),
        rotation_mode="anchor",
        color=colour,
        va="top",
    )


def _draw_rate(axes: Axes, ceiling: Ceiling, fastest_memory: float, colour: str) -> None:
    left, right = axes.get_xlim()
    for value, look in ((ceiling.measured, MEASURED), (ceiling.datasheet, DATASHEET)):
        if value:
            start = max(left, value / fastest_memory)
            axes.plot([start, right], [value / 1e9] * 2, color=colour, zorder=1.5, **look)


def _name_rates(
    axes: Axes, measured: dict[str, float], suffix: str, turn: int, colour: str
) -> None:
    """Writes the rates below the right ends of their lines."""
    right = axes.get_xlim()[1]
    for text, lowest in _rate_names(axes, measured):
        axes.text(
            right / 1.1 / 8**turn,
            lowest / 1e9 / 1.08,
            f"{text}{suffix}",
            ha="right",
            va="top",
            color=colour,
        )


def _rate_names(axes: Axes, measured: dict[str, float]) -> list[tuple[str, float]]:
    """The texts of the rates, each with the lowest rate that it names. Rates whose lines are close
    share a text."""
    bottom, top = axes.get_ylim()
    line = math.exp(math.log(top / bottom) * LINE_INCHES / _inches_high(axes))
    names = []
    for level in _levels(measured, line):
        said = ", ".join(f"{rate} {number_text(value / 1e12)}" for rate, value in level)
        names.append((f"{said} TFLOP/s", level[-1][1]))
    return names


def _inches_high(axes: Axes) -> float:
    return axes.get_position().height * axes.figure.get_figheight()


def _levels(values: dict[str, float], line: float) -> list[list[tuple[str, float]]]:
    """The named values, the highest first, in groups within a factor of `line`, which one text
    names."""
    levels: list[list[tuple[str, float]]] = []
    for name, value in sorted(values.items(), key=lambda item: -item[1]):
        if levels and levels[-1][0][1] < line * value:
            levels[-1].append((name, value))
        else:
            levels.append([(name, value)])
    return levels
