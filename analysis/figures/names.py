"""Shortens names that are too long for a figure. Its CSV has the full names."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pandas as pd

from analysis.figures.drawing import Drawing, Subject
from analysis.measures.points import Data

LONGEST = {"version": 40, "precision": 16, "machine": 60, "data": 200}
"""The limit on characters, by column."""
LONGEST_TITLE = 200
LONGEST_LINE = 400
"""The limit on characters of a line with the full name."""


def shortened(names: Iterable[str], most: int) -> dict[str, str]:
    """Shortens names of more than `most` characters to beginning and end, so that all differ."""
    short: dict[str, str] = {}
    taken = set(names)
    for name in sorted(taken):
        if len(name) <= most:
            continue
        tail, turn = name[-most // 4 :], 1
        cut = f"{name[: most - len(tail) - 1]}…{tail}"
        while cut in taken:
            turn += 1
            mark = f"({turn})"
            cut = f"{name[: most - len(tail) - 1 - len(mark)]}…{tail}{mark}"
        short[name] = cut
        taken.add(cut)
    return short


class Names:
    """The short names in the figures of some data, and the full names."""

    def __init__(self, data: Data, subject: Subject):
        self._data, self._subject = data, subject
        points = data.points
        self.short = {
            column: shortened(
                (text for text in points[column].dropna().unique() if isinstance(text, str)), most
            )
            for column, most in LONGEST.items()
        }

    @property
    def _any(self) -> bool:
        return any(self.short.values()) or len(self._subject.title) > LONGEST_TITLE

    def given(self) -> tuple[Data, Subject]:
        """Data and subject with short names, for figures."""
        if not self._any:
            return self._data, self._subject
        versions, machines = self.short["version"], self.short["machine"]
        data = replace(
            self._data,
            points=self._cut(self._data.points),
            phases=self._cut(self._data.phases),
            counters=self._cut(self._data.counters),
            convergence=self._cut(self._data.convergence),
            ceilings={machines.get(m, m): roof for m, roof in self._data.ceilings.items()},
            cpu_ceilings={machines.get(m, m): r for m, r in self._data.cpu_ceilings.items()},
            parents={
                versions.get(child, child): versions.get(parent, parent)
                for child, parent in self._data.parents.items()
            },
        )
        told = [_line(f"{cut}: {name}") for of in self.short.values() for name, cut in of.items()]
        title, baseline = self._subject.title, self._subject.baseline
        title = title if len(title) <= LONGEST_TITLE else f"{title[:LONGEST_TITLE]}…"
        lines = [_line(line) for line in self._subject.environment]
        return data, Subject(title, [*lines, *told], versions.get(baseline, baseline))

    def _cut(self, rows: pd.DataFrame) -> pd.DataFrame:
        columns = {c: of for c, of in self.short.items() if of and c in rows}
        columns |= {"baseline": columns["version"]} if {"version"} <= {*columns} else {}
        return rows.assign(**{c: _renamed(rows[c], of) for c, of in columns.items() if c in rows})

    def whole(self, drawing: Drawing) -> Drawing:
        """The drawing, with the full names in its rows."""
        if not self._any:
            return drawing
        back = {cut: name for of in self.short.values() for name, cut in of.items()}
        texts = drawing.rows.columns[drawing.rows.dtypes.eq(object)]
        rows = drawing.rows.assign(**{c: _renamed(drawing.rows[c], back) for c in texts})
        return replace(drawing, rows=rows)


def _renamed(column: pd.Series, names: dict[str, str]) -> pd.Series:
    return column.map(lambda text: names.get(text, text) if isinstance(text, str) else text)


def _line(text: str) -> str:
    return text if len(text) <= LONGEST_LINE else f"{text[:LONGEST_LINE]}…"
