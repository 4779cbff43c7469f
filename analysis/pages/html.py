"""Pages of the report as HTML. Nothing is fetched from the network, whoever opens them."""

from __future__ import annotations

import base64
import gzip
import json
from functools import cache
from pathlib import Path
from urllib.parse import quote, urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from analysis.measures import claims, published
from analysis.measures.claims import Judgment
from analysis.measures.published import Number
from analysis.pages import chart, machines, tables
from analysis.pages.machines import MachinesPage
from analysis.pages.pictures import MAPS, font_css
from analysis.pages.sections import Entry, Report, RunPage

TEMPLATES = Path(__file__).resolve().parent / "templates"
SCRIPTS = ("table.js", "explore.js", "page.js")
SINGLE = "single.js"
"""What the one file has beyond SCRIPTS."""


class Site:
    """The pages of the runs in `entries` and how they link to each other: an index and a folder for
    each run, or (`single`) one file."""

    def __init__(self, entries: list[Entry], *, single: bool):
        self.single = single
        self._entries = entries
        self._folders = {entry.path: entry.folder for entry in entries}
        self._environment = Environment(
            loader=FileSystemLoader(TEMPLATES),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._environment.globals |= {
            "single": single,
            "url": self._url,
            "claim_cells": tables.claim_cells,
            "claim_url": self._claim_url,
            "number_url": self._number_url,
            "csv_url": self._csv_url,
            "plural": lambda count, word: f"{count:,} {word}{'' if count == 1 else 's'}",
            "as_json": _json,
            "maps": MAPS,
        }

    def index(self, report: Report) -> str:
        """The index: the whole file, or with `single` what stands in its <main>."""
        counts = claims.counts(report.judged)
        return self._page("index.html", "lloydbench report", "", report=report, counts=counts)

    def run(self, page: RunPage) -> str:
        """A run's page: the whole file, or with `single` only its <main>."""
        folder = page.entry.folder
        place = self._entries.index(page.entry)
        before = self._entries[place - 1] if place else None
        after = self._entries[place + 1] if place + 1 < len(self._entries) else None
        return self._page(
            "run.html", page.entry.title, folder, page=page, before=before, after=after
        )

    def machines(self, page: MachinesPage) -> str:
        """The page of a spec on several machines, likewise."""
        title = f"{page.group.title}: machines"
        return self._page(
            "machines.html", title, page.group.folder, page=page, header=list(machines.HEADER)
        )

    def whole(self, index: str, pages: dict[str, str]) -> str:
        """The one file: the index, and all other pages packed until they are asked for."""
        packed = {name: _packed(main) for name, main in pages.items()}
        library = [_packed(script) for script in chart.bokeh_scripts()]
        return self._environment.get_template("single.html").render(
            title="lloydbench report",
            main=Markup(index),
            here="",
            packed=packed,
            library=library,
            style=Markup(style()),
            scripts=[Markup(_template(name)) for name in (*SCRIPTS, SINGLE)],
        )

    def files(self) -> dict[str, str]:
        """What the pages of a folder share, by name."""
        shared = {"report.css": style(), "report.js": "".join(map(_template, SCRIPTS))}
        if library := chart.bokeh_scripts():
            shared["bokeh.js"] = "\n".join(library)
        return shared

    def _page(self, template: str, title: str, here: str, **words: object) -> str:
        main = self._environment.get_template(template).render(title=title, here=here, **words)
        if self.single:
            return main
        return self._environment.get_template("page.html").render(
            title=title, main=Markup(main), here=here, library=bool(here and chart.bokeh_scripts())
        )

    def _url(self, here: str, folder: str, **at: object) -> str:
        """A link from the page of `here` to that of `folder` (empty: the index), and there to the
        rows that `at` names."""
        if self.single:
            return "#" + urlencode({"page": folder, **at})
        file = f"{folder}/index.html" if folder else "index.html"
        return ("../" if here else "") + file + (f"#{urlencode(at)}" if at else "")

    def _claim_url(self, judgment: Judgment) -> str:
        place = judgment.place._asdict() if judgment.place else {}
        return self._rows_url(judgment.path, place)

    def _number_url(self, number: Number) -> str:
        at = {"version": number.row["version"], **published.place(number.row)._asdict()}
        return self._rows_url(number.path, at)

    def _rows_url(self, path: Path | None, at: dict) -> str:
        """A link from the index to rows of a run; empty for none."""
        folder = self._folders.get(path, "")
        asked = ("version", "n", "k", "dim", "precision")
        return self._url("", folder, **{c: at[c] for c in asked if at.get(c)}) if folder else ""

    def _csv_url(self, name: str, text: str) -> str:
        return f"data:text/csv;charset=utf-8,{quote(text)}" if self.single else f"{name}.csv"


def style() -> str:
    return f"{_template('report.css')}\n{_font()}\n"


@cache
def _font() -> str:
    return font_css()


def _template(name: str) -> str:
    return (TEMPLATES / name).read_text(encoding="utf-8")


def _packed(text: str) -> str:
    """Text that a script of the page unpacks; no parser can take it for markup."""
    return base64.b64encode(gzip.compress(text.encode("utf-8"), 9, mtime=0)).decode("ascii")


def _json(value: object) -> Markup:
    """JSON that no HTML parser can take for markup."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return Markup(text.replace("<", "\\u003c"))
