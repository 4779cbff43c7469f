"""The report as one HTML file that needs nothing else: no network, no files beside it."""

from __future__ import annotations

import base64
import json
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from analysis.measures import claims
from analysis.pages import tables
from analysis.pages.sections import Report

TEMPLATES = Path(__file__).resolve().parent / "templates"


def render(report: Report, out: Path) -> str:
    """The file's text; figures and their rows are read from `out`."""
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "picture": lambda stem: _picture(out / f"{stem}.svg"),
        "rows": lambda stem: _rows(out / f"{stem}.csv"),
        "claim": tables.claim_cells,
    }
    return environment.get_template("report.html").render(
        report=report,
        counts=claims.counts(report.judged),
        style=Markup((TEMPLATES / "report.css").read_text(encoding="utf-8")),
        script=Markup((TEMPLATES / "report.js").read_text(encoding="utf-8")),
    )


def _picture(file: Path) -> str:
    return "data:image/svg+xml;base64," + base64.b64encode(file.read_bytes()).decode("ascii")


def _rows(file: Path) -> Markup:
    """A CSV as a JSON string that no HTML parser can take for markup."""
    return Markup(json.dumps(file.read_text(encoding="utf-8")).replace("<", "\\u003c"))
