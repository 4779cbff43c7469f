"""The machine's highest rates, as run_experiment --ceilings measured them (ceilings.json)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from analysis.model.files import RunError, is_there, read_json

LEVELS = {"l1": "L1", "l2": "L2", "dram": "DRAM"}
"""Levels of memory, nearest first, and their names for a reader."""

BANDWIDTHS = {
    "l1": ("l1_read", "shared_read"),
    "l2": ("l2_read",),
    "dram": ("dram_read", "dram_copy"),
}
RATES = {
    "fp64": ("fp64_fma",),
    "fp32": ("fp32_fma",),
    "fp64 tensor": ("fp64_tensor",),
    "tf32 tensor": ("tf32_tensor",),
    "bf16 tensor": ("bf16_tensor",),
    "fp16 tensor": ("fp16_tensor",),
}
CPU_BANDWIDTHS = {
    "l1": ("cpu_l1_read", "cpu_cache_read"),
    "l2": ("cpu_l2_read",),
    "l3": ("cpu_l3_read",),
    "dram": ("cpu_read",),
}
CPU_RATES = {"fp32": ("cpu_fp32_fma",), "fp64": ("cpu_fp64_fma",)}
_CEILING = {"name": str, "unit": str, "value": float, "datasheet": float}
_SHAPE = {"ceilings": [_CEILING], "gpu": {"name": str}, "cpu": {"model": str, "cores": int}}
_SCALES = {"GB/s": 1e9, "TFLOP/s": 1e12}


@dataclass(frozen=True)
class Ceiling:
    """One ceiling in bytes or operations per second: the measured median, and the value of the
    datasheet (None if it is unknown)."""

    measured: float
    datasheet: float | None = None


@dataclass(frozen=True)
class Ceilings:
    """The measured bandwidths by level, nearest first, and rates by arithmetic. `device` is the
    name of the GPU or CPU, and `cores` are those of a CPU that were used, where that is known."""

    device: str
    bandwidths: dict[str, Ceiling]
    rates: dict[str, Ceiling]
    cores: int | None = None


def nearest_file(run: Path, name: str) -> Path | None:
    """The file `name` in the run directory or in one of the three folders above it. The runs of a
    folder can share such a file."""
    run = run.resolve()
    if is_there(run / name):
        return run / name
    # the folders above belong to the user, so links in them are intended
    return next((f.resolve() for p in run.parents[:3] if (f := p / name).is_file()), None)


def ceilings_file(run: Path, environment: dict, device: str) -> Path | None:
    """The nearest ceilings.json, else the one that the run's environment names for the device:
    "gpu" or "cpu". A file that was measured at another time is not the one it names: other machines
    have a file of this name."""
    file = nearest_file(run, "ceilings.json")
    named = environment.get("ceilings")
    for value in (named, named.get(device) if isinstance(named, dict) else None):
        if file is None and isinstance(value, dict) and isinstance(value.get("file"), str):
            file = Path(value["file"])
            file = file if file.is_file() and _made_at(file, value.get("t_utc")) else None
    return file


def _made_at(file: Path, t_utc: object) -> bool:
    try:
        return t_utc is None or read_json(file, {"t_utc": str}).get("t_utc") == t_utc
    except RunError:
        return True  # who reads it says what is wrong


def load_ceilings(run: Path, environment: dict, gpu: str, warnings: list[str]) -> Ceilings | None:
    """The GPU's ceilings for a run. None if there are none, or with a warning if the nearest ones
    are for another GPU."""
    read = _read(run, environment, "gpu", "name", (BANDWIDTHS, RATES), warnings)
    if read is None:
        return None
    file, ceilings = read
    if not ceilings.device and not gpu:
        return None  # a machine without a GPU
    if not ceilings.device or (gpu and ceilings.device != gpu):
        named = ceilings.device or "no GPU"
        warnings.append(f"{file}: ceilings of {named}, the run is of {gpu}; not used")
        return None
    return ceilings


def load_cpu_ceilings(run: Path, environment: dict, warnings: list[str]) -> Ceilings | None:
    """The CPU's ceilings for a run. None if there are none, or only those of another CPU."""
    told: list[str] = []  # what is wrong with the file, load_ceilings() says
    read = _read(run, environment, "cpu", "model", (CPU_BANDWIDTHS, CPU_RATES), told)
    cpu = environment.get("cpu") or {}
    if read is None or not read[1].device or not read[1].bandwidths:
        return None
    cores = {count for count in (cpu.get("cores"), read[1].cores) if count is not None}
    return read[1] if read[1].device == cpu.get("model") and len(cores) < 2 else None


def _read(
    run: Path, environment: dict, device: str, name: str, names: tuple, warnings: list[str]
) -> tuple[Path, Ceilings] | None:
    """The nearest file and its ceilings of a device. None, with a warning, if it is broken."""
    file = ceilings_file(run, environment, device)
    if file is None:
        return None
    try:
        data = read_json(file, _SHAPE)
        listed = {
            c["name"]: c for c in data.get("ceilings") or [] if c.get("value") and c["value"] > 0
        }
        bandwidths, rates = (
            {key: c for key, of in kind.items() if (c := _pick(listed, of))} for kind in names
        )
    except RunError as error:
        warnings.append(f"{error}; it is not used")
        return None
    except KeyError as error:
        warnings.append(f"{file}: not a file of ceilings ({error} is missing); it is not used")
        return None
    of = data.get(device) or {}
    cores = of.get("cores") if device == "cpu" else None
    return file, Ceilings(str(of.get(name) or ""), bandwidths, rates, cores)


def _pick(listed: dict, names: tuple[str, ...]) -> Ceiling | None:
    known = [listed[name] for name in names if name in listed]
    if not known:
        return None
    best = max(known, key=lambda c: float(c["value"]))
    scale = _SCALES[best["unit"]]
    sheet = best.get("datasheet")
    printed = float(sheet) * scale if sheet is not None and sheet > 0 else None
    return Ceiling(float(best["value"]) * scale, printed)
