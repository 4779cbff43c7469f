"""Counters of a run, one row per kernel: operations, bytes, seconds, occupancy, hit rates."""

from __future__ import annotations

import pandas as pd

DURATION = "gpu__time_duration.sum"
OCCUPANCY = "sm__warps_active.avg.pct_of_peak_sustained_active"
L1_HITS = "l1tex__t_sector_hit_rate.pct"
L2_HITS = "lts__t_sector_hit_rate.pct"
BYTES = {"l1": "l1tex__t_bytes.sum", "l2": "lts__t_bytes.sum", "dram": "dram__bytes.sum"}
OPERATIONS = {
    "fp32": "flop_fp32",
    "fp64": "flop_fp64",
    "fp16": "flop_fp16",
    "tensor": "op_tensor",
}

LONGEST_NAME = 24

_TO_SECONDS = {"ns": 1e-9, "nsecond": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "second": 1.0}


def seconds(rows: pd.DataFrame) -> pd.Series:
    """The durations of rows of counters.jsonl in seconds, over all their calls. An unknown unit is
    read as CUPTI's ns."""
    return rows["value"] * rows["unit"].map(_TO_SECONDS).fillna(1e-9) * calls(rows)


def calls(rows: pd.DataFrame) -> pd.Series:
    """How often a row's kernel was launched. The row's value is the mean over the launches."""
    return rows["calls"].astype("Float64").fillna(1).astype(float)


def short_name(kernel: str) -> str:
    """Shortens `void lloyd::(anonymous namespace)::assign<2>(float const*, int)` to `assign`."""
    name = kernel.replace("(anonymous namespace)", "").split("(")[0].split("<")[0]
    name = name.split("::")[-1].split(" ")[-1] or kernel
    # libraries put all their parameters into a name
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"


def by_kernel(counters: pd.DataFrame) -> pd.DataFrame:
    """One row for each (machine ×) point × phase × kernel with a value, over all launches:
    `seconds`, `fp32` … `tensor` (operations), `l1`, `l2`, `dram` (bytes); `occupancy`, `l1_hits`,
    `l2_hits` (%). NaN if a counter is missing."""
    # rows without a kernel belong to a whole phase
    rows = counters[counters["value"].notna() & counters["kernel"].notna()].copy()
    is_time = rows["metric"].eq(DURATION)
    summed = rows["metric"].isin([*BYTES.values(), *OPERATIONS.values()])
    rows.loc[summed, "value"] *= calls(rows[summed])
    rows.loc[is_time, "value"] = seconds(rows[is_time])
    key = [c for c in ("machine", "point", "version", "phase", "kernel") if c in counters]
    names = {
        DURATION: "seconds",
        OCCUPANCY: "occupancy",
        L1_HITS: "l1_hits",
        L2_HITS: "l2_hits",
        **{metric: level for level, metric in BYTES.items()},
        **{metric: kind for kind, metric in OPERATIONS.items()},
    }
    rows["name"] = rows["metric"].map(names)
    rows = rows[rows["name"].notna()]
    # a counter that several presets request has one row for each preset
    rows = rows.drop_duplicates([*key, "metric"])
    columns = list(names.values())
    if rows.empty:
        return pd.DataFrame(columns=[*key, *columns])
    table = rows.set_index([*key, "name"])["value"].unstack("name").reset_index()
    return table.reindex(columns=[*key, *columns])
