"""Reads run directories into pandas frames."""

from __future__ import annotations

import gc
import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import pandas as pd

from analysis.ceilings import Ceilings, load_ceilings, nearest_file

SCHEMA = 1

AXES = ["threads_per_block", "samples_per_thread", "threads", "processes", "gpus"]
"""The axes that tune a version; null where the version does not use one."""

PROBLEM = ["n", "k", "dim", "precision", "data"]

MEASUREMENT_COLUMNS = [
    *("schema", "point", "version", "family", "backend", "reproducible"),
    *("n", "k", "dim", *AXES, "precision", "oversubscribed"),
    *("data", "seed", "repetition", "repetitions", "status", "reason", "solve_ms", "iteration_ms"),
    *("setup_ms", "transfer_ms", "end_to_end_ms", "iterations", "inertia", "verified"),
    *("label_mismatches", "max_regret", "regret_bound", "timing_basis", "floor_ms", "chosen"),
    *("gpu", "gpu_uuid", "sm_mhz", "mem_mhz"),
    *("temp_c", "power_w", "throttle", "host", "t_utc", "null_reasons"),
]
PLAN_COLUMNS = [
    *("point", "version", "n", "k", "dim", *AXES, "precision", "available", "reason"),
]
PHASE_COLUMNS = ["point", "version", "part", "phase", "calls", "device_ms", "host_ms"]
COUNTER_COLUMNS = [
    *("point", "version", "phase", "kernel", "metric", "preset", "value", "unit", "passes"),
    *("replay", "status", "reason", "calls"),
]

_INTEGERS = ["n", "k", "dim", *AXES, "repetition", "repetitions", "iterations", "calls"]
_FLOATS = ["value", "inertia", "max_regret", "regret_bound"]
_FLOATS += ["sm_mhz", "mem_mhz", "temp_c", "power_w"]
PART_BYTES = 32_000_000
"""Read at a time."""
_DIGITS = re.compile(r"(\d+)")
_MARKS = ("measurements.jsonl", "plan.json", "spec.resolved.json")


class RunError(Exception):
    """A run directory that cannot be used. The message is one line: what, where and the remedy."""


@dataclass(frozen=True)
class Run:
    """One run directory.

    `measurements` has one row per point × repetition (times in ms), `phases` one row per point ×
    phase, `counters` one row per point × phase × kernel × metric, `plan` one row per point; every
    column that the format knows is there, null where the file has none. Of a point that was
    measured again by a resumed run, only the last measurement is kept. `parents` maps a version to
    the one that it is derived from. `warnings` says in plain words what was found amiss."""

    path: Path
    spec: dict
    environment: dict
    overrides: dict
    plan: pd.DataFrame
    measurements: pd.DataFrame
    phases: pd.DataFrame
    counters: pd.DataFrame
    ceilings: Ceilings | None
    parents: dict[str, str]
    warnings: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The spec's name; the folder's where the spec is gone."""
        return str(self.spec.get("name") or self.path.resolve().name)

    @property
    def title(self) -> str:
        return str(self.spec.get("title") or self.name)

    @property
    def baseline(self) -> str:
        """The version that speedups are over; empty where the spec names none."""
        return str(self.spec.get("baseline") or "")

    @property
    def gpu(self) -> str:
        """The GPU that was measured, else the machine's first, else empty."""
        measured = self.measurements["gpu"].dropna()
        if len(measured):
            return str(measured.iloc[0])
        for gpu in self.environment.get("gpus") or []:
            if gpu.get("name"):
                return str(gpu["name"])
        return ""

    @property
    def gpus(self) -> list[str]:
        """The GPUs that were measured; several where a run was resumed on another machine."""
        return [str(gpu) for gpu in self.measurements["gpu"].dropna().unique()]

    @property
    def machine(self) -> str:
        """The GPU, else the CPU, else the host: what sets the rows of one machine apart from
        another's.
        """
        cpu = (self.environment.get("cpu") or {}).get("model")
        hosts = self.measurements["host"].dropna()
        host = self.environment.get("host") or (hosts.iloc[0] if len(hosts) else "")
        return str(self.gpu or cpu or host or "unknown machine")

    def environment_line(self) -> str:
        """GPU, CPU, driver, compiler and commit on one line; only what is known."""
        cpu = self.environment.get("cpu") or {}
        build = self.environment.get("build") or {}
        gpus = self.environment.get("gpus") or []
        parts = [self.gpu]
        if cpu.get("model"):
            cores = f" ({cpu['cores']} cores)" if cpu.get("cores") else ""
            parts.append(f"{cpu['model']}{cores}")
        if gpus and gpus[0].get("driver"):
            parts.append(f"driver {gpus[0]['driver']}")
        parts.append(str(build.get("compiler") or ""))
        if build.get("commit"):
            dirty = " with uncommitted changes" if build.get("dirty") else ""
            parts.append(f"commit {str(build['commit'])[:10]}{dirty}")
        return " · ".join(part for part in parts if part) or "environment not recorded"


