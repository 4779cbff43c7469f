"""One look for every figure: sizes, colours, number formats, page layout, label placement.

Figures are 7 in wide (a double column) and say everything themselves, or as wide as a paper wants
them, with title and small print in a caption beside them. Text is at least 7 pt, and the files are
the same bytes for the same rows."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

from analysis.model.files import replacing

WIDTH = 7.0
"""Inches: the text width of a two-column page."""
_paper: ContextVar[float | None] = ContextVar("paper", default=None)

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
    "pdf.fonttype": 42,  # TrueType: publishers refuse matplotlib's default, Type 3
    "pgf.rcfonts": False,  # letters are the document's
    "text.parse_math": False,  # a $ in a name is a $
    "savefig.dpi": 220,
}


@contextmanager
def look(paper: float | None = None) -> Iterator[None]:
    """What is drawn and saved within looks like all figures; a letter that the font lacks is a box,
    and no warning. `paper` is the width in inches of a figure for a paper; title and small print
    are left to its caption then."""
    token = _paper.set(paper)
    try:
        with mpl.rc_context(RC), warnings.catch_warnings():
            warnings.filterwarnings("ignore", r"Glyph \d+")
            yield
    finally:
        _paper.reset(token)


def width() -> float:
    """Of the figure that is being drawn, in inches."""
    return _paper.get() or WIDTH


def for_paper() -> bool:
    """Whether the figure that is being drawn leaves title and small print to a caption."""
    return _paper.get() is not None


def is_narrow() -> bool:
    """A column, or the page of a book: there is no room for two panels with names beside them."""
    return width() < 6


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


_NO_DATES = {
    "svg": {"Date": None, "Creator": None},
    "png": {"Software": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}


def save(figure: Figure, stem: Path, ending: str) -> Path:
    """Writes stem.svg, .png or .pdf without dates or versions, so that the same rows give the same
    bytes.
    """
    path = stem.with_name(f"{stem.name}.{ending}")
    with look():
        return replacing(path, lambda file: figure.savefig(file, metadata=_NO_DATES[ending]))
