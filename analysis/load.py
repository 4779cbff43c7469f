"""Reads run directories into pandas frames."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from analysis.ceilings import Ceilings, load_ceilings, nearest_file
from analysis.files import RunError, check_shape, is_there, printable, read_json
from analysis.rows import Column, flag, frame, name, number, read_rows, time, whole
from analysis.words import AXES, STATUSES

__all__ = ["AXES", "PROBLEM", "Run", "RunError", "find_runs", "load_run"]

PROBLEM = ["n", "k", "dim", "precision", "data"]


def _why_no_time(reasons: object) -> str | None:
    """The reason that a row gives for having no time."""
    if not isinstance(reasons, dict):
        raise ValueError("null_reasons is not an object")
    why = reasons.get("iteration_ms")
    if not isinstance(why, str | None):
        raise ValueError("null_reasons has something else than text for iteration_ms")
    return why


def _noise(noise: object) -> str | None:
    """What disturbed a sample, in words."""
    reasons = noise.get("reasons", []) if isinstance(noise, dict) else None
    if not isinstance(reasons, list) or not all(isinstance(text, str) for text in reasons):
        raise ValueError("noise is not an object with a list of texts `reasons`")
    return "; ".join(reasons) or None


_SIZES = [whole(size, needed=True, low=1) for size in ("n", "k", "dim")]
_TUNABLES = [whole(axis, low=1) for axis in AXES]
MEASUREMENTS = [
    *(name("point", needed=True), name("version", needed=True)),
    *(name("family"), name("backend"), *_SIZES, *_TUNABLES, name("precision", needed=True)),
    *(flag("oversubscribed"), name("data", needed=True), name("data_part")),
    *(whole("launch"), whole("repetition"), whole("repetitions")),
    *(name("status", needed=True, names=STATUSES), name("reason")),
    *(time("solve_ms"), time("iteration_ms"), time("end_to_end_ms"), time("waited_ms")),
    *(whole("iterations"), number("inertia", high=1e100), flag("verified")),
    *(whole("label_mismatches"), number("max_regret", high=1e100)),
    number("regret_bound", high=1e100),
    *(number("inertia_excess", low=-1e100, high=1e100), number("max_mean_error", high=1e100)),
    *(name("timing_basis"), time("floor_ms"), name("chosen"), name("gpu")),
    *(number("sm_mhz"), number("mem_mhz"), number("temp_c", low=-300), number("power_w")),
    *(number("energy_j"), name("throttle"), flag("noisy"), name("noise", get=_noise), name("host")),
    name("why_no_time", source="null_reasons", get=_why_no_time),
]
"""What the analysis reads of a row; measurements.jsonl has more."""
PLAN = [
    *(name("point", needed=True), name("version", needed=True), *_SIZES, *_TUNABLES),
    *(name("precision", needed=True), flag("available"), name("reason")),
]
PHASES = [
    *(name("point", needed=True), name("version", needed=True), name("part"), name("phase")),
    *(whole("calls"), time("device_ms"), time("host_ms")),
]
COUNTERS = [
    *(name("point", needed=True), name("version", needed=True), name("phase"), name("kernel")),
    *(name("metric", needed=True), number("value", low=-1e100, high=1e100), name("unit")),
    whole("calls", low=1),
]

_SPEC = {
    **{"name": str, "title": str, "baseline": str, "figures": [str]},
    "data": {"generator": str, "seed": int, "range": [float], "centers": int, "sigma": float},
    "solve": {"init": str, "seed": int},
    "measure": {"max_noise": float},
}
_ENVIRONMENT = {
    "host": str,
    "cpu": {"model": str},
    "gpus": [{"name": str, "driver": str}],
    "build": {"commit": str, "compiler": str},
}
_OVERRIDES = {"set": [str], "only": [str], "filter": str}
_PLAN = {"points": [{}], "parents": {"*": str}, "overrides": _OVERRIDES}

_DIGITS = re.compile(r"(\d+)")
_MARKS = ("measurements.jsonl", "plan.json", "spec.resolved.json")


@dataclass(frozen=True)
class Run:
    """One run directory.

    `measurements` has one row per sample: point × launch × repetition (times in ms). `phases` has
    one per point × phase, `counters` one per point × phase × kernel × metric, `plan` one per point.
    Every column of MEASUREMENTS and the other lists is there, null where the file has none. Of a
    point that was measured again by a resumed run, only the last measurement is kept.
    `parents` maps a version to the one that it is derived from. `warnings` says in plain words what
    was found amiss."""

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
        return str(self.spec.get("name") or printable(self.path.resolve().name))

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


def find_runs(paths: list[Path], skipped: list[str] | None = None) -> list[Path]:
    """The run directories that `paths` name: each path itself, or else every run directory below
    it, sorted. Links below it are not followed.

    Raises RunError when one of them does not exist, or holds no run directory; with `skipped`, when
    all of them do: why the others are left out is added to it."""
    found: list[Path] = []
    useless: list[str] = []
    for path in paths:
        if not path.exists():
            raise RunError(f"{printable(str(path))}: no such directory")
        inside = _runs_below(path) if path.is_dir() else []
        if not inside:
            looked = f"no run directory here or below it (looked for {', '.join(_MARKS)})"
            what = looked if path.is_dir() else "is a file, not a run directory"
            useless.append(f"{printable(str(path))}: {what}")
        found += [run for run in inside if run not in found]
    if useless and (skipped is None or not found):
        raise RunError(useless[0])
    if skipped is not None:
        skipped += useless
    return found


def _runs_below(path: Path) -> list[Path]:
    if any(is_there(path / mark) for mark in _MARKS):
        return [path]
    # rglob would follow links before Python 3.13
    found = [Path(folder) for folder, _, files in os.walk(path) if {*files} & {*_MARKS}]
    return sorted(found, key=_natural)


def _natural(path: Path) -> list[tuple[int, str]]:
    parts = _DIGITS.split(str(path))
    return [(int(part), part) if part.isdecimal() else (-1, part) for part in parts]


def load_run(path: Path) -> Run:
    """Reads one run directory; optional files may be missing.

    Raises RunError for a schema that this version does not know, for a value that cannot be (with
    its file, line and name) and for an optional file that is there but broken. A line that is cut
    off (the run was killed while writing it) is dropped, with a warning that names it."""
    warnings: list[str] = []
    rows = read_rows(path / "measurements.jsonl", MEASUREMENTS, warnings, schema=True)
    plan = _read_plan(path / "plan.json")
    measurements = _counting(rows)
    _check_repetitions(path, measurements, warnings)
    environment = read_json(path / "environment.json", _ENVIRONMENT)
    if measurements["gpu"].nunique() > 1:
        several = ", ".join(measurements["gpu"].dropna().unique())
        warnings.append(f"{path}: rows of several GPUs ({several}); they are never compared")
    measured = measurements["gpu"].dropna()
    gpus = environment.get("gpus") or [{}]
    gpu = str(measured.iloc[0] if len(measured) else gpus[0].get("name") or "")
    return Run(
        path=path,
        spec=read_json(path / "spec.resolved.json", _SPEC),
        environment=environment,
        overrides=plan.get("overrides") or {},
        plan=_planned(path / "plan.json", plan.get("points") or []),
        measurements=measurements,
        phases=_profile(path / "phases.jsonl", PHASES, measurements, warnings),
        counters=_profile(path / "counters.jsonl", COUNTERS, measurements, warnings),
        ceilings=load_ceilings(path, environment, gpu, warnings),
        parents=_parents(path, plan),
        warnings=warnings,
    )


def _profile(
    path: Path, columns: list[Column], measurements: pd.DataFrame, warnings: list[str]
) -> pd.DataFrame:
    """The rows of a profile. Raises RunError for a row that contradicts its point's version."""
    rows = read_rows(path, columns, warnings)
    version = measurements.drop_duplicates("point").set_index("point")["version"]
    expected = rows["point"].map(version)
    wrong = rows[expected.notna() & rows["version"].ne(expected)]
    if len(wrong):
        row = wrong.iloc[0]
        raise RunError(
            f"{path}: point {row['point']} has version {row['version']}, but "
            f"{expected[row.name]} in measurements.jsonl; restore the file"
        )
    return rows


