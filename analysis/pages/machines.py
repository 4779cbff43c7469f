"""A spec on several machines: what they are, and the spec's figures of each, side by side."""

from __future__ import annotations

from dataclasses import dataclass

from analysis.measures.points import gather
from analysis.model.run import Run
from analysis.pages.run_page import figure_of, figures_asked
from analysis.pages.sections import Entry, Figure

HEADER = ("machine", "CPU", "GPU", "driver", "CUDA", "commit", "started", "points with a result")


@dataclass(frozen=True)
class Group:
    """The latest run of one spec on each of several machines, and its page's folder."""

    folder: str
    title: str
    members: list[tuple[Entry, Run]]


@dataclass(frozen=True)
class MachinesPage:
    """What the report says of a Group. `rows` are the cells of HEADER, a row per machine.
    `figures` has each figure's name with its pictures: the machine, and the figure."""

    group: Group
    rows: list[list[str]]
    figures: list[tuple[str, list[tuple[str, Figure]]]]


def groups_of(runs: list[Run], entries: list[Entry]) -> list[Group]:
    """The specs that ran on more than one machine. `entries` are those of `runs`."""
    by_name: dict[str, dict[str, tuple[Entry, Run]]] = {}
    # a run's machine is its GPU or CPU; of several runs on one, the latest counts
    for entry, run in sorted(zip(entries, runs, strict=True), key=lambda of: _started(of[1])):
        by_name.setdefault(run.name, {})[run.machine] = (entry, run)
    groups = []
    taken = {entry.folder for entry in entries}
    for name, machines in by_name.items():
        if len(machines) < 2:
            continue
        members = sorted(machines.values(), key=lambda of: entries.index(of[0]))
        folder = f"machines-{members[0][0].folder}"
        while folder in taken:
            folder += "-"
        taken.add(folder)
        groups.append(Group(folder, members[0][1].title or name, members))
    return groups


def machines_page(group: Group) -> MachinesPage:
    """Draws the figures that the spec names, for each machine on its own: no ratio is over another
    machine's time."""
    names = list(dict.fromkeys(n for _, run in group.members for n in figures_asked(run)))
    runs = [run for _, run in group.members]
    named = list(zip(_machines(runs), runs, strict=True))
    figures = []
    for name in names:
        pictures = [
            (machine, figure_of(name, gather([run], run.baseline), run, f"-{place}"))
            for place, (machine, run) in enumerate(named)
        ]
        if any(figure.picture for _, figure in pictures):
            figures.append((name, pictures))
    return MachinesPage(group, [_row(machine, run) for machine, run in named], figures)


def _started(run: Run) -> str:
    return str(run.environment.get("t_utc") or "")


def _machines(runs: list[Run]) -> list[str]:
    """What each run's results come from: the GPU, else the CPU. Equal CPUs are told apart by the
    GPU beside them."""
    used = [run.ran_on for run in runs]
    return [
        f"{name}, beside {run.machine}" if used.count(name) > 1 else name
        for name, run in zip(used, runs, strict=True)
    ]


def _row(machine: str, run: Run) -> list[str]:
    environment = run.environment
    build = environment.get("build") or {}
    gpus = environment.get("gpus") or [{}]
    points = run.measurements.drop_duplicates("point")
    done = run.measurements.loc[run.measurements["status"].eq("ok"), "point"].nunique()
    commit = str(build.get("commit") or "")[:10] + (" (edited)" if build.get("dirty") else "")
    return [
        machine,
        run.cpu,
        ", ".join(run.gpus) or "none used",
        str(gpus[0].get("driver") or "") if run.used_gpu else "",
        str(build.get("cuda") or ""),
        commit,
        _started(run)[:10],
        f"{done:,} of {max(len(run.plan), len(points)):,}",
    ]
