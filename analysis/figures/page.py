"""The page of a figure: title, small print, legend and panels."""

from __future__ import annotations

import math

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.figures.style import (
    GREY,
    INK,
    LINE,
    PANEL_TITLE,
    RC,
    SMALL,
    TITLE,
    for_paper,
    is_narrow,
    width,
)
from analysis.figures.typeset import text_width, wrap


class PageFigure(Figure):
    """A figure with the text of its caption, which has title, subtitle and small print."""

    caption = ""


class Page:
    """Makes a figure of equal panels under a title and above small print, laid out in inches.

    Each title in `panels` (wrapped) has one axes, in `columns` columns. Tick and line labels get
    `left`, `right` and `below` inches of each panel. The axes are `height` inches high. `last`
    inches are kept below the last row, and `beside_title` inches at the right end of each title.
    `subtitle` has paragraphs, which are wrapped. `notes` are lines that already fit 7 in (see
    `wrap`), each with its colour. `legend` has (label, style) pairs, drawn under the title. For a
    paper, title, subtitle and notes are only in the figure's `caption`."""

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
        beside_title: float = 0.0,
        legend: list[tuple[str, dict]] | None = None,
    ):
        caption = _caption(title, subtitle, notes)
        margin = 0.1
        if for_paper():
            title, subtitle, notes, margin = "", [], [], 0.02
        self.columns = columns
        column_width = width() / columns
        self.axes_width = column_width - left - right

        # from above: title, subtitle and legend; rows of panels; notes
        titles = wrap(title, width() - 2 * margin, TITLE * 1.08)
        subtitles = [line for text in subtitle for line in wrap(text, width() - 2 * margin)]
        legend_columns, legend_rows = _legend_grid(legend or [])
        head = margin + 0.17 * len(titles) + LINE * len(subtitles) + LINE * 1.15 * legend_rows
        if legend_rows:
            head += 0.06
        # bold text is a tenth wider than wrap() measures
        title_width = (column_width - left - beside_title - 0.05) / 1.1
        names = [wrap(name, title_width, PANEL_TITLE) for name in panels]
        above = 0.32 + LINE * (max(len(lines) for lines in names) - 1)
        share = above + height + below
        foot = 0.16 + LINE * len(notes) if notes else margin
        total = head + math.ceil(len(panels) / columns) * share + last + foot

        self.figure = PageFigure(figsize=(width(), total))
        self.figure.caption = caption
        y = self._write_head(titles, subtitles, margin, total - margin)
        if legend_rows:
            self._draw_legend(legend, legend_columns, margin, y - 0.06)
        self._write_notes(notes, margin, foot - 0.08)
        self.axes: list[Axes] = []
        for panel, lines in enumerate(names):
            row, column = divmod(panel, columns)
            bottom = total - head - (row + 1) * share + below
            self.axes.append(self._panel(lines, column * column_width + left, bottom, height))

    def label_outer(self, x: str = "", y: str = "") -> None:
        """Writes `x` below the last panel of each column, and `y` beside the first column."""
        for place, axes in enumerate(self.axes):
            if y and place % self.columns == 0:
                axes.set_ylabel(y)
            if x and place + self.columns >= len(self.axes):
                axes.set_xlabel(x)

    def _write_head(self, titles: list[str], subtitles: list[str], x: float, top: float) -> float:
        """Writes the lines from `top` on down. Returns the height at which they end."""
        y = top
        for line in titles:
            self._write(x, y, line, TITLE, "bold", INK)
            y -= 0.17
        for line in subtitles:
            self._write(x, y, line, SMALL, "normal", GREY)
            y -= LINE
        return y

    def _write_notes(self, notes: list[tuple[str, str]], x: float, top: float) -> None:
        y = top
        for line, colour in notes:
            self._write(x, y, line, SMALL, "normal", colour)
            y -= LINE

    def _panel(self, title: list[str], left: float, bottom: float, height: float) -> Axes:
        """Axes with the lines of their title."""
        total = self.figure.get_figheight()
        axes = self.figure.add_axes(
            (left / width(), bottom / total, self.axes_width / width(), height / total)
        )
        text = "\n".join(title).replace("\u00a0", " ")
        axes.set_title(text, loc="left", parse_math=False)
        return axes

    def _write(self, x: float, y: float, text: str, size: float, weight: str, colour: str) -> None:
        self.figure.text(
            x / width(),
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
        share = (width() - 2 * x) / columns
        rows = math.ceil(len(legend) / columns)
        for place, (label, style) in enumerate(legend):
            column, row = divmod(place, rows)
            at = x + column * share
            top = y - row * LINE * 1.15
            self.figure.add_artist(
                mpl.lines.Line2D(
                    [at / width(), (at + 0.13) / width(), (at + 0.26) / width()],
                    [(top - 0.05) / total] * 3,
                    markevery=[1],
                    markersize=RC["lines.markersize"],
                    linewidth=RC["lines.linewidth"],
                    **style,
                )
            )
            self._write(at + 0.32, top, label, SMALL, "normal", INK)


def _caption(title: str, subtitle: list[str], notes: list[tuple[str, str]]) -> str:
    """All of it as one paragraph."""
    sentences = [
        text if text.endswith((".", "?", "!")) else f"{text}." for text in (title, *subtitle)
    ]
    sentences += [text.strip() for text, _ in notes if text.strip()]
    return " ".join(sentences)


def _legend_grid(legend: list[tuple[str, dict]]) -> tuple[int, int]:
    if not legend:
        return 1, 0
    widest = max(text_width(label) for label, _ in legend) + 0.5
    columns = max(1, min(len(legend), int((width() - 0.2) / widest)))
    return columns, math.ceil(len(legend) / columns)


def columns_of_panels(wanted: int, taken: float, least: float) -> int:
    """The number of columns: `wanted`, or on a narrow page as many as leave `least` inches for each
    panel's axes, beside which labels take `taken` inches."""
    if not is_narrow():
        return wanted
    return max(1, min(wanted, int(width() / (taken + least))))
