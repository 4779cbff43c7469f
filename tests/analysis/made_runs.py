"""Writes run directories that look like real ones: a cost model of each version with noise, limits
and faults.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

GPU = "NVIDIA H200"
CPU = "AMD EPYC 9654 96-Core Processor"
HOST = "node17"

# ns per point × cluster × dimension, and µs per iteration for launches and copies
GPU_VERSIONS = {
    "luigi_v1_fused": (0.0021, 260.0),
    "luigi_v2_split": (0.0016, 180.0),
    "luigi_v3_shared_centroids": (0.0009, 170.0),
    "luigi_v4_device_update": (0.0008, 22.0),
}
CPU_VERSIONS = {"cpu_sequential": 0.55, "cpu_openmp": 0.55}
PARENTS = {
    "cpu_sequential": "",
    "cpu_openmp": "cpu_sequential",
    "luigi_v1_fused": "cpu_sequential",
    "luigi_v2_split": "luigi_v1_fused",
    "luigi_v3_shared_centroids": "luigi_v1_fused",
    "luigi_v4_device_update": "luigi_v3_shared_centroids",
    "multi_wgmma": "fast_wgmma",
}
MULTI = {1: 1.01, 2: 1.04, 4: 1.1, 8: 1.3}
"""What each number of GPUs costs multi_wgmma, relative to its share of fast_wgmma's time."""


@dataclass
class Sweep:
    """What to write. `faults` maps a predicate on a row to (status, reason)."""

    name: str = "sweep"
    title: str = "Speedup over K"
    n: tuple[int, ...] = (10_000, 100_000, 1_000_000, 10_000_000)
    k: tuple[int, ...] = (5, 100, 1000)
    dim: tuple[int, ...] = (2,)
    threads_per_block: tuple[int, ...] = (128, 256, 512, 1024)
    threads: tuple[int, ...] = (1, 2, 4)
    gpus: tuple[int, ...] = ()
    repetitions: int = 9
    gpu: str | None = GPU
    gpu_speed: float = 1.0
    baseline: str | None = "cpu_sequential"
    figures: list[str] = field(default_factory=lambda: ["speedup", "tpb"])
    faults: list[tuple[Callable[[dict], bool], str, str]] = field(default_factory=list)
    throttled: Callable[[dict], bool] = lambda row: False
    counters: bool = False
    ceilings: bool = False
    floors: bool = False
    convergence: bool = False
    parents: bool = True
    seed: int = 7


def point_rows(sweep: Sweep) -> Iterable[dict]:
    """One dict a point with its axes, id, backend and noiseless time per iteration in ms."""
    blank = dict.fromkeys(
        ["threads_per_block", "samples_per_thread", "threads", "processes", "gpus"]
    )
    for dim in sweep.dim:
        for k in sweep.k:
            for n in sweep.n:
                for version, cost in CPU_VERSIONS.items():
                    for threads in sweep.threads if version == "cpu_openmp" else [None]:
                        ms = n * k * dim * cost / (0.93 * (threads or 1)) / 1e6 + 0.002
                        yield _named(blank, version, "cpu", n, k, dim, ms, threads=threads)
                for version, (cost, launch) in GPU_VERSIONS.items():
                    for block in sweep.threads_per_block:
                        unfit = 1 + 0.12 * abs(np.log2(block / 256)) ** 1.5
                        ms = (n * k * dim * cost * unfit / 1e6 + launch / 1e3) / sweep.gpu_speed
                        yield _named(blank, version, "cuda", n, k, dim, ms, threads_per_block=block)
                ms = n * k * dim * 3e-9
                if sweep.gpus:
                    yield _named(blank, "fast_wgmma", "cuda", n, k, dim, ms)
                for gpus in sweep.gpus:
                    own = ms / gpus * MULTI[gpus]
                    yield _named(blank, "multi_wgmma", "cuda", n, k, dim, own, gpus=gpus)