def find_runs(paths: list[Path]) -> list[Path]:
    """The run directories that `paths` name: each path itself, or else every run directory below
    it, sorted.

    Raises RunError for a path that is no folder or holds no run directory.
    """
    found: list[Path] = []
    for path in paths:
        if not path.is_dir():
            what = "is a file, not a run directory" if path.exists() else "no such directory"
            raise RunError(f"{path}: {what}")
        if any((path / mark).exists() for mark in _MARKS):
            inside = [path]
        else:
            below = {file.parent for mark in _MARKS for file in path.rglob(mark)}
            inside = sorted(below, key=_natural)
        if not inside:
            raise RunError(
                f"{path}: no run directory here or below it (looked for {', '.join(_MARKS)})"
            )
        found += [run for run in inside if run not in found]
    return found


def _natural(path: Path) -> list[tuple[int, str]]:
    parts = _DIGITS.split(str(path))
    return [(int(part), part) if part.isdecimal() else (-1, part) for part in parts]


def load_run(path: Path) -> Run:
    """Reads one run directory; optional files may be missing.

    Raises RunError for a schema that this version does not know and for an optional file that is
    there but broken. A line that is cut off (the run was killed while writing it) is dropped, with
    a warning that names it."""
    warnings: list[str] = []
    rows = _read_table(path / "measurements.jsonl", MEASUREMENT_COLUMNS, warnings, schema=True)
    plan = _read_json(path / "plan.json")
    points = plan.get("points", []) if isinstance(plan, dict) else plan
    measurements = _last_measurement(rows)
    _check_repetitions(path, measurements, warnings)
    environment = _read_json(path / "environment.json")
    if measurements["gpu"].nunique() > 1:
        several = ", ".join(measurements["gpu"].dropna().unique())
        warnings.append(f"{path}: rows of several GPUs ({several}); they are never compared")
    measured = measurements["gpu"].dropna()
    gpus = environment.get("gpus") or [{}]
    gpu = str(measured.iloc[0] if len(measured) else gpus[0].get("name") or "")
    return Run(
        path=path,
        spec=_read_json(path / "spec.resolved.json"),
        environment=environment,
        overrides=(plan.get("overrides") or {}) if isinstance(plan, dict) else {},
        plan=_frame(points, PLAN_COLUMNS),
        measurements=measurements,
        phases=_read_table(path / "phases.jsonl", PHASE_COLUMNS, warnings),
        counters=_read_table(path / "counters.jsonl", COUNTER_COLUMNS, warnings),
        ceilings=load_ceilings(path, environment, gpu, warnings),
        parents=_parents(path, plan),
        warnings=warnings,
    )


def _parents(path: Path, plan: dict | list) -> dict[str, str]:
    """Which version each one is derived from: the plan says so, else the nearest parents.json."""
    if isinstance(plan, dict) and plan.get("parents"):
        return plan["parents"]
    file = nearest_file(path, "parents.json")
    return _read_json(file) if file else {}


