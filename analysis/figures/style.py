"""One look for every figure: sizes, colours, number formats, page layout, label placement.

A figure is 7 in wide (a double column) and contains title and small print. For a paper it has the
paper's width, and a caption contains title and small print. Text is at least 7 pt. The same rows
give the same bytes."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure
from PIL import Image

from analysis.model.files import replacing

WIDTH = 7.0
"""The text width of a two-column page, in inches."""
_paper: ContextVar[float | None] = ContextVar("paper", default=None)

SMALL = 7.0
"""The smallest text, in points."""
TITLE = 9.0
PANEL_TITLE = 8.0

LINE = 0.128
"""The distance between lines of small text, in inches."""
INK = "#222222"
GREY = "#666666"
FAINT = "#d9d9d9"

# Okabe & Ito 2008, without yellow (too light for a line) and with black last. People with any
# common kind of colour vision can tell them apart. looks.py says which version has which.
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
    "svg.fonttype": "path",  # looks the same if the font is missing
    "svg.hashsalt": "lloydbench",
    "pdf.fonttype": 42,  # TrueType: publishers refuse matplotlib's default, Type 3
    "pgf.rcfonts": False,  # the document sets the letters
    "text.parse_math": False,  # a $ in a name stays a $
    "savefig.dpi": 220,
}


@contextmanager
def look(paper: float | None = None) -> Iterator[None]:
    """Gives everything that is drawn and saved inside it the common style. A letter that the font
    lacks becomes a box, without a warning. `paper` is the width in inches of a figure for a paper,
    whose title and small print are left to its caption."""
    token = _paper.set(paper)
    try:
        with mpl.rc_context(RC), warnings.catch_warnings():
            warnings.filterwarnings("ignore", r"Glyph \d+")
            yield
    finally:
        _paper.reset(token)


def width() -> float:
    """The width of the figure that is being drawn, in inches."""
    return _paper.get() or WIDTH


def for_paper() -> bool:
    """True if the figure that is being drawn leaves title and small print to a caption."""
    return _paper.get() is not None


def is_narrow() -> bool:
    """True for a column, or the page of a book. Two panels with names beside them do not fit."""
    return width() < 6


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


def few_colours(png: Path) -> None:
    """Rewrites a picture with the 256 colours that suit it best: a third of the bytes, and no
    difference to the eye."""
    with Image.open(png) as picture:
        flat, dpi = picture.convert("RGB"), picture.info["dpi"]
    few = flat.quantize(256, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    replacing(png, lambda file: few.save(file, "png", optimize=True, dpi=dpi))
