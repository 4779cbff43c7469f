"""Measures the width of text in figures and breaks its lines."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from functools import lru_cache

from matplotlib.backends.backend_agg import RendererAgg
from matplotlib.font_manager import FontProperties

from analysis.figures.style import RC, SMALL


@lru_cache(maxsize=1)
def _renderer() -> RendererAgg:
    return RendererAgg(16, 16, 720)


@lru_cache(maxsize=8192)
def text_width(text: str, size: float = SMALL, weight: str = "normal") -> float:
    """The width of `text` at `size` points, in inches."""
    font = FontProperties(family=RC["font.family"], size=size, weight=weight)
    return _renderer().get_text_width_height_descent(text, font, ismath=False)[0] / 720


def widest_line(labels: Iterable[str]) -> float:
    """The width of the widest line of the labels, in inches. 0 if there are none."""
    return max((text_width(line) for label in labels for line in label.split("\n")), default=0.0)


def wrap(text: str, width: float, size: float = SMALL, indent: str = "") -> list[str]:
    """Breaks `text` into lines of at most `width` inches. A word that is longer than a line is
    cut. Lines after the first begin with `indent`.
    """
    lines: list[str] = []
    # Words are measured separately, because they recur and lines do not. The kerning at a space,
    # which this loses, is a fraction of a pixel.
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
    """Breaks `label` into lines of at most `width` inches, if possible: after its first word (a
    version's name), then after underscores and spaces, then anywhere."""
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


def shorten(lines: list[str], most: int, width: float) -> list[str]:
    """The first `most` of the wrapped lines. If there are more, the last one ends in …."""
    if len(lines) <= most:
        return lines
    last = wrap(lines[most - 1].rstrip(), width - text_width(" …"))[0]
    return [*lines[: most - 1], f"{last} …"]
