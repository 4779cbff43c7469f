"""Rewrites the tables and figures between markers in a Markdown file, so that they stay up to date.

A table is `<!-- table:BEGIN name -->`, the table, `<!-- table:END name -->`. The name is that of a
run directory's spec, or the last parts of its path where two have the same spec: `k1000`,
`nvidia-h200/k1000`; `:PART` after it means another table of that run (TABLES of commands.py). The
table `versions` is what the program lists, `studies` what data/published/studies.toml says,
`gpu-model` what several GPUs are predicted to take, `recordings` lists all given run directories,
and `reasons` why some of their points have no result. A figure is the same with `figure:` and a
name such as `nvidia-h200/k1000:speedup`."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from analysis.model.files import RunError

_MARKER = re.compile(r"<!--\s*(table|figure):(BEGIN|END)\s+(\S+)\s*-->")


def rewrite(
    text: str, where: str, write: Callable[[str, str], str | None]
) -> tuple[str, list[str]]:
    """Replaces each table and figure in `text` by `write(kind, name)`, and leaves it as it is if
    that is None. Returns the new text, and the names of those that were left.

    `where` names the file in errors. Raises RunError, with the line, for an unpaired marker."""
    newline = "\r\n" if "\r\n" in text else "\n"
    pieces: list[str] = []
    left: list[str] = []
    begun: re.Match | None = None
    copied = 0
    for marker in _MARKER.finditer(text):
        line = text.count("\n", 0, marker.start()) + 1
        kind, end, name = marker.groups()
        if end == "BEGIN":
            if begun:
                raise RunError(
                    f"{where}:{line}: {kind} '{name}' begins before '{begun[3]}' has ended"
                )
            begun = marker
            continue
        if not begun or begun.group(1, 3) != (kind, name):
            raise RunError(f"{where}:{line}: {kind} '{name}' ends here but does not begin")
        content = write(kind, name)
        if content is None:
            left.append(f"{kind} '{name}'")
        else:
            body = f"\n\n{content.strip()}\n\n".replace("\n", newline)
            pieces += [text[copied : begun.end()], body]
            copied = marker.start()
        begun = None
    if begun:
        line = text.count("\n", 0, begun.start()) + 1
        raise RunError(
            f"{where}:{line}: {begun[1]} '{begun[3]}' does not end; "
            f"add <!-- {begun[1]}:END {begun[3]} -->"
        )
    return "".join([*pieces, text[copied:]]), left


def run_names(text: str) -> set[str]:
    """The runs that the markers of `text` name."""
    return {marker[3].partition(":")[0] for marker in _MARKER.finditer(text)}


def matches(name: str, spec: str, path: Path) -> bool:
    """True if a marker's `name` means the run directory at `path`, whose spec is called `spec`."""
    parts = Path(name).parts
    return name == spec or path.resolve().parts[-len(parts) :] == parts


def listed_versions(program: Path) -> list[dict]:
    """The output of `program --list-versions --json`, with one dictionary per version. Raises
    RunError if the program fails."""
    return _asked(program, "--list-versions", "its versions")


def schema_of(program: Path) -> dict:
    """The JSON Schema of a spec that `program` prints. Raises RunError if it fails."""
    return _asked(program, "--schema", "the schema of a spec")


def _asked(program: Path, option: str, what: str) -> Any:
    command = [str(program.absolute()), option, "--json"]
    try:
        result = subprocess.run(command, capture_output=True, text=True, check=True)
        return json.loads(result.stdout)
    except (OSError, subprocess.CalledProcessError, ValueError) as error:
        raise RunError(f"{program}: cannot list {what} ({error}); run `make`") from None
