"""Noisy and oversubscribed points: their marks in tables and figures, and what the notes say."""

from __future__ import annotations

import re
from collections.abc import Iterable

import pandas as pd

from analysis.model.numbers import number_text

NOISY_SHARE = 0.25
"""A point is noisy from this share of noisy samples on. A smaller share hardly moves its median."""

NOISY = "†"
"""Follows the time of a noisy point in tables, and in figures without marks."""

OVERSUBSCRIBED = "‡"
"""Follows the time of an oversubscribed point in tables."""


def noisy_mark(point: pd.Series) -> str:
    """NOISY for a noisy point, else nothing."""
    return NOISY if point["noisy"] is True else ""


def oversubscribed_note(points: pd.DataFrame) -> str:
    """What OVERSUBSCRIBED means for these points. Empty if none is."""
    count = int((points["status"].eq("ok") & points["oversubscribed"].eq(True)).sum())
    if not count:
        return ""
    noun = f"{count:,} point{'' if count == 1 else 's'}"
    why = "with more threads than cores, or with ranks that share a GPU"
    return f"{OVERSUBSCRIBED} oversubscribed: {noun}, {why}."


def noise_note(points: pd.DataFrame) -> str:
    """What NOISY means for these points, and the worst of each kind that disturbed them. Empty if
    none is noisy."""
    noisy = points[points["noisy"].eq(True)]
    if noisy.empty:
        return ""
    reasons = reasons_of(noisy["noise"].dropna())
    worst = worst_of_each_kind(reasons)
    at_worst = ", at worst" if len(reasons) > len(worst) else ""
    count = f"{len(noisy):,} point{'' if len(noisy) == 1 else 's'}"
    return (
        f"{NOISY} noisy: {count}, with a quarter or more of the samples disturbed{at_worst}: "
        f"{'; '.join(worst) or 'no reason was recorded'}."
    )


def reasons_of(noise: Iterable[str]) -> list[str]:
    """The different reasons in texts of the column `noise`."""
    return [reason for reason in dict.fromkeys("; ".join(noise).split("; ")) if reason]


def worst_of_each_kind(reasons: Iterable[str]) -> list[str]:
    """Reasons that differ only in their numbers are of one kind. The worst of a kind has the
    largest first number, which counts what disturbed the sample. Where that is equal, the shorter
    sample was disturbed more, so the second number decides. Older rows have powers of ten in
    reasons (1.08e+03); here they are written out."""
    kinds: dict[str, list[str]] = {}
    for reason in reasons:
        kind = _PLURAL.sub("", _NUMBER.sub("#", reason))
        kinds.setdefault(kind, []).append(reason)
    return [_written_out(max(of, key=_severity)) for of in kinds.values()]


_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?")

_PLURAL = re.compile(r"(?<=switch)es\b|(?<=page)s\b|(?<=core)s\b")


def _written_out(reason: str) -> str:
    def plain(number: re.Match) -> str:
        return number_text(float(number[0])) if "e" in number[0] else number[0]

    return _NUMBER.sub(plain, reason)


def _severity(reason: str) -> tuple[float, float]:
    numbers = [float(number.replace(",", "")) for number in _NUMBER.findall(reason)]
    first, second = [*numbers, 0.0, 0.0][:2]
    return first, -second
