"""A run directory in memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from analysis.model.ceilings import Ceilings
from analysis.model.files import printable
from analysis.model.words import INPUT_AXES

PROBLEM = ["n", "k", "dim", "batch", "precision", "data", *INPUT_AXES]
"""What tells problems apart. An input axis is a text, empty where the input has no such value (a
file has no seed) or where an old run does not say."""
PROBLEM_BUT_PRECISION = [column for column in PROBLEM if column != "precision"]


def machine_identity(environment: dict) -> tuple:
    """What tells two machines apart, even of one kind, as far as environment.json says it."""
    cpu = environment.get("cpu") or {}
    gpus = [(gpu.get("name"), gpu.get("uuid")) for gpu in environment.get("gpus") or []]
    return (
        environment.get("host"),
        environment.get("node"),
        cpu.get("model"),
        cpu.get("cores"),
        gpus,
    )


@dataclass(frozen=True)
class Run:
    """One run directory.

    `measurements` has one row per sample: point × restart × launch × repetition (times in ms).
    `phases` has one per point × phase, `counters` one per point × phase × kernel × metric,
    `convergence` one per point × restart × iteration, `plan` one per point.
    Every column of MEASUREMENTS and the other lists exists, with nulls if the file has none. If a
    resumed run measured a point again, only the last measurement is kept. `parents` maps a version
    to its parent. `warnings` describes problems that were found."""

    path: Path
    spec: dict
    environment: dict
    overrides: dict
    plan: pd.DataFrame
    measurements: pd.DataFrame
    phases: pd.DataFrame
    counters: pd.DataFrame
    convergence: pd.DataFrame
    ceilings: Ceilings | None
    cpu_ceilings: Ceilings | None
    parents: dict[str, str]
    warnings: list[str] = field(default_factory=list)
    shard: str = ""
    """The part of a sweep that this run is, such as 2/4. Empty for a whole one."""
    binary: str = ""
    """The fingerprint of the program."""
    external: dict[str, str] = field(default_factory=dict)
    """The fingerprints of the files that run external versions. A version that mpirun launches has
    that of mpirun."""
    parts: tuple[Path, ...] = ()
    """The run directories of the parts of a sweep, if this run is several of them; `path` is then
    a folder that has them all."""

    @property
    def directories(self) -> tuple[Path, ...]:
        """The run directories that the rows are from."""
        return self.parts or (self.path,)

    @property
    def name(self) -> str:
        """The spec's name, or the folder's if the spec is missing."""
        return str(self.spec.get("name") or printable(self.path.resolve().name))

    @property
    def title(self) -> str:
        return str(self.spec.get("title") or self.name)

    def source(self, name: str = "") -> dict:
        """What the spec says about a source of points; without a name, about the only one."""
        data = self.spec.get("data") or {}
        sources = data if isinstance(data, list) else [data]
        return next((each for each in sources if (each.get("name") or "") == name), {})

    @property
    def baseline(self) -> str:
        """The version that speedups are relative to. Empty if the spec names none."""
        return str(self.spec.get("baseline") or "")

    @property
    def gpu(self) -> str:
        """The measured GPU, else the machine's first, else empty."""
        measured = self.measurements["gpu"].dropna()
        if len(measured):
            return str(measured.iloc[0])
        for gpu in self.environment.get("gpus") or []:
            if gpu.get("name"):
                return str(gpu["name"])
        return ""

    @property
    def gpus(self) -> list[str]:
        """The measured GPUs. There are several if a run was resumed on another machine."""
        return [str(gpu) for gpu in self.measurements["gpu"].dropna().unique()]

    @property
    def used_gpu(self) -> str:
        """The GPU, unless every point with a result ran on the CPU: then it is empty."""
        done = self.measurements["status"].eq("ok")
        return "" if done.any() and not self.gpus else self.gpu

    @property
    def machines(self) -> dict[str, str]:
        """The machine of each node, if parts of a sweep ran on several: its GPU, else its CPU."""
        cpus = {_node(e): (e.get("cpu") or {}).get("model") for e in self._environments}
        gpus = self.measurements.dropna(subset=["node"]).groupby("node", sort=False)["gpu"].unique()
        machines = {}
        for node, names in gpus.items():
            measured = [str(name) for name in names if isinstance(name, str)]
            if len(measured) < 2:
                machines[str(node)] = (measured or [cpus.get(node) or self.machine])[0]
        return machines

    @property
    def nodes(self) -> dict[str, str]:
        """The CPU of each node, as in `cpu`, if this run is the parts of a sweep."""
        return {_node(environment): _cpu(environment) for environment in self._environments}

    @property
    def cpu(self) -> str:
        """The model of the CPU and its number of cores; empty where it is not known. If the parts
        of a sweep ran on several, all of them."""
        cpus = self.nodes.values() or [_cpu(self.environment)]
        return " and ".join(dict.fromkeys(cpu for cpu in cpus if cpu))

    @property
    def _environments(self) -> list[dict]:
        """Of the parts of a sweep."""
        return [part.get("environment") or {} for part in self.environment.get("parts") or []]

    @property
    def machine(self) -> str:
        """The GPU, else the CPU, else the host. It tells the rows of different machines apart."""
        cpu = (self.environment.get("cpu") or {}).get("model")
        hosts = self.measurements["host"].dropna()
        host = self.environment.get("host") or (hosts.iloc[0] if len(hosts) else "")
        return str(self.gpu or cpu or host or "unknown machine")

    @property
    def ran_on(self) -> str:
        """What the results come from: the GPU, else the CPU."""
        return self.used_gpu or self.cpu or self.machine

    @property
    def name_on_machine(self) -> str:
        """`k5 on NVIDIA H200`."""
        return f"{self.name} on {self.ran_on}"

    def environment_line(self) -> str:
        """One line with GPU, CPU, driver, compiler and commit, as far as they are known. A GPU that
        no result comes from is left out."""
        build = self.environment.get("build") or {}
        gpus = self.environment.get("gpus") or []
        parts = [self.used_gpu]
        if self.cpu:
            parts.append(self.cpu)
        if self.used_gpu and gpus and gpus[0].get("driver"):
            parts.append(f"driver {gpus[0]['driver']}")
        parts.append(str(build.get("compiler") or ""))
        if build.get("commit"):
            dirty = " with uncommitted changes" if build.get("dirty") else ""
            parts.append(f"commit {str(build['commit'])[:10]}{dirty}")
        return " · ".join(part for part in parts if part) or "environment not recorded"


def _node(environment: dict) -> str:
    return str(environment.get("node") or environment.get("host") or "")


def _cpu(environment: dict) -> str:
    cpu = environment.get("cpu") or {}
    cores = f" ({cpu['cores']} core{'' if cpu['cores'] == 1 else 's'})" if cpu.get("cores") else ""
    return f"{cpu['model']}{cores}" if cpu.get("model") else ""