def _read_plan(path: Path) -> dict:
    """The plan; an early one is the list of its points alone."""
    plan = read_json(path, object)
    if isinstance(plan, list):
        plan = {"points": plan}
    check_shape(plan, _PLAN, str(path))
    return plan


def _planned(path: Path, points: list[dict]) -> pd.DataFrame:
    return frame(points, PLAN, f"{path}: points").drop_duplicates("point", ignore_index=True)


def _parents(path: Path, plan: dict) -> dict[str, str]:
    """Which version each one is derived from: the plan says so, else the nearest parents.json."""
    if plan.get("parents"):
        return plan["parents"]
    file = nearest_file(path, "parents.json")
    return read_json(file, {"*": str}) if file else {}


def _counting(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows that count. Of a point that a resumed run measured again only those since its last
    repetition 0 of launch 0, and of a repetition that is there twice the last one."""
    rows["launch"] = rows["launch"].fillna(0)
    rows["repetition"] = rows["repetition"].fillna(0)
    if rows.empty:
        return rows
    begins = rows["repetition"].eq(0) & rows["launch"].eq(0)
    point = pd.Series(pd.factorize(rows["point"])[0], index=rows.index)
    attempt = begins.astype("int64").groupby(point).cumsum()
    last = attempt == attempt.groupby(point).transform("max")
    key = pd.DataFrame({"point": point, "launch": rows["launch"], "repetition": rows["repetition"]})
    kept = last & ~key[last].duplicated(keep="last").reindex(rows.index, fill_value=True)
    # a copy of a million rows is hundreds of megabytes
    return rows if kept.all() else rows[kept].reset_index(drop=True)


def _check_repetitions(path: Path, rows: pd.DataFrame, warnings: list[str]) -> None:
    """Rows of schema 1 say how many repetitions their point has."""
    ok = rows.loc[rows["status"] == "ok", ["point", "repetitions"]]
    ok = ok.groupby("point", sort=False)["repetitions"]
    short = pd.DataFrame({"have": ok.size(), "said": ok.max()})
    short = short[(short["have"] < short["said"]).fillna(False)]
    for point, row in short.iterrows():
        warnings.append(
            f"{path}: {point} has {row['have']} of {row['said']} repetitions; those are used"
        )
