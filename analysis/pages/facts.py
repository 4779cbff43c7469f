"""What is known of a run beside its rows: how it was made, and on what."""

from __future__ import annotations

import shlex

from analysis.model.files import printable
from analysis.model.run import Run


def rerun_command(run: Run) -> str:
    """What measures the run again: its own spec, with the options that overrode it."""
    asked = run.overrides
    words = ["run_experiment", f"{run.directories[0]}/spec.yaml"]
    for entry in asked.get("set") or []:
        words += ["--set", str(entry)]
    if asked.get("only"):
        words += ["--only", ",".join(asked["only"])]
    if asked.get("filter"):
        words += ["--filter", asked["filter"]]
    for name in ("repetitions", "warmup", "timeout", "seed", "profile"):
        if asked.get(name) is not None:
            value = asked[name]
            words += [
                f"--{name}",
                ",".join(map(str, value)) if isinstance(value, list) else str(value),
            ]
    if asked.get("shuffle") is not None:
        words.append("--shuffle" if asked["shuffle"] else "--no-shuffle")
    return printable(shlex.join(words))


def facts(run: Run) -> list[tuple[str, str]]:
    """Environment and method, name by name; only what is known."""
    e, spec = run.environment, run.spec
    cpu, build = e.get("cpu") or {}, e.get("build") or {}
    gpus = e.get("gpus") or []
    measure, solve = spec.get("measure") or {}, spec.get("solve") or {}
    rows = run.measurements
    clocks = rows[["sm_mhz", "mem_mhz", "temp_c", "power_w"]].astype(float)
    facts = [("run directory", printable(str(run.path))), ("started", e.get("t_utc"))]
    if run.nodes:
        facts += [("nodes", ", ".join(f"{node}: {cpu}" for node, cpu in run.nodes.items()))]
    else:
        facts += [("host", e.get("host")), ("system", _joined(e, "os", "kernel"))]
        facts += [("CPU", _joined(cpu, "model")), ("cores", cpu.get("cores"))]
        facts += [("memory", e.get("memory"))]
    for gpu in gpus:
        words = [f"{k} {v}" for k, v in gpu.items() if k not in ("name", "index") and v is not None]
        facts.append((str(gpu.get("name") or "GPU"), ", ".join(words)))
    ranges = [
        f"{what}{clocks[column].min():.0f} to {clocks[column].max():.0f} {unit}"
        for column, what, unit in (
            ("sm_mhz", "SM ", "MHz"),
            ("temp_c", "", "°C"),
            ("power_w", "", "W"),
        )
        if clocks[column].notna().any()
    ]
    facts.append(("while measuring", ", ".join(ranges)))
    facts += [("program", _joined(build, "version", "commit", "build_type"))]
    facts += [("tree", {True: "with uncommitted changes", False: "clean"}.get(build.get("dirty")))]
    facts += [("compiler", _joined(build, "compiler", "cxx_flags")), ("CUDA", build.get("cuda"))]
    facts += [("architectures", build.get("cuda_architectures"))]
    data = rows["data"].dropna().unique()
    facts += [("data", ", ".join(data)), ("solve", _words(solve)), ("measure", _words(measure))]
    bases = rows["timing_basis"].dropna().unique()
    facts += [("timing", ", ".join(sorted(bases)))]
    return [(name, str(value)) for name, value in facts if value not in (None, "", "None")]


def _joined(of: dict, *names: str) -> str:
    return ", ".join(str(of[name]) for name in names if of.get(name) not in (None, ""))


def _words(of: dict) -> str:
    return ", ".join(f"{name} {value}" for name, value in of.items() if value is not None)
