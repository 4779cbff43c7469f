"""A run directory in memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from analysis.model.ceilings import Ceilings
from analysis.model.files import printable

PROBLEM = ["n", "k", "dim", "precision", "data"]


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
