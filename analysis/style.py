"""One look for every figure: sizes, colours, number formats, page layout, label placement.

Figures are 7 in wide (a double column), text is at least 7 pt, and the files are the same bytes for
the same rows."""

from __future__ import annotations

import math
import re
import warnings
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import RendererAgg
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from analysis.files import replacing

WIDTH = 7.0
"""Inches: the text width of a two-column page."""
SMALL = 7.0
"""Points: the smallest text."""
TITLE = 9.0
PANEL_TITLE = 8.0
LINE = 0.128
"""Inches from one line of small text to the next."""

INK = "#222222"
GREY = "#666666"
FAINT = "#d9d9d9"

# Okabe & Ito 2008, without yellow (too light for a line) and with their black for last: told apart
# by every common kind of colour vision. Past the eighth line the dashes change.
COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7F3C8D", "#000000"]
MARKERS = ["o", "s", "^", "D", "v", "P", "X", "<"]
DASHES = ["-", (0, (4, 1.5)), (0, (1, 1.2)), (0, (5, 1, 1, 1))]

RC = {
    "font.family": "DejaVu Sans",
    "font.size": SMALL,
    "axes.titlesize": PANEL_TITLE,
    "axes.titleweight": "bold",
    "axes.titlepad": 5,
    "axes.labelsize": SMALL,
    "xtick.labelsize": SMALL,
    "ytick.labelsize": SMALL,
    "axes.edgecolor": GREY,
    "axes.linewidth": 0.6,
    "axes.labelcolor": INK,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": FAINT,
    "grid.linewidth": 0.5,
    "lines.linewidth": 1.3,
    "lines.markersize": 3.6,
    "svg.fonttype": "path",  # looks the same where the font is missing
    "svg.hashsalt": "lloydbench",
    "text.parse_math": False,  # a $ in a name is a $
    "savefig.dpi": 220,
}


@contextmanager
def look() -> Iterator[None]:
    """What is drawn and saved within looks like all figures; a letter that the font lacks is a box,
    and no warning."""
    with mpl.rc_context(RC), warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"Glyph \d+")
        yield


def version_styles(versions: list[str], variants: int = 1) -> list[list[dict]]:
    """Colour, marker and dashes for each version by its place, and for each of its variants."""
    looks = []
    for place in range(len(versions)):
        turn, hue = divmod(place, len(COLOURS))
        looks.append(
            [
                {
                    "color": COLOURS[hue],
                    "marker": MARKERS[(hue + turn) % len(MARKERS)],
                    "linestyle": DASHES[(turn + variant) % len(DASHES)],
                    "fillstyle": "none" if variant % 2 else "full",
                }
                for variant in range(variants)
            ]
        )
    return looks


def save(figure: Figure, stem: Path) -> list[Path]:
    """Writes stem.svg and stem.png without dates or versions, so that the same rows give the same
    bytes.
    """
    paths = [stem.with_name(stem.name + ending) for ending in (".svg", ".png")]
    with look():
        vector = {"Date": None, "Creator": None}
        replacing(paths[0], lambda file: figure.savefig(file, metadata=vector))
        replacing(paths[1], lambda file: figure.savefig(file, metadata={"Software": None}))
    return paths


# --- numbers --------------------------------------------------------------------------------------

_SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def count_text(value: int) -> str:
    """10⁴, 2×10⁶, 12,345: a count as short as it can be exact."""
    value = int(value)
    power = len(str(value)) - 1
    lead, rest = divmod(value, 10**power) if value > 0 else (0, 1)
    if power >= 4 and rest == 0:
        tens = "10" + str(power).translate(_SUPERSCRIPTS)
        return tens if lead == 1 else f"{lead}×{tens}"
    return f"{value:,}"


