"""The five studies (data/published/studies.toml), as README, docs and report cite them."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FILE = Path(__file__).resolve().parents[2] / "data" / "published" / "studies.toml"


@dataclass(frozen=True)
class Study:
    """One study. studies.toml says what each field is; an empty one is not known."""

    name: str
    authors: list[str]
    title: str
    kind: str
    date: str
    place: str
    url: str
    versions: list[str]
    note: str

    @property
    def year(self) -> str:
        return self.date[:4]

    @property
    def short(self) -> str:
        """The authors' last names and the year: `Biason & Romania 2025`."""
        names = " & ".join(author.split()[-1] for author in self.authors)
        return f"{names} {self.year}".strip()

    def citation(self, title: str | None = None) -> str:
        """Authors, title, kind, place and year on one line, as far as they are known. `title` is
        the title as it shall be written: as a link, for example."""
        parts = [" and ".join(self.authors), title or self.title, self.kind, self.place]
        parts.append(self.year or "no year given")
        said = ", ".join(part for part in parts if part)
        return f"{said} ({self.note})" if self.note else said


def read_studies(file: Path = FILE) -> list[Study]:
    """In the order of the file."""
    tables = tomllib.loads(file.read_text(encoding="utf-8"))["study"]
    return [Study(**table) for table in tables]