def _named(blank, version, backend, n, k, dim, ms, **tunables) -> dict:
    axes = {**blank, **tunables}
    own = "".join(f"/{axis}:{value}" for axis, value in tunables.items() if value is not None)
    return {
        "point": f"{version}/n:{n}/k:{k}/dim:{dim}{own}/precision:fp32",
        "version": version,
        "family": version.split("_")[0],
        "backend": backend,
        "n": n,
        "k": k,
        "dim": dim,
        **axes,
        "precision": "fp32",
        "ms": ms,
    }


def measurement(point: dict, **values) -> dict:
    """A row of measurements.jsonl for `point` (see point_rows), all fields present; `values`
    override.
    """
    cuda = point["backend"] == "cuda"
    row = {
        "schema": 1,
        **{key: value for key, value in point.items() if key != "ms"},
        "reproducible": not cuda,
        "oversubscribed": None if cuda else False,
        "data": "uniform(range=[0,1), seed=42)",
        "seed": 42,
        "repetition": 0,
        "repetitions": 1,
        "status": "ok",
        "reason": None,
        "solve_ms": None,
        "iteration_ms": None,
        "setup_ms": None,
        "transfer_ms": None,
        "end_to_end_ms": None,
        "iterations": None,
        "inertia": None,
        "verified": True,
        "label_mismatches": 0,
        "max_regret": 0.0,
        "regret_bound": 3.6e-7,
        "timing_basis": "cuda_events" if cuda else "steady_clock",
        "floor_ms": None,
        "gpu": GPU if cuda else None,
        "gpu_uuid": "GPU-0b5c" if cuda else None,
        "sm_mhz": 1980 if cuda else None,
        "mem_mhz": 3201 if cuda else None,
        "temp_c": 41 if cuda else None,
        "power_w": 210.5 if cuda else None,
        "throttle": "" if cuda else None,
        "host": HOST,
        "t_utc": "2025-01-02T03:04:05.678Z",
        "null_reasons": {"floor_ms": "ceilings were not measured"},
    }
    row.update(values)
    if row["iteration_ms"] is not None and row["solve_ms"] is None:
        row["solve_ms"] = row["iteration_ms"] * 20
        row["iterations"] = 20
    return row


