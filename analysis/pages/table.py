"""A table, before it is written as Markdown or as LaTeX."""

from __future__ import annotations

from dataclasses import dataclass, field

from analysis.pages.escape import Words, cell, latex, text

LONG = 36
"""Letters of a cell from which on its column's lines are broken."""
MOST_ROWS = 45
"""On one page; a longer table goes over several."""


@dataclass(frozen=True)
class Table:
    """`said` is what a reader has to know of all rows; columns in `numeric` are flush right."""

    name: str
    said: Words
    header: list[str]
    rows: list[list[Words]]
    numeric: set[str] = field(default_factory=set)

    def markdown(self) -> str:
        return f"{text(self.said)}\n\n{self.table_alone()}"

    def table_alone(self) -> str:
        """Markdown without what is said of the rows."""
        return markdown(self.header, self.rows, self.numeric) if self.rows else ""

    def latex(self) -> str:
        """A `table` to be input with the packages array and booktabs; with many rows a `longtable`
        (of the package of that name)."""
        head = " & ".join(latex(name) for name in self.header) + r" \\"
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

    def _columns(self) -> str:
        """LaTeX's columns: lines of the longest texts are broken, and share what the others
        leave."""
        columns = list(zip(self.header, *self.rows, strict=True))
        letters = [max(map(_letters, column)) for column in columns]
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


def _letters(words: Words) -> int:
    return sum(map(len, words)) if isinstance(words, tuple) else len(words)