def number_text(value: float) -> str:
    """Three significant digits, thousands grouped: 0.0123, 1.23, 12.3, 1,230 is 1,230."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    if not 1e-9 <= abs(value) < 1e15:
        return f"{value:.3g}"
    digits = 2 - math.floor(math.log10(abs(value)))
    rounded = round(value, digits)
    # rounding may have carried into a further digit: 9.996 is 10.0, not 10.00
    digits = 2 - math.floor(math.log10(abs(rounded)))
    return f"{rounded:,.{max(digits, 0)}f}"


def tick_text(value: float) -> str:
    """A tick without superfluous zeros: 0.05, 1, 20, 1,000."""
    return count_text(round(value)) if value >= 1e4 else f"{value:,.10g}"


# --- text -----------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def _renderer() -> RendererAgg:
    return RendererAgg(16, 16, 720)


@lru_cache(maxsize=8192)
def text_width(text: str, size: float = SMALL, weight: str = "normal") -> float:
    """Inches that `text` takes at `size` points."""
    font = FontProperties(family=RC["font.family"], size=size, weight=weight)
    return _renderer().get_text_width_height_descent(text, font, ismath=False)[0] / 720


def wrap(text: str, width: float, size: float = SMALL, indent: str = "") -> list[str]:
    """`text` in lines of at most `width` inches; a word that is longer than a line is cut. Lines
    after the first begin with `indent`.
    """
    lines: list[str] = []
    # Words are measured alone, for they recur and lines do not; kerning at a space is less than the
    # pixel's fraction that is lost here.
    space = text_width("n n", size) - text_width("nn", size)
    margin = text_width(f"{indent}n", size) - text_width("n", size) if indent else 0.0
    line, taken = "", 0.0
    for word in re.split(r"[ \t\r\n\f\v]+", text.strip()):
        needed = text_width(word, size)
        if line.strip() and taken + space + needed > width:
            lines.append(line)
            line, taken = indent, margin
        if line.strip():
            line, taken = f"{line} {word}", taken + space + needed
        else:
            line, taken = line + word, taken + needed
        while taken > width:
            starts = range(len(indent) + 1, len(line))
            fit = bisect_right(starts, width, key=lambda i: text_width(line[:i], size))
            cut = starts[max(fit - 1, 0)]
            lines.append(line[:cut])
            line = indent + line[cut:]
            taken = text_width(line, size)
    return [*lines, line] if line.strip() else lines


def break_label(label: str, width: float) -> str:
    """`label` in lines of at most `width` inches where that can be: broken after its first word
    (a version's name), then after underscores and spaces, then anywhere."""
    if text_width(label) <= width:
        return label
    lines = []
    for part in label.split(" ", 1):
        line = ""
        for piece in re.findall(r"[^_ ]+[_ ]*|[_ ]+", part):
            if line and text_width((line + piece).rstrip()) > width:
                lines.append(line.rstrip())
                line = ""
            line += piece
            while text_width(line.rstrip()) > width and len(line) > 1:
                fit = [i for i in range(1, len(line)) if text_width(line[:i]) <= width]
                cut = fit[-1] if fit else 1
                lines.append(line[:cut])
                line = line[cut:]
        lines.append(line.rstrip())
    return "\n".join(lines)


def spread(wanted: list[float], heights: list[float], low: float, high: float) -> list[float]:
    """Centres as near as can be to `wanted` so that boxes of `heights` do not overlap and stay
    within low..high.

    One dimension, any unit, boxes keep the order of `wanted`. Boxes that collide are merged into a
    block centred on the mean of its wishes (pool adjacent violators), which is the least-squares
    answer. When there is not room for all of them, they are stacked from `low` up."""
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    blocks: list[dict] = []
    for i in order:
        # a block is its members, its height, and where its bottom would like to be
        block = {"of": [i], "height": heights[i], "bottom": wanted[i] - heights[i] / 2, "n": 1}
        block["bottom"] = _clamp(block, low, high)
        while blocks and blocks[-1]["bottom"] + blocks[-1]["height"] > block["bottom"]:
            under = blocks.pop()
            wish = under["bottom"] * under["n"] + (block["bottom"] - under["height"]) * block["n"]
            count = under["n"] + block["n"]
            block = {
                "of": under["of"] + block["of"],
                "height": under["height"] + block["height"],
                "bottom": wish / count,
                "n": count,
            }
            block["bottom"] = _clamp(block, low, high)
        blocks.append(block)
    centres = [0.0] * len(wanted)
    for block in blocks:
        bottom = block["bottom"]
        for i in block["of"]:
            centres[i] = bottom + heights[i] / 2
            bottom += heights[i]
    return centres


def _clamp(block: dict, low: float, high: float) -> float:
    return max(low, min(block["bottom"], high - block["height"]))


def label_ends(axes: Axes, ends: list[tuple[float, float, str, str]], gap: float = 0.06) -> None:
    """Writes labels to the right of `axes`, one for each (x, y, label, colour) in data coordinates.

    A label stands at its line's height, moved up or down where labels would overlap, with a thin
    leader to the end of its line. Call it after the limits are set."""
    figure = axes.figure
    box = axes.get_position()
    left, width = box.x0 * figure.get_figwidth(), box.width * figure.get_figwidth()
    height = box.height * figure.get_figheight()
    to_inches = axes.transData + axes.transAxes.inverted()
    spots = [to_inches.transform((x, y)) for x, y, _, _ in ends]
    heights = [0.115 * (label.count("\n") + 1) + 0.02 for _, _, label, _ in ends]
    centres = spread([y * height for _, y in spots], heights, -0.1, height + 0.1)
    for (x, y), centre, (_, _, label, colour) in zip(spots, centres, ends, strict=True):
        elbow = 1 + 0.10 / width
        text_at = elbow + gap / width
        axes.plot(
            [x + 0.04 / width, elbow, text_at - 0.02 / width],
            [y, centre / height, centre / height],
            transform=axes.transAxes,
            color=colour,
            linewidth=0.5,
            # across the panel a leader must not look like data
            linestyle=(0, (1, 2)) if x < 0.9 else "-",
            alpha=0.7,
            clip_on=False,
            zorder=1,
        )
        figure.text(
            (left + text_at * width) / figure.get_figwidth(),
            box.y0 + centre / figure.get_figheight(),
            label,
            color=colour,
            fontsize=SMALL,
            va="center",
            linespacing=1.0,
            parse_math=False,
        )


# --- axes -----------------------------------------------------------------------------------------


def log_axis(axes: Axes, which: str, low: float, high: float, wanted: int = 5) -> None:
    """A logarithmic axis over low..high (> 0), both included, with `wanted` or so round ticks
    whatever the span.
    """
    margin = max(1.12, (high / low) ** 0.04)  # keeps marks at the ends whole
    low, high = low / margin, high * margin
    axis = axes.xaxis if which == "x" else axes.yaxis
    getattr(axes, f"set_{which}scale")("log")
    getattr(axes, f"set_{which}lim")(low, high)
    axis.set_major_locator(FixedLocator(log_ticks(low, high, wanted)))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: tick_text(value)))


