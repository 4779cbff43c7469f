"""A table, before it is written as Markdown or as LaTeX."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

import pandas as pd

from analysis.figures.paper import CLASSES
from analysis.pages.escape import Words, cell, latex, text

LONG = 36
"""Letters of a cell from which on its column's lines are broken."""
LONG_NAME = 10
"""Letters of a column's name from which on it takes several lines."""
NAME_LINE = 14
"""Letters of one of these lines at most, if words do not need more."""
LONG_COMMON = 20
"""Letters of a column's name up to which the caption can have its value."""
ENOUGH = 24
"""Letters for which there is room in each column of a part, if it has so many."""
LEAST = 12
"""Letters that a column has at least whose lines are broken."""
LETTER, SEPARATION = 4.3, 4
"""Points: of a letter in \\footnotesize, and beside a column."""
WIDEST = CLASSES["article"].text
"""Points: the width of the text that a table has to fit."""
MOST_ROWS = 45
"""On one page; a longer table goes over several."""
PROBLEM = {*("N", "K", "n", "k"), "dim", "batch", "data"}
"""The columns that a table which is too wide turns into a line above the rows of each problem."""

MOST_FLOATS = 12
"""Parts of one table after which LaTeX is told to set them. It can hold back only so many."""


@dataclass(frozen=True)
class Table:
    """`said` is what a reader has to know of all rows; columns in `numeric` are flush right.
    `values` are the numbers before they were rounded, for a CSV, if a table has one. `keys` are the
    columns that tell the rows apart. If it is empty, the columns of text are. `above` has what
    LaTeX says of the problem in a line above some rows, by the row's number."""

    name: str
    said: Words
    header: list[str]
    rows: list[list[Words]]
    numeric: set[str] = field(default_factory=set)
    values: pd.DataFrame | None = None
    keys: set[str] = field(default_factory=set)
    above: dict[int, str] = field(default_factory=dict)

    def markdown(self) -> str:
        return f"{text(self.said)}\n\n{self.table_alone()}"

    def table_alone(self) -> str:
        """Markdown without what is said of the rows."""
        return markdown(self.header, self.rows, self.numeric) if self.rows else ""

    def latex(self) -> str:
        """A `table` to be input with the packages array and booktabs; with many rows a `longtable`
        (of the package of that name).

        A page is narrow. What all rows have in common is said in the caption and has no column. If
        that is not enough, what the rows of a problem have in common is said above them. A table
        that is too wide all the same becomes several."""
        fitted = self._without_common()
        if len(fitted._parts()) > 1:
            fitted = fitted._by_problem()._with_fewest_keys()
        parts = [part._latex() for part in fitted._parts()]
        firsts = range(0, len(parts), MOST_FLOATS)
        pages = ["\n".join(parts[first : first + MOST_FLOATS]) for first in firsts]
        return "\n\\clearpage\n".join(pages)

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

    def _by_problem(self) -> Table:
        """The same with a line above the rows of each problem, instead of the problem's columns.
        Unchanged if a problem has fewer than two rows on average."""
        own = [place for place, name in enumerate(self.header) if name in PROBLEM]
        keep = [place for place in range(len(self.header)) if place not in own]
        rows_of: dict[str, list[list[Words]]] = {}
        for row in self.rows:
            pairs = ((self.header[place], _plain(row[place])) for place in own)
            problem = ", ".join(f"{name} {value}" for name, value in pairs if value)
            rows_of.setdefault(problem, []).append(row)
        longest = max(map(_letters, rows_of), default=0)
        other_keys = self.keys & {self.header[place] for place in keep}
        is_short = 2 * len(rows_of) <= len(self.rows) and _points(longest) <= WIDEST
        if not (own and other_keys and is_short):
            return self
        above, rows = {}, []
        for problem, of in rows_of.items():
            above[len(rows)] = problem
            rows += of
        return replace(self, rows=rows, above=above)._of(keep)

    def _with_fewest_keys(self) -> Table:
        """The same without the keys that are not needed beside the version and the others. Such a
        column then stands in one part only."""
        problem, problems = "", []
        for number in range(len(self.rows)):
            problem = self.above.get(number, problem)
            problems.append(problem)
        columns = dict(zip(self.header, zip(*self.rows, strict=True), strict=True))

        def apart(names: list[str]) -> int:
            return len({*zip(problems, *(columns[name] for name in names), strict=True)})

        keys = [name for name in self.header if name in self.keys]
        whole = apart(keys)
        for name in reversed(keys):
            fewer = [other for other in keys if other != name]
            if fewer and name != "version" and apart(fewer) == whole:
                keys = fewer
        return replace(self, keys={*keys})

    def _parts(self) -> list[Table]:
        """Tables that fit a page, each with the columns that tell the rows apart."""
        points = [_points(min(n, ENOUGH)) for n in self._letters()]
        known = self.keys or {*self.header} - self.numeric
        keys = [i for i, name in enumerate(self.header) if name in known]
        left = WIDEST - sum(points[i] for i in keys)
        parts: list[list[int]] = [[]]
        room = left
        for i in (i for i in range(len(self.header)) if i not in keys):
            if points[i] > room and parts[-1]:
                parts.append([])
                room = left
            parts[-1].append(i)
            room -= points[i]
        if len(parts) == 1:
            return [self]
        told = self.said if isinstance(self.said, tuple) else (self.said,)
        return [
            replace(
                self._of(sorted([*keys, *part])),
                name=f"{self.name}-{number}",
                said=(f"Part {number} of {len(parts)}: ", *told),
            )
            for number, part in enumerate(parts, 1)
        ]

    def _of(self, places: list[int]) -> Table:
        """Some of its columns."""
        rows = [[row[place] for place in places] for row in self.rows]
        return replace(self, header=[self.header[place] for place in places], rows=rows)

    def _letters(self) -> list[float]:
        """Of the widest line of each column."""
        columns = zip(self.header, *self.rows, strict=True)
        return [max(map(_letters, [*_name_lines(name), *cells])) for name, *cells in columns]

    def _latex(self) -> str:
        head = " & ".join(self._head(name) for name in self.header) + r" \\"
        widths = self._widths()
        rows = []
        for number, row in enumerate(self.rows):
            rows += self._lines_above(number)
            rows.append(" & ".join(self._cells(row, widths)) + r" \\")
        columns = self._columns(widths)
        caption = rf"\caption{{{latex(self.said)}}}\label{{tab:{self.name}}}"
        small = [r"\footnotesize", r"\setlength{\tabcolsep}{4pt}"]
        if len(rows) > MOST_ROWS:
            begin = ["{" + small[0], small[1], rf"\begin{{longtable}}{{{columns}}}"]
            begin += [caption + r"\\", r"\toprule", head, r"\midrule", r"\endfirsthead"]
            begin += [r"\toprule", head, r"\midrule", r"\endhead", r"\bottomrule", r"\endfoot"]
            lines = [*begin, *rows, r"\end{longtable}", "}"]
        else:
            begin = [r"\begin{table}", r"\centering", *small, caption]
            begin += [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", head, r"\midrule"]
            lines = [*begin, *rows, r"\bottomrule", r"\end{tabular}", r"\end{table}"]
        return "\n".join(lines) + "\n"

    def _lines_above(self, number: int) -> list[str]:
        """What stands above a row. A page does not end after it."""
        if number not in self.above:
            return []
        space = [r"\addlinespace"] if number else []
        whole = rf"\multicolumn{{{len(self.header)}}}{{l}}"
        return [*space, rf"{whole}{{\itshape {latex(self.above[number])}}} \\*"]

    @staticmethod
    def _cells(row: list[Words], widths: dict[int, float]) -> list[str]:
        cells = [latex(words) for words in row]
        return [_breakable(each) if at in widths else each for at, each in enumerate(cells)]

    def _head(self, name: str) -> str:
        lines = [latex(line) for line in _name_lines(name)]
        side = "r" if name in self.numeric else "l"
        stacked = r"\\".join(lines)
        return stacked if len(lines) == 1 else rf"\shortstack[{side}]{{{stacked}}}"

    def _columns(self, widths: dict[int, float]) -> str:
        """LaTeX's columns, of which some have a width (see _widths)."""
        sides = ["r" if name in self.numeric else "l" for name in self.header]
        ragged = {"l": r"\raggedright", "r": r"\raggedleft"}
        for place, width in widths.items():
            # rounded down: too narrow is better than too wide
            share = int(100 * width / WIDEST) / 100
            begin = ragged[sides[place]]
            sides[place] = rf">{{{begin}\arraybackslash}}p{{{share:.2f}\linewidth}}"
        return "".join(sides)

    def _widths(self) -> dict[int, float]:
        """The points of each column whose lines are broken. These are the columns of the longest
        texts, and if the table is still too wide, the next longest. They share what the others
        leave."""
        points = dict(enumerate(map(_points, self._letters())))
        longest = sorted(points, key=lambda place: -points[place])
        broken = [place for place in longest if points[place] > _points(LONG)]
        breakable = sum(points[place] > _points(LEAST) for place in longest)
        for count in range(len(broken), breakable + 1):
            broken = longest[:count]
            share = WIDEST - sum(points[place] for place in longest[count:])
            least = {place: min(points[place], self._least(place)) for place in broken}
            share -= sum(least.values())
            if share >= 0:
                break
        widths = {}
        for place in reversed(broken):  # what one does not need is for the longer ones
            more = max(share, 0) / (len(broken) - len(widths))
            widths[place] = min(points[place], least[place] + more)
            share -= widths[place] - least[place]
        return {place: width - 2 * SEPARATION for place, width in widths.items()}

    def _least(self, place: int) -> float:
        """The points that a column needs for its longest word, broken where LaTeX may. It breaks
        no line of a name."""
        words = [word for row in self.rows for word in _BREAKS.split(_plain(row[place]))]
        words += _name_lines(self.header[place])
        return max(_points(LEAST), *(_points(_letters(word) + 1) for word in words))


_BREAKS = re.compile(r"[\s/_]|(?<=[a-z])(?=[A-Z][a-z])")


def _points(letters: float) -> float:
    """The width of a column."""
    return LETTER * letters + 2 * SEPARATION


def _breakable(set_as_text: str) -> str:
    """LaTeX that may be broken within the names of points, versions and kernels."""
    return re.sub(r"/|\\_|[a-z](?=[A-Z][a-z])", r"\g<0>\\allowbreak{}", set_as_text)


def markdown(header: list[str], rows: list[list[Words]], numeric: set[str]) -> str:
    """A table with the columns in `numeric` flush right. Cells are escaped, Markdown ones as far as
    a table asks for it."""
    rule = ["---:" if name in numeric else "---" for name in header]
    heads = [cell(name) for name in header]
    cells = [heads, rule, *([cell(each) for each in row] for row in rows)]
    return "\n".join(f"| {' | '.join(row)} |" for row in cells) + "\n"


def _name_lines(name: str) -> list[str]:
    """The name of a column, in several lines when it is long: what stands below is shorter. They
    are as few as NAME_LINE allows, and as even as possible."""
    words = re.findall(r".*?(?: |/|_+|$)", name)[:-1]
    if len(name) <= LONG_NAME or len(words) == 1:
        return [name]
    longest = max(NAME_LINE, *(len(word.strip()) for word in words))
    least = max(2, len(_filled(words, longest)))
    return next(
        lines
        for width in range(longest + 1)
        if len(lines := _filled(words, width)) <= least and max(map(len, lines)) <= longest
    )


def _filled(words: list[str], width: int) -> list[str]:
    """Lines with as many words as fit into `width` letters, at least one."""
    lines = [words[0]]
    for word in words[1:]:
        if len((lines[-1] + word).strip()) <= width:
            lines[-1] += word
        else:
            lines.append(word)
    return [line.strip() for line in lines]


def _plain(words: Words) -> str:
    return "".join(words) if isinstance(words, tuple) else str(words)


def _letters(words: Words) -> float:
    """Capitals count for more, because they are wider."""
    plain = _plain(words)
    return len(plain) + 0.4 * sum(map(str.isupper, plain))