def write_lines(path: Path, rows: Iterable[dict]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def write_run(path: Path, sweep: Sweep) -> Path:
    """Writes a whole run directory; times are the model's with 1% noise and a tail, as on a real
    machine.
    """
    random = np.random.default_rng(sweep.seed)
    path.mkdir(parents=True)
    points = list(point_rows(sweep))
    rows = [row for point in points for row in _rows_of(point, sweep, random)]
    write_lines(path / "measurements.jsonl", rows)
    plan = {
        "points": [_planned(point, sweep) for point in points],
        "parents": PARENTS if sweep.parents else {},
    }
    (path / "plan.json").write_text(json.dumps(plan))
    spec = {name: getattr(sweep, name) for name in ("name", "title", "baseline", "figures")}
    (path / "spec.resolved.json").write_text(json.dumps(spec))
    environment = {
        "host": HOST,
        "cpu": {"model": CPU, "cores": 96},
        "gpus": [{"name": sweep.gpu, "driver": "580.82.07"}] if sweep.gpu else [],
        "build": {"commit": "06af889d1c2b3a4f", "dirty": False, "compiler": "GNU 12.2.0"},
    }
    (path / "environment.json").write_text(json.dumps(environment))
    told = {row["point"] for row in rows}
    _write_profiles(path, sweep, [point for point in points if point["point"] in told])
    return path


_NO_GPU = "no NVIDIA driver on this machine"


def _planned(point: dict, sweep: Sweep) -> dict:
    """The point in plan.json."""
    kept = {k: v for k, v in point.items() if k not in ("ms", "family", "backend")}
    lost = _has_no_gpu(point, sweep)
    return {**kept, "available": not lost, "reason": _NO_GPU if lost else None}


def _has_no_gpu(point: dict, sweep: Sweep) -> bool:
    return point["backend"] == "cuda" and sweep.gpu is None


def _rows_of(point: dict, sweep: Sweep, random: np.random.Generator) -> Iterable[dict]:
    """The point's rows of measurements.jsonl: one for each repetition, or why there is none."""
    if _has_no_gpu(point, sweep):
        yield _refused(point, "unsupported", _NO_GPU, gpu=None)
        return
    if fault := next(((s, why) for test, s, why in sweep.faults if test(point)), None):
        status, why = fault
        if status != "not run":
            yield _refused(point, status, why.format(**point))
        return
    cuda = point["backend"] == "cuda"
    noise = 1 + np.abs(random.normal(0, 0.01, sweep.repetitions))
    noise += random.random(sweep.repetitions) ** 8 * 0.05
    for repetition in range(sweep.repetitions):
        row = measurement(
            point,
            repetition=repetition,
            repetitions=sweep.repetitions,
            iteration_ms=point["ms"] * noise[repetition],
            floor_ms=0.3 * point["ms"] if sweep.floors else None,
            gpu=sweep.gpu if cuda else None,
        )
        if cuda and sweep.throttled(row):
            row["throttle"] = "sw_power_cap"
        yield row


def _write_profiles(path: Path, sweep: Sweep, measured: list[dict]) -> None:
    """Writes the phases of the measured points, and what else the sweep asks for."""
    on_gpu = [point for point in measured if point["backend"] == "cuda"]

    def write(name: str, of: list[dict], rows_of: Callable[[dict], list[dict]]) -> None:
        write_lines(path / name, [row for point in of for row in rows_of(point)])

    write("phases.jsonl", measured, phase_rows)
    if sweep.counters:
        write("counters.jsonl", on_gpu, counter_rows)
    if sweep.convergence:
        write("convergence.jsonl", measured, convergence_rows)
    if sweep.ceilings:
        (path / "ceilings.json").write_text(json.dumps(ceilings(sweep.gpu)))


def phase_rows(point: dict) -> list[dict]:
    """Rows of phases.jsonl: 20 iterations, of which 80% assign and 15% update."""
    shares = {"assign": 0.8, "update": 0.15}
    clock = "device_ms" if point["backend"] == "cuda" else "host_ms"
    blank = {"device_ms": None, "host_ms": None}
    names = {name: point[name] for name in ("point", "version")}
    return [
        {
            **names,
            "part": "solve",
            "phase": phase,
            "calls": 20,
            **blank,
            clock: 20 * s * point["ms"],
        }
        for phase, s in shares.items()
    ]


def convergence_rows(point: dict) -> list[dict]:
    """Rows of convergence.jsonl: two solves of 20 and 16 iterations, of which one finds the best
    inertia."""
    names = {name: point[name] for name in ("point", "version")}
    worth = point["n"] / point["k"]
    return [
        {
            **names,
            **{"restart": restart, "iteration": iteration, "max_shift": None},
            **{"inertia": worth * (1 + 0.02 * restart + 2 * 0.6**iteration)},
            "changed_labels": None,
        }
        for restart, last in enumerate((20, 16))
        for iteration in range(last + 1)
    ]


def counter_rows(point: dict) -> list[dict]:
    """Rows of counters.jsonl of two kernels, as CUPTI names them; one counter could not be had."""
    work = point["n"] * point["k"] * point["dim"]
    shared = "shared" in point["version"] or "device" in point["version"]
    values = {
        "gpu__time_duration.sum": (point["ms"] * 0.8e6, "ns", "roofline"),
        "flop_fp32": (3.0 * work, "flop", "roofline"),
        "flop_fp64": (0.0, "flop", "roofline"),
        "op_tensor": (0.0, "op", "roofline"),
        "l1tex__t_bytes.sum": (work * (0.4 if shared else 4.0), "byte", "roofline"),
        "lts__t_bytes.sum": (point["n"] * 16.0, "byte", "roofline"),
        "dram__bytes.sum": (point["n"] * 12.0, "byte", "roofline"),
        "sm__warps_active.avg.pct_of_peak_sustained_active": (91.0, "%", "occupancy"),
        "l1tex__t_sector_hit_rate.pct": (47.0 if shared else 96.0, "%", "l1"),
        "lts__t_sector_hit_rate.pct": (62.0, "%", "l2"),
    }
    rows = []
    for phase, kernel, part in (
        ("assign", "void lloyd::(anonymous namespace)::assign_points<2>(float const*, int)", 1.0),
        ("update", "lloyd::(anonymous namespace)::divide(float*, int const*, int)", 0.02),
    ):
        for metric, (value, unit, preset) in values.items():
            rows.append(
                {
                    "point": point["point"],
                    "version": point["version"],
                    "phase": phase,
                    "kernel": kernel,
                    "metric": metric,
                    "preset": preset,
                    "value": value if unit == "%" else value * part,
                    "unit": unit,
                    "passes": 4,
                    "replay": "user",
                    "status": "ok",
                    "reason": None,
                    "calls": 3,
                    "iterations": 3,
                }
            )
            # the same counter over the whole phase
            rows.append({**rows[-1], "kernel": None})
    rows.append({**rows[0], "metric": "x.sum", "value": None, "status": "failed", "reason": "no"})
    return rows


def ceilings(gpu: str | None) -> dict:
    """A ceilings.json with an H200's round numbers."""

    def one(name, unit, value, datasheet=None):
        return {"name": name, "unit": unit, "value": value, "max": value, "datasheet": datasheet}

    return {
        "schema": 1,
        "t_utc": "2025-01-02T03:04:05.678Z",
        "gpu": {"name": gpu} if gpu else None,
        "cpu": {"model": CPU},
        "ceilings": [
            one("dram_read", "GB/s", 4200.0, 4800.0),
            one("dram_copy", "GB/s", 4000.0, 4800.0),
            one("l2_read", "GB/s", 9000.0),
            one("l1_read", "GB/s", 31000.0),
            one("fp32_fma", "TFLOP/s", 60.0, 66.9),
            one("fp64_fma", "TFLOP/s", 30.0, 33.5),
            one("tf32_tensor", "TFLOP/s", 440.0, 494.7),
            one("cpu_l1_read", "GB/s", 2000.0),
            one("cpu_read", "GB/s", 200.0),
            one("cpu_fp32_fma", "TFLOP/s", 3.0),
            {"name": "fp16_tensor", "unit": "TFLOP/s", "value": None, "reason": "no"},
        ],
    }


def _refused(point: dict, status: str, reason: str, **values) -> dict:
    return measurement(
        point,
        status=status,
        reason=reason,
        verified=False,
        timing_basis=None,
        null_reasons={"*": f"not measured: {status}"},
        **values,
    )


def realistic_faults() -> list[tuple[Callable[[dict], bool], str, str]]:
    """What goes wrong in a real sweep of the studies' versions."""
    return [
        (
            lambda p: p["version"] == "luigi_v3_shared_centroids" and p["k"] >= 1000,
            "unsupported",
            "needs 96,000 B of shared memory per block, device allows 49,152 B (static)",
        ),
        (
            lambda p: p["version"] == "luigi_v1_fused"
            and p["threads_per_block"] == 1024
            and p["k"] == 100,
            "unsupported",
            "needs 72 registers × 1,024 threads = 73,728 per block, device allows 65,536",
        ),
        (
            lambda p: p["version"] == "cpu_openmp" and p["n"] * p["k"] >= 10**10,
            "timeout",
            "ended after 600 s",
        ),
    ]
