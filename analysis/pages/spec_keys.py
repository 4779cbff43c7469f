"""The tables of docs/spec.md, from the JSON Schema that `run_experiment --schema` prints."""

from __future__ import annotations

import json
import re
from typing import Any

from analysis.model.files import RunError

SECTIONS = ("data", "solve", "measure", "profile")


def table(schema: dict, part: str) -> str:
    """The keys of a spec ("keys"), of one of its sections, its "axes", or the "generators"."""
    keys = schema["properties"]
    if part == "keys":
        return _keys(keys, schema["required"])
    if part == "axes":
        return _axes(keys["axes"]["properties"])
    if part == "generators":
        choices = _properties(keys["data"])["generator"]["oneOf"]
        return _markdown(
            ["generator", "points"],
            [[f"`{each['const']}`", each["description"]] for each in choices],
        )
    if part in SECTIONS:
        return _keys(_properties(keys[part]), [])
    known = ", ".join(["keys", "axes", "generators", *SECTIONS])
    raise RunError(f"table 'spec:{part}' must be one of {known}")


def _properties(section: dict) -> dict[str, dict]:
    """The keys of a section, or of each entry of one that may be a list."""
    return (section["anyOf"][0] if "anyOf" in section else section)["properties"]


def _keys(keys: dict[str, dict], needed: list[str]) -> str:
    rows = []
    for name, key in keys.items():
        default = "needed" if name in needed else code(key["default"]) if _has(key) else "–"
        example = code({name: key["examples"][0]})
        rows.append([f"`{name}`", key["x-type"], default, key["description"], example])
    return _markdown(["key", "value", "default", "meaning", "example"], rows)


def _axes(axes: dict[str, dict]) -> str:
    rows = [
        [
            f"`{name}`",
            axis["x-type"],
            code(axis["default"]) if _has(axis) else "–",
            axis["description"],
        ]
        for name, axis in axes.items()
    ]
    return _markdown(["axis", "value", "default", "meaning"], rows)


def _has(key: dict) -> bool:
    return key.get("default") not in (None, [], "")


def _markdown(header: list[str], rows: list[list[str]]) -> str:
    lines = [[*header], ["---"] * len(header), *rows]
    return "".join(
        f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines
    )


def code(value: Any) -> str:
    """A value as a spec writes it."""
    return f"`{flow(value, top=True)}`"


def flow(value: Any, top: bool = False) -> str:
    """A value in YAML's flow style; at the `top` a map has no braces."""
    if isinstance(value, dict):
        pairs = ", ".join(f"{name}: {flow(each)}" for name, each in value.items())
        return pairs if top else f"{{{pairs}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(flow, value))}]"
    if isinstance(value, bool) or not isinstance(value, str):
        return f"{value:g}" if isinstance(value, float) else json.dumps(value)
    return value if re.fullmatch(r"[A-Za-z_][\w .=+/-]*", value) else json.dumps(value)
