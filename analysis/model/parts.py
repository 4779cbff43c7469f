"""Joins the parts of a sweep (run_experiment --shard) into one run."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pandas as pd

from analysis.model.files import RunError
from analysis.model.run import Run


def join_parts(runs: list[Run]) -> list[Run]:
    """The runs, with the parts of each sweep joined, at the place of its first part.

    Parts of one sweep have one spec, one program and one number of parts. If several sweeps of one
    spec are given, the parts in one folder belong together. Raises RunError if a part is there
    twice."""
    sweeps: dict[tuple, list[Run]] = {}
    for run in runs:
        sweeps.setdefault(_sweep(run), []).append(run)
    joined = []
    for of in sweeps.values():
        if not of[0].shard:
            joined += of
        elif len({run.shard for run in of}) == len(of):
            joined.append(_joined(of))
        else:
            folders: dict[Path, list[Run]] = {}
            for run in of:
                folders.setdefault(run.path.resolve().parent, []).append(run)
            joined += [_joined(parts) for parts in folders.values()]
    return joined


def _sweep(run: Run) -> tuple:
    """What all parts of a sweep share, and nothing else does."""
    if not run.shard:
        return (id(run),)
    return json.dumps(run.spec, sort_keys=True), run.binary, run.shard.partition("/")[2]


def _index(run: Run) -> int:
    return int(run.shard.partition("/")[0])


def _joined(parts: list[Run]) -> Run:
    parts = sorted(parts, key=_index)
    for one, other in pairwise(parts):
        if one.shard == other.shard:
            raise RunError(f"{one.path} and {other.path} are both part {one.shard} of one sweep")
    first = parts[0]
    warnings = [warning for part in parts for warning in part.warnings]
    count = int(first.shard.partition("/")[2])
    missing = sorted({*range(1, count + 1)} - {_index(part) for part in parts})
    if missing:
        said = ", ".join(f"{index}/{count}" for index in missing)
        warnings.append(f"{first.path}: parts of its sweep are missing: {said}")
    order = {point: at for at, point in enumerate(first.spec.get("points") or [])}
    plan = _rows(parts, "plan")
    plan = plan.sort_values("point", key=lambda ids: ids.map(order), kind="stable")
    told = [{"shard": part.shard, "environment": part.environment} for part in parts]
    return replace(
        first,
        path=_common(parts),
        parts=tuple(part.path for part in parts) if len(parts) > 1 else (),
        environment={**first.environment, "parts": told},
        plan=plan.reset_index(drop=True),
        measurements=_rows(parts, "measurements"),
        phases=_rows(parts, "phases"),
        counters=_rows(parts, "counters"),
        convergence=_rows(parts, "convergence"),
        ceilings=next((part.ceilings for part in parts if part.ceilings), None),
        cpu_ceilings=next((part.cpu_ceilings for part in parts if part.cpu_ceilings), None),
        parents={name: parent for part in parts for name, parent in part.parents.items()},
        warnings=warnings,
        shard="",
        external={name: of for part in parts for name, of in part.external.items()},
    )


def _rows(parts: list[Run], name: str) -> pd.DataFrame:
    frames = [getattr(part, name) for part in parts]
    return pd.concat([f for f in frames if len(f)] or frames[:1], ignore_index=True)


def _common(parts: list[Run]) -> Path:
    """The folder of the parts; the only part's own."""
    if len(parts) == 1:
        return parts[0].path
    return Path(os.path.commonpath([part.path.absolute() for part in parts]))
