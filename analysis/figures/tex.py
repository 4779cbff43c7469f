"""Converts plain text into LaTeX, for figures, captions and tables."""

from __future__ import annotations

import unicodedata

_COMMANDS = {
    # no symbol of the encoding TS1: without cm-super its letters are bitmaps, and Type 3
    **{letter: f"\\{letter}" for letter in "#%&_{}"},
    "$": r"\ensuremath{\mathdollar}",
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': "''",
    "`": r"\`{}",
    "\N{NO-BREAK SPACE}": "~",
    "\N{MINUS SIGN}": r"\ensuremath{-}",
    "×": r"\ensuremath{\times}",
    "·": r"\ensuremath{\cdot}",
    "±": r"\ensuremath{\pm}",
    "≤": r"\ensuremath{\le}",
    "≥": r"\ensuremath{\ge}",
    "≠": r"\ensuremath{\ne}",
    "≈": r"\ensuremath{\approx}",
    "→": r"\ensuremath{\to}",
    "∞": r"\ensuremath{\infty}",
    "–": "--",
    "—": "---",
    "…": r"\ldots{}",
    "†": r"\ensuremath{\dagger}",
    "‡": r"\ensuremath{\ddagger}",
    "°": r"\ensuremath{^\circ}",
    "µ": r"\ensuremath{\mu}",
    "μ": r"\ensuremath{\mu}",
    "’": "'",
    "‘": "`",
    "“": "``",
    "”": "''",
    **{s: rf"\textsuperscript{{{d}}}" for d, s in enumerate("⁰¹²³⁴⁵⁶⁷⁸⁹")},
}
_ACCENTS = {
    unicodedata.lookup(f"COMBINING {name}")
    for name in (
        *("GRAVE ACCENT", "ACUTE ACCENT", "CIRCUMFLEX ACCENT", "TILDE", "DIAERESIS", "RING ABOVE"),
        *("CARON", "MACRON", "BREVE", "CEDILLA", "DOT ABOVE", "DOUBLE ACUTE ACCENT"),
    )
}
"""Those that LaTeX's oldest encoding of fonts can set, too."""


def tex(plain: str) -> str:
    """`plain` as LaTeX for every engine with no more than its kernel's own packages. A letter that
    is not in one of Latin's alphabets is printed as its number: U+4E2D."""
    return "".join(map(_letter, plain))


def _letter(letter: str) -> str:
    if letter in _COMMANDS:
        return _COMMANDS[letter]
    if letter.isascii():
        return letter if letter.isprintable() else " "
    base, *accents = unicodedata.normalize("NFD", letter)
    if letter in "ßæœøłÆŒØŁ" or (base.isascii() and len(accents) == 1 and {*accents} <= _ACCENTS):
        return letter
    return rf"\texttt{{U+{ord(letter):04X}}}"