def _read_json(path: Path) -> dict:
    if not path.exists():
        return {}
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise RunError(f"{path}: not valid JSON ({error}); restore or delete the file") from None


def _read_table(
    path: Path, columns: list[str], warnings: list[str], *, schema: bool = False
) -> pd.DataFrame:
    """A JSON-lines file as a frame with at least `columns`; empty when there is no file.

    A million rows are a gigabyte of text, and several as dictionaries: a part at a time becomes a
    frame. Dictionaries of plain values make no cycles, and looking for them takes a third of the
    time."""
    if not path.exists():
        return _frame([], columns)
    parts, number = [], 1
    collecting = gc.isenabled()
    gc.disable()
    try:
        with path.open("rb") as file:
            while lines := file.readlines(PART_BYTES):
                parts.append(_frame(_rows(path, lines, number, file, warnings, schema), columns))
                number += len(lines)
    finally:
        if collecting:
            gc.enable()
    parts = [part for part in parts if len(part)] or parts[:1] or [_frame([], columns)]
    # a column without a value in one part would decide the type of all
    empty = [[c for c in part.columns if part[c].isna().all()] for part in parts]
    if len(parts) == 1:
        return parts[0]
    whole = pd.concat(
        [part.drop(columns=names) for part, names in zip(parts, empty, strict=True)],
        ignore_index=True,
    )
    return whole.reindex(columns=parts[0].columns.union(whole.columns, sort=False))


def _rows(
    path: Path, lines: list[bytes], number: int, file: BinaryIO, warnings: list[str], schema: bool
) -> list[dict]:
    """The objects on `lines`, the first of which is line `number` of the file."""
    try:
        # one call for all lines: half the time of one for each
        rows = json.loads(b"[" + b",".join(line for line in lines if line.strip()) + b"]")
        if all(isinstance(r, dict) and (not schema or r.get("schema") == SCHEMA) for r in rows):
            return rows
    except ValueError:
        pass
    rows = []
    for place, line in enumerate(lines):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError:
            row = None
        where = f"{path}:{number + place}"
        if not isinstance(row, dict):
            last = not any(rest.strip() for rest in lines[place + 1 :]) and not file.peek(1)
            what = "the last line is cut off" if last else "this line is not a row"
            warnings.append(f"{where}: {what}; it is left out")
            continue
        if schema and row.get("schema") != SCHEMA:
            raise RunError(
                f"{where}: schema {row.get('schema')!r}; this version reads schema "
                f"{SCHEMA}. Use the analysis that came with the program that wrote it"
            )
        rows.append(row)
    return rows


def _frame(rows: list[dict], columns: list[str]) -> pd.DataFrame:
    frame = pd.DataFrame.from_records(rows)
    frame = frame.reindex(columns=[*columns, *(c for c in frame.columns if c not in columns)])
    for column in frame.columns:
        if column in _INTEGERS:
            frame[column] = pd.to_numeric(frame[column]).astype("Int64")
        elif column in _FLOATS or column.endswith("_ms"):
            frame[column] = pd.to_numeric(frame[column]).astype("float64")
    return frame


def _last_measurement(rows: pd.DataFrame) -> pd.DataFrame:
    """Of each point only the rows since its last repetition 0: a resumed run measures a failed
    point again.
    """
    if rows.empty:
        return rows
    attempt = (rows["repetition"].fillna(0) == 0).groupby(rows["point"]).cumsum()
    return rows[attempt == attempt.groupby(rows["point"]).transform("max")].reset_index(drop=True)


def _check_repetitions(path: Path, rows: pd.DataFrame, warnings: list[str]) -> None:
    ok = rows[rows["status"] == "ok"].groupby("point", sort=False)["repetitions"]
    short = pd.DataFrame({"have": ok.size(), "said": ok.max()})
    short = short[(short["have"] < short["said"]).fillna(False)]
    for point, row in short.iterrows():
        warnings.append(
            f"{path}: {point} has {row['have']} of {row['said']} repetitions; those are used"
        )
