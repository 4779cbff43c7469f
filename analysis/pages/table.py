"""A table, before it is written as Markdown or as LaTeX."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

import pandas as pd

from analysis.pages.escape import Words, cell, latex, text

LONG = 36
"""Letters of a cell from which on its column's lines are broken."""
LONG_NAME = 10
"""Letters of a column's name from which on it takes two lines."""
LONG_COMMON = 20
"""Letters of a column's name up to which the caption can have its value."""
LETTER, SEPARATION, WIDEST = 4.3, 4, 520
"""Points: of a letter in \\footnotesize, beside a column, and of a page of two columns."""
MOST_ROWS = 45
"""On one page; a longer table goes over several."""


@dataclass(frozen=True)
class Table:
    """`said` is what a reader has to know of all rows; columns in `numeric` are flush right.
    `values` are the numbers before they were rounded, for a CSV, if a table has one."""

    name: str
    said: Words
    header: list[str]
    rows: list[list[Words]]
    numeric: set[str] = field(default_factory=set)
    values: pd.DataFrame | None = None

    def markdown(self) -> str:
        return f"{text(self.said)}\n\n{self.table_alone()}"

    def table_alone(self) -> str:
        """Markdown without what is said of the rows."""
        return markdown(self.header, self.rows, self.numeric) if self.rows else ""

    def latex(self) -> str:
        """A `table` to be input with the packages array and booktabs; with many rows a `longtable`
        (of the package of that name).

        A page is narrow. What all rows have in common is said in the caption and has no column, and
        a table that is too wide all the same becomes several."""
        return "\n".join(part._latex() for part in self._without_common()._parts())

    def _without_common(self) -> Table:
        cells = dict(zip(self.header, zip(*self.rows, strict=True), strict=False))
        common = {
            name: words[0]
            for name, words in cells.items()
            if len({*words}) == 1 < len(words) and len(name) <= LONG_COMMON
        }
        if not 0 < len(common) < len(self.header) - 1:
            return self
        keep = [place for place, name in enumerate(self.header) if name not in common]
        listed = [f" {name} {_plain(words)}" for name, words in common.items() if words]
        told = self.said if isinstance(self.said, tuple) else (self.said,)
        said = (*told, " All rows:", ",".join(listed), ".") if listed else told
        return replace(self._of(keep), said=said)

    def _parts(self) -> list[Table]:
        """Tables that fit a page, each with the columns of text."""
        points = [LETTER * n + 2 * SEPARATION for n in map(min, self._letters(), [LONG] * 10**4)]
        texts = [i for i, name in enumerate(self.header) if name not in self.numeric]
        left = WIDEST - sum(points[i] for i in texts)
        parts: list[list[int]] = [[]]
        room = left
        for i in (i for i in range(len(self.header)) if i not in texts):
            if points[i] > room and parts[-1]:
                parts.append([])
                room = left
            parts[-1].append(i)
            room -= points[i]
        if len(parts) == 1:
            return [self]
        return [
            replace(self._of(sorted([*texts, *part])), name=f"{self.name}-{number}")
            for number, part in enumerate(parts, 1)
        ]

    def _of(self, places: list[int]) -> Table:
        """Some of its columns."""
        rows = [[row[place] for place in places] for row in self.rows]
        return replace(self, header=[self.header[place] for place in places], rows=rows)

    def _letters(self) -> list[int]:
        """Of the widest line of each column."""
        columns = zip(self.header, *self.rows, strict=True)
        return [max(map(_letters, [*_name_lines(name), *cells])) for name, *cells in columns]

    def _latex(self) -> str:
        head = " & ".join(self._head(name) for name in self.header) + r" \\"
        rows = [" & ".join(latex(words) for words in row) + r" \\" for row in self.rows]
        caption = rf"\caption{{{latex(self.said)}}}\label{{tab:{self.name}}}"
        small = [r"\footnotesize", r"\setlength{\tabcolsep}{4pt}"]
        if len(rows) > MOST_ROWS:
            begin = ["{" + small[0], small[1], rf"\begin{{longtable}}{{{self._columns()}}}"]
            begin += [caption + r"\\", r"\toprule", head, r"\midrule", r"\endfirsthead"]
            begin += [r"\toprule", head, r"\midrule", r"\endhead", r"\bottomrule", r"\endfoot"]
            lines = [*begin, *rows, r"\end{longtable}", "}"]
        else:
            begin = [r"\begin{table}", r"\centering", *small, caption]
            begin += [rf"\begin{{tabular}}{{{self._columns()}}}", r"\toprule", head, r"\midrule"]
            lines = [*begin, *rows, r"\bottomrule", r"\end{tabular}", r"\end{table}"]
        return "\n".join(lines) + "\n"

    def _head(self, name: str) -> str:
        lines = [latex(line) for line in _name_lines(name)]
        side = "r" if name in self.numeric else "l"
        return lines[0] if len(lines) == 1 else rf"\shortstack[{side}]{{{lines[0]}\\{lines[1]}}}"

    def _columns(self) -> str:
        """LaTeX's columns: lines of the longest texts are broken, and share what the others
        leave."""
        letters = self._letters()
        wide = {name for name, n in zip(self.header, letters, strict=True) if n > LONG}
        long = [name in wide - self.numeric for name in self.header]
        left = 0.94 - 0.012 * sum(n for n, b in zip(letters, long, strict=True) if not b)
        share = max(left, 0.3) / max(sum(long), 1)
        broken = rf">{{\raggedright\arraybackslash}}p{{{share:.2f}\linewidth}}"
        kinds = zip(self.header, long, strict=True)
        return "".join(
            broken if breaks else "r" if name in self.numeric else "l" for name, breaks in kinds
        )


def markdown(header: list[str], rows: list[list[Words]], numeric: set[str]) -> str:
    """A table with the columns in `numeric` flush right. Cells are escaped, Markdown ones as far as
    a table asks for it."""
    rule = ["---:" if name in numeric else "---" for name in header]
    heads = [cell(name) for name in header]
    cells = [heads, rule, *([cell(each) for each in row] for row in rows)]
    return "\n".join(f"| {' | '.join(row)} |" for row in cells) + "\n"


def _name_lines(name: str) -> list[str]:
    """The name of a column, in two lines when it is long: what stands below is shorter."""
    places = [found.end() for found in re.finditer(r" |_+", name)]
    if len(name) <= LONG_NAME or not places:
        return [name]
    cut = min(places, key=lambda place: abs(place - len(name) / 2))
    return [name[:cut].strip(), name[cut:].strip()]


def _plain(words: Words) -> str:
    return "".join(words) if isinstance(words, tuple) else str(words)


def _letters(words: Words) -> int:
    return len(_plain(words))
