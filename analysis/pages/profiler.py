"""The table of a traced point, as nvprof printed it: the time and the calls of each kernel."""

from __future__ import annotations

import pandas as pd

from analysis.model.numbers import number_text
from analysis.model.run import Run
from analysis.model.timeline import ACTIVITIES, events_of
from analysis.pages.escape import Code, text
from analysis.pages.table import Table, markdown

GROUPS = {"GPU activities": ACTIVITIES, "API calls": ("api",)}
COLUMNS = ["point", "group", "name", "share", "total_us", "calls", "average_us", "min_us", "max_us"]


def profiler_table(events: pd.DataFrame) -> pd.DataFrame:
    """One row per point, group and name: total, calls, average, minimum and maximum in µs; `share`
    is relative to the group's total. Points are in the file's order, names by falling total."""
    tables = []
    for point, mine in events.groupby("point", sort=False):
        for group, kinds in GROUPS.items():
            durations = mine[mine["kind"].isin(kinds)].groupby("name", sort=False)["duration_us"]
            table = durations.agg(["sum", "count", "mean", "min", "max"]).reset_index()
            table.columns = ["name", *COLUMNS[4:]]
            table["share"] = table["total_us"] / table["total_us"].sum()
            table.insert(0, "group", group)
            table.insert(0, "point", point)
            tables.append(table.sort_values("total_us", ascending=False, kind="stable"))
    joined = pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=COLUMNS)
    return joined[COLUMNS]


def summary(run: Run) -> str:
    """For a page: the tables of every point of a run."""
    tables = profiler_tables(profiler_table(events_of(run)))
    return profiler_markdown(tables, "###")


def profiler_tables(table: pd.DataFrame) -> list[Table]:
    """Two tables a point, of which the first's header is GPU activities or API calls."""
    tables = []
    for point, mine in table.groupby("point", sort=False):
        for group, rows in mine.groupby("group", sort=False):
            header = [group, "share", "total ms", "calls", "average µs", "min µs", "max µs"]
            cells = [
                [
                    Code(row.name_),
                    f"{row.share:.1%}",
                    number_text(row.total_us / 1e3),
                    str(row.calls),
                    *(number_text(us) for us in (row.average_us, row.min_us, row.max_us)),
                ]
                for row in rows.rename(columns={"name": "name_"}).itertuples()
            ]
            name = f"profiler-{len(tables) + 1}"
            tables.append(Table(name, str(point), header, cells, {*header[1:]}))
    return tables


def profiler_markdown(tables: list[Table], heading: str = "##") -> str:
    """A heading and two tables for each point."""
    parts, before = [], None
    for table in tables:
        if table.said != before:
            parts.append(f"{heading} {text(table.said)}\n")
        before = table.said
        parts.append(markdown(table.header, table.rows, table.numeric))
    return "\n".join(parts)
