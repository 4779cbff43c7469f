"""Reads run directories into pandas frames."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from analysis.model.ceilings import load_ceilings, load_cpu_ceilings, nearest_file
from analysis.model.columns import Column, flag, name, number, time, whole
from analysis.model.files import RunError, check_shape, printable, read_json
from analysis.model.rows import frame, read_rows
from analysis.model.run import Run, machine_identity
from analysis.model.words import GPU_AXES, INPUT_AXES, LOWEST, STATUSES


def _why_no_time(reasons: object) -> str | None:
    """The reason that a row gives for a missing time."""
    if not isinstance(reasons, dict):
        raise ValueError("null_reasons is not an object")
    why = reasons.get("iteration_ms")
    if not isinstance(why, str | None):
        raise ValueError("null_reasons has no text for iteration_ms")
    return why


def _noise(noise: object) -> str | None:
    """The words that say what disturbed a sample."""
    reasons = noise.get("reasons", []) if isinstance(noise, dict) else None
    if not isinstance(reasons, list) or not all(isinstance(text, str) for text in reasons):
        raise ValueError("noise is not an object with a list of texts `reasons`")
    return "; ".join(reasons) or None


_SIZES = [whole(size, needed=True, low=1) for size in ("n", "k", "dim")] + [whole("batch", low=1)]
_TUNABLES = [whole(axis, low=low) for axis, low in LOWEST.items()]
# texts, because seeds go up to 2^64 - 1
_INPUTS = [name(axis, get=str) for axis in INPUT_AXES]

MEASUREMENTS = [
    *(name("point", needed=True), name("version", needed=True)),
    *(name("family"), name("backend"), *_SIZES, *_TUNABLES, name("precision", needed=True)),
    *(flag("oversubscribed"), name("data", needed=True), name("data_name"), name("data_part")),
    *_INPUTS,
    *(name(axis) for axis in GPU_AXES),
    *(whole("restart"), whole("launch"), whole("repetition"), whole("repetitions")),
    *(name("status", needed=True, names=STATUSES), name("reason")),
    *(
        time("solve_ms"),
        time("iteration_ms"),
        time("end_to_end_ms"),
        time("waited_ms"),
        time("init_ms"),
        time("process_setup_ms"),
        time("end_to_end_floor_ms"),
        time("floor_sustained_ms"),
    ),
    name("init_device"),
    *(whole("iterations", low=1), number("inertia", high=1e100), flag("verified")),
    *(whole("verified_points"), whole("label_mismatches"), number("max_regret", high=1e100)),
    number("regret_bound", high=1e100),
    *(number("inertia_excess", low=-1e100, high=1e100), number("max_mean_error", high=1e100)),
    *(name("timing_basis"), time("floor_ms"), name("chosen"), name("chosen_by"), name("gpu")),
    *(number("sm_mhz"), number("mem_mhz"), number("temp_c", low=-300), number("power_w")),
    *(number("energy_j"), name("throttle"), flag("noisy"), name("noise", get=_noise), name("host")),
    *(name("gpu_uuid"), name("node"), name("shard")),
    name("why_no_time", source="null_reasons", get=_why_no_time),
]
"""The columns that the analysis reads; measurements.jsonl has more."""
PLAN = [
    *(name("point", needed=True), name("version", needed=True), *_SIZES, *_TUNABLES),
    *(name("precision", needed=True), flag("available"), name("reason"), *_INPUTS),
    *(name(axis) for axis in GPU_AXES),
    name("data_name"),
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
CONVERGENCE = [
    *(name("point", needed=True), name("version", needed=True), whole("restart")),
    *(whole("iteration", needed=True), number("inertia", high=1e100)),
    *(number("max_shift", high=1e100), whole("changed_labels")),
]
_SPEC = {
    **{"name": str, "title": str, "baseline": str, "figures": [str]},
    "data": object,
    "solve": {"init": str, "seed": int, "tolerance": float, "min_changes": int, "restarts": int},
    "measure": {"max_noise": float},
}
_SOURCE = {
    **{"name": str, "generator": str, "seed": int, "file": str},
    **{"range": [float], "centers": int, "sigma": float},
}
_ENVIRONMENT = {
    "host": str,
    "cpu": {"model": str},
    "gpus": [{"name": str, "driver": str}],
    "build": {"commit": str, "compiler": str},
    "node": str,
}
_ENVIRONMENT["earlier"] = [{**_ENVIRONMENT}]
_ENVIRONMENT["parts"] = [{"environment": {**_ENVIRONMENT}}]
_OVERRIDES = {"set": [str], "only": [str], "filter": str}
_PLAN = {
    "shard": str,
    "fingerprints": {"binary": str, "external": {"*": object}},
    "points": [{}],
    "parents": {"*": str},
    "overrides": _OVERRIDES,
}


def load_run(path: Path) -> Run:
    """Reads one run directory; optional files may be missing.

    Raises RunError for an unknown schema, for an impossible value (with its file, line and name)
    and for an optional file that exists but is broken. A line that is cut off, because the run was
    killed while writing it, is dropped with a warning that names it."""
    warnings: list[str] = []
    rows = read_rows(path / "measurements.jsonl", MEASUREMENTS, warnings, schema=True)
    plan = _read_plan(path / "plan.json")
    spec = read_json(path / "spec.resolved.json", _SPEC)
    if spec.get("data") is not None:
        one = not isinstance(spec["data"], list)
        check_shape(spec["data"], _SOURCE if one else [_SOURCE], f"{path / 'spec.resolved.json'}")
    measurements = _counting(_told_apart(_with_inputs(rows, spec)))
    _check_repetitions(path, measurements, warnings)
    environment = read_json(path / "environment.json", _ENVIRONMENT)
    if measurements["gpu"].nunique() > 1:
        several = ", ".join(measurements["gpu"].dropna().unique())
        warnings.append(f"{path}: rows of several GPUs ({several}); they are never compared")
    if others := _other_starts(environment):
        warnings.append(f"{path}: began on {others}, and was resumed on another machine")
    measured = measurements["gpu"].dropna()
    gpus = environment.get("gpus") or [{}]
    gpu = str(measured.iloc[0] if len(measured) else gpus[0].get("name") or "")
    fingerprints = plan.get("fingerprints") or {}
    external = fingerprints.get("external") or {}
    return Run(
        path=path,
        spec=spec,
        environment=environment,
        overrides=plan.get("overrides") or {},
        plan=_with_inputs(_planned(path / "plan.json", plan.get("points") or []), spec),
        measurements=measurements,
        phases=_profile(path / "phases.jsonl", PHASES, measurements, warnings),
        counters=_profile(path / "counters.jsonl", COUNTERS, measurements, warnings),
        convergence=_profile(path / "convergence.jsonl", CONVERGENCE, measurements, warnings),
        ceilings=load_ceilings(path, environment, gpu, warnings),
        cpu_ceilings=load_cpu_ceilings(path, environment, warnings),
        parents=_parents(path, plan),
        warnings=warnings,
        shard=plan.get("shard") or "",
        binary=fingerprints.get("binary") or "",
        external={name: of for name, of in external.items() if isinstance(of, str)},
    )


def _other_starts(environment: dict) -> str:
    """The machines of a run's earlier starts, if they are not the last one's. CPU rows do not say
    which start they are of."""
    here, starts = machine_identity(environment), environment.get("earlier") or []
    others = [start for start in starts if machine_identity(start) != here]
    words = []
    for start in others:
        cpu = start.get("cpu") or {}
        names = [cpu.get("model"), *(gpu.get("name") for gpu in start.get("gpus") or [])]
        what = ", ".join(str(name) for name in names if name)
        words.append(f"{start.get('host') or 'an unknown host'} ({what})")
    return ", ".join(dict.fromkeys(words))


def run_name(path: Path) -> str:
    """Run.name, without loading the run directory."""
    spec = read_json(path / "spec.resolved.json", _SPEC)
    return str(spec.get("name") or printable(path.resolve().name))


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
    """The plan. An early one is just the list of its points."""
    plan = read_json(path, object)
    if isinstance(plan, list):
        plan = {"points": plan}
    check_shape(plan, _PLAN, str(path))
    return plan


def _planned(path: Path, points: list[dict]) -> pd.DataFrame:
    return frame(points, PLAN, f"{path}: points").drop_duplicates("point", ignore_index=True)


def _parents(path: Path, plan: dict) -> dict[str, str]:
    """The parent of each version, from the plan, else from the nearest parents.json."""
    if plan.get("parents"):
        return plan["parents"]
    file = nearest_file(path, "parents.json")
    return read_json(file, {"*": str}) if file else {}


def _with_inputs(rows: pd.DataFrame, spec: dict) -> pd.DataFrame:
    """Rows before schema 3 do not say how points and initial centroids were drawn; the spec
    does. Rows of older programs have no batch: they solved one problem."""
    rows["batch"] = rows["batch"].fillna(1)
    solve, data = spec.get("solve") or {}, spec.get("data") or {}
    data = {} if isinstance(data, list) else data  # only a newer spec has a list
    of_spec = {"init": solve.get("init"), "init_seed": solve.get("seed")}
    of_spec["data_seed"] = data.get("seed")
    if of_spec["init"] == "file":
        of_spec["init_seed"] = None
    old = rows["init"].isna()
    for axis in INPUT_AXES:
        value = of_spec.get(axis)
        rows.loc[old, axis] = None if value is None else str(value)
        rows[axis] = rows[axis].fillna("")
    return rows


def _told_apart(rows: pd.DataFrame) -> pd.DataFrame:
    """Two named sources may have the same description, such as files of one name in two folders.
    Then `data` has their names, too."""
    same = rows.groupby("data")["data_name"].transform("nunique").gt(1)
    rows["data"] = rows["data"].mask(same, rows["data_name"] + ": " + rows["data"])
    return rows


def _counting(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows that count. If a resumed run measured a point again, these are the rows since its
    last repetition 0 of launch 0 and restart 0. If a repetition occurs twice, the last one
    counts."""
    key = ["restart", "launch", "repetition"]
    rows[key] = rows[key].fillna(0)
    if rows.empty:
        return rows
    begins = rows[key].eq(0).all(axis=1)
    point = pd.Series(pd.factorize(rows["point"])[0], index=rows.index)
    attempt = begins.astype("int64").groupby(point).cumsum()
    last = attempt == attempt.groupby(point).transform("max")
    sample = rows[key].assign(point=point)
    kept = last & ~sample[last].duplicated(keep="last").reindex(rows.index, fill_value=True)
    # a copy of a million rows takes hundreds of megabytes
    return rows if kept.all() else rows[kept].reset_index(drop=True)


def _check_repetitions(path: Path, rows: pd.DataFrame, warnings: list[str]) -> None:
    """Warns about missing repetitions. Rows of schema 1 say how many their point has."""
    ok = rows.loc[rows["status"] == "ok", ["point", "repetitions"]]
    ok = ok.groupby("point", sort=False)["repetitions"]
    short = pd.DataFrame({"have": ok.size(), "said": ok.max()})
    short = short[(short["have"] < short["said"]).fillna(False)]
    for point, row in short.iterrows():
        warnings.append(
            f"{path}: {point} has {row['have']} of {row['said']} repetitions; those are used"
        )
