"""What holds of a run directory that was resumed to its end, whatever ended its run on the way."""

import collections
import json

# The columns that name a row of each file; two rows with one name are a row too many.
KEYS = {
    "measurements.jsonl": ("point", "launch", "repetition"),
    "phases.jsonl": ("point", "part", "phase"),
    "passes.jsonl": ("point", "pass", "launch"),
    "counters.jsonl": ("point", "pass", "phase", "kernel", "metric", "preset"),
    "timeline.jsonl": ("point", "kind", "name", "start_us"),
    "convergence.jsonl": ("point", "iteration"),
}
WHOLE = ("spec.resolved.json", "environment.json", "plan.json", "benchmark.json")


def rows(directory, name):
    """The rows of a file; whatever follows the last newline is not one yet."""
    file = directory / name
    if not file.exists():
        return []
    return [json.loads(line) for line in file.read_bytes().split(b"\n")[:-1]]


def names(directory, name):
    """How often each row of a file is there, by its name."""
    return collections.Counter(
        tuple(row.get(column) for column in KEYS[name]) for row in rows(directory, name)
    )


def kept(directory):
    """What a resumed run must keep as it is: the samples of launches that are finished."""
    finished = {
        (row["point"], row["launch"])
        for row in rows(directory, "passes.jsonl")
        if row["pass"] == "timing" and row["status"] == "ok"
    }
    return {
        tuple(row[column] for column in KEYS["measurements.jsonl"]): row["solve_ms"]
        for row in rows(directory, "measurements.jsonl")
        if (row["point"], row["launch"]) in finished
    }


def wrong_samples(there, wanted, finished):
    """Each launch must have its repetitions from 0 on, as many as `wanted` has. A launch that was
    resumed takes at least one sample: it may have more, unless it was `finished` before."""
    launches = collections.defaultdict(list)
    for point, launch, repetition in there:
        launches[point, launch].append(repetition)
    number = collections.Counter((point, launch) for point, launch, _ in wanted)
    for key in sorted(set(number) | set(launches)):
        taken = sorted(launches[key])
        more = len(taken) > number[key] > 0 and key not in finished
        if taken != list(range(len(taken))) or (len(taken) != number[key] and not more):
            yield f"measurements.jsonl: {key} has repetitions {taken} of {number[key]}"


def faults(directory, expected, before=None):
    """What is wrong with a finished run that should have the rows of `expected` (by file, as
    `names` gives them) and still the samples of `before` (as `kept` gives them)."""
    found = []
    for name, wanted in expected.items():
        there = names(directory, name)
        if doubled := {row: count for row, count in there.items() if count > 1}:
            found.append(f"{name}: rows more than once: {doubled}")
        if name == "measurements.jsonl":
            finished = {(point, launch) for point, launch, _ in before or {}}
            found += wrong_samples(there, wanted, finished)
            continue
        if lost := set(wanted) - set(there):
            found.append(f"{name}: rows lost: {lost}")
        if extra := set(there) - set(wanted):
            found.append(f"{name}: rows too many: {extra}")
    now = {
        tuple(row[column] for column in KEYS["measurements.jsonl"]): row["solve_ms"]
        for row in rows(directory, "measurements.jsonl")
    }
    for row, solve_ms in (before or {}).items():
        if now.get(row) != solve_ms:
            found.append(f"measurements.jsonl: a finished sample was taken again: {row}")
    for name in WHOLE:
        try:
            json.loads((directory / name).read_text())
        except (OSError, ValueError) as error:
            found.append(f"{name}: {error}")
    if not (directory / "summary.md").exists():
        found.append("summary.md is missing")
    found += [f"{left.name} was left" for left in directory.glob("*.new")]
    return found
