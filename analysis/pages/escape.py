"""Escapes text of a run directory for Markdown and LaTeX, so that it stays text."""

from __future__ import annotations

import re

from analysis.figures.tex import tex
from analysis.model.files import one_line

_RULES = (
    (re.compile(r"[\\`*$~]"), r"\\\g<0>"),
    # inside a word an underscore is just an underscore
    (
        re.compile(r"(?<![A-Za-z0-9_])_+|_+(?![A-Za-z0-9_])"),
        lambda run: "\\_" * len(run[0]),
    ),
    (re.compile(r"&(?=#?\w+;)"), "&amp;"),
    (re.compile(r"<(?=[A-Za-z/!?])"), "&lt;"),
    (re.compile(r"!(?=\[)"), r"\\!"),
    (re.compile(r"\](?=[(\[:])"), r"\\]"),
)


class Markdown(str):
    """Text that is Markdown already."""

    __slots__ = ()


class Code(str):
    """Text that is to be set as code."""

    __slots__ = ()


Words = str | tuple[str, ...]
"""Text, or pieces of it of which some are Code."""


def text(plain: Words) -> Markdown:
    """`plain` on one line, escaped so that a reader sees it as it is."""
    if isinstance(plain, Markdown):
        return plain
    if isinstance(plain, tuple):
        return Markdown("".join(map(text, plain)))
    if isinstance(plain, Code):
        return code(plain)
    escaped = one_line(str(plain))
    for pattern, by in _RULES:
        escaped = pattern.sub(by, escaped)
    return Markdown(escaped)


def code(plain: str) -> Markdown:
    """`plain` as code, between more backticks than it contains."""
    plain = one_line(str(plain))
    ticks = "`" * (1 + max(map(len, re.findall("`+", plain)), default=0))
    space = " " if "`" in plain else ""
    return Markdown(f"{ticks}{space}{plain}{space}{ticks}")


def cell(plain: Words) -> str:
    """`plain`, or Markdown, in a cell of a table."""
    return " ".join(text(plain).replace("|", "\\|").split())


def image(description: str, link: str) -> Markdown:
    """An image. Its description may contain brackets."""
    description = text(description).replace("[", "\\[").replace("]", "\\]")
    return Markdown(f"![{description}]({link})")


def latex(plain: Words) -> str:
    """`plain` on one line as LaTeX."""
    if isinstance(plain, tuple):
        return "".join(map(latex, plain))
    set_as_text = tex(one_line(str(plain)))
    return rf"\texttt{{{set_as_text}}}" if isinstance(plain, Code) else set_as_text