def log_ticks(low: float, high: float, wanted: int = 5) -> list[float]:
    """Round numbers within low..high: decades when they are enough, else 1-2-5 or 1-3, else evenly
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


def log_positions(limits: tuple[float, float], values: list[float], width: float) -> list[float]:
    """Inches from the left end of a logarithmic axis of `limits` that is `width` inches long."""
    low, span = math.log(limits[0]), math.log(limits[1] / limits[0])
    return [(math.log(value) - low) / span * width for value in values]


def fitting(positions: list[float], texts: list[str], gap: float = 0.08) -> list[int]:
    """Indices of the centred labels that fit side by side: the first, the last, and between them
    those that leave `gap` inches. `positions` are inches, ascending.
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


def shorten(lines: list[str], most: int, width: float) -> list[str]:
    """The first `most` of wrapped lines; if that is not all, the last ends in … (in `width`)."""
    if len(lines) <= most:
        return lines
    last = wrap(lines[most - 1].rstrip(), width - text_width(" …"))[0]
    return [*lines[: most - 1], f"{last} …"]


def _right(positions: list[float], texts: list[str], i: int) -> float:
    return positions[i] + text_width(texts[i]) / 2


# --- the page -------------------------------------------------------------------------------------


class Page:
    """A figure of equal panels under a title and above small print, laid out in inches.

    One axes for each title in `panels` (wrapped) stand in `columns` columns. Of each panel's share
    `left`, `right` and `below` inches go to tick and line labels; the axes are `height` inches
    high; `last` more are kept below the last row. `subtitle` is wrapped paragraphs, `notes` lines
    that fit WIDTH already (see `wrap`), each with its colour. `legend` is drawn under the title
    when given: (label, style) pairs."""

    def __init__(
        self,
        title: str,
        subtitle: list[str],
        notes: list[tuple[str, str]],
        panels: list[str],
        columns: int,
        height: float,
        *,
        left: float = 0.55,
        right: float = 0.15,
        below: float = 0.45,
        last: float = 0.0,
        legend: list[tuple[str, dict]] | None = None,
    ):
        margin = 0.1
        titles = wrap(title, WIDTH - 2 * margin, TITLE * 1.08)
        subtitles = [line for text in subtitle for line in wrap(text, WIDTH - 2 * margin)]
        legend_columns, legend_rows = _legend_grid(legend or [])
        head = 0.1 + 0.17 * len(titles) + LINE * len(subtitles) + LINE * 1.15 * legend_rows
        if legend_rows:
            head += 0.06
        column_width = WIDTH / columns
        self.axes_width = column_width - left - right
        # bold is a tenth wider than what wrap() measures
        names = [wrap(name, (column_width - left - 0.05) / 1.1, PANEL_TITLE) for name in panels]
        above = 0.32 + LINE * (max(len(lines) for lines in names) - 1)
        rows = math.ceil(len(panels) / columns)
        share = above + height + below
        foot = 0.08 + LINE * len(notes) + 0.08
        total = head + rows * share + last + foot

        self.figure = Figure(figsize=(WIDTH, total))
        y = total - 0.1
        for line in titles:
            self._write(margin, y, line, TITLE, "bold", INK)
            y -= 0.17
        for line in subtitles:
            self._write(margin, y, line, SMALL, "normal", GREY)
            y -= LINE
        if legend_rows:
            self._draw_legend(legend, legend_columns, margin, y - 0.06)
        y = foot - 0.08
        for line, colour in notes:
            self._write(margin, y, line, SMALL, "normal", colour)
            y -= LINE

        self.axes: list[Axes] = []
        for panel, lines in enumerate(names):
            row, column = divmod(panel, columns)
            bottom = total - head - (row + 1) * share + below
            box = (column * column_width + left, bottom, self.axes_width, height)
            self.axes.append(
                self.figure.add_axes(
                    (box[0] / WIDTH, box[1] / total, box[2] / WIDTH, box[3] / total)
                )
            )
            title = "\n".join(lines).replace("\u00a0", " ")
            self.axes[-1].set_title(title, loc="left", parse_math=False)

    def _write(self, x: float, y: float, text: str, size: float, weight: str, colour: str) -> None:
        self.figure.text(
            x / WIDTH,
            y / self.figure.get_figheight(),
            text,
            fontsize=size,
            fontweight=weight,
            color=colour,
            va="top",
            parse_math=False,
        )

    def _draw_legend(
        self, legend: list[tuple[str, dict]], columns: int, x: float, y: float
    ) -> None:
        total = self.figure.get_figheight()
        share = (WIDTH - 2 * x) / columns
        rows = math.ceil(len(legend) / columns)
        for place, (label, style) in enumerate(legend):
            column, row = divmod(place, rows)
            at = x + column * share
            top = y - row * LINE * 1.15
            self.figure.add_artist(
                mpl.lines.Line2D(
                    [at / WIDTH, (at + 0.13) / WIDTH, (at + 0.26) / WIDTH],
                    [(top - 0.05) / total] * 3,
                    markevery=[1],
                    markersize=RC["lines.markersize"],
                    linewidth=RC["lines.linewidth"],
                    **style,
                )
            )
            self._write(at + 0.32, top, label, SMALL, "normal", INK)


def _legend_grid(legend: list[tuple[str, dict]]) -> tuple[int, int]:
    if not legend:
        return 1, 0
    widest = max(text_width(label) for label, _ in legend) + 0.5
    columns = max(1, min(len(legend), int((WIDTH - 0.2) / widest)))
    return columns, math.ceil(len(legend) / columns)
