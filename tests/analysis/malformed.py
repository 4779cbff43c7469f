"""Run directories with something wrong in them, and what every analysis command makes of each.

`python tests/analysis/malformed.py [--filter TEXT] [--part I/N] [--quick]` runs the whole campaign
and prints how many commands ended in a traceback, and where. test_malformed.py runs a part."""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import random
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, os.getcwd())
from made_runs import Sweep, measurement, write_lines, write_run

Spoil = Callable[[Path], object]
VALUES = (None, "x", "", 5, -1, 0, 1.5, 1e308, 1e-320, 10**30, True, [], {}, [1], {"a": 1})
VALUES += (float("nan"), float("inf"), "a" * 500, "\x00\x1b[31m\ud800", "$\\frac{$", "=1+1")
DOCUMENTS = {
    "spec.resolved.json": {
        **{"name": (), "title": (), "baseline": (), "figures": ("x", ["x"], [5], ["speedup"])},
        "data": ({"generator": 5}, {"generator": "uniform", "seed": "x", "range": [1]}),
        "solve": ({"init": 5}, {"seed": "x"}, {"init": None, "seed": -1}),
        "measure": ({"max_noise": "x"}, {"max_noise": [1]}, {"max_noise": -1}),
    },
    "environment.json": {
        "cpu": ({"model": 5}, {"model": None, "cores": "x"}, "x"),
        "gpus": ([5], [{"name": 5}], [{"name": None, "driver": 5}], [[]]),
        "build": ({"commit": 5}, {"dirty": "x"}, 1),
        "host": (),
        "ceilings": ({"gpu": 5}, {"gpu": {"file": "/dev/zero"}}, {"file": "\x00"}),
    },
    "plan.json": {
        "points": ([1], [{}], [{"point": 5}], [{"point": "p", "version": "v"}]),
        "parents": ([1], {"a": 5}, {"luigi_v1_fused": "luigi_v1_fused"}),
        "overrides": ({"set": 5}, {"only": [5]}, {"filter": 5}, {"profile": 5}),
        "fingerprints": ({"binary": 5}, {"external": 5}, {"external": {"a": 5, "b": None}}),
    },
    "ceilings.json": {"ceilings": ([5], [{}], [{"name": "dram_read", "value": "x"}]), "gpu": (5,)},
}
TEXTS = (b"", b"{", b"null", b"[]", b"3", b'"x"', b"{}", b"[[[]]]", b"[" * 100_000, b"\xff\xfe")
TEXTS += (b"\x00" * 100, b'{"title": "\\ud800"}')
LINES = (b"", b"\n\n", b"garbage\n", b"garbage\ngarbage\n", b"\x00" * 100, b"[]\n", b"3\n3\n")
LINES += (b'{"schema": 1}\n', b'{"schema": 9}\n', b"\xff\n", b"[" * 200_000 + b"\n")
LINES += (b'{"schema":1,"schema":2}\n' * 3, b'{"a":1\n"b":2}\n', b'{"schema": 1}{"schema": 1}\n')
TABLES = ("measurements.jsonl", "phases.jsonl", "counters.jsonl", "timeline.jsonl")


def write_good(path: Path) -> Path:
    """A small run that every command has something to say about."""
    sweep = Sweep(
        n=(1000, 2000),
        k=(5,),
        threads_per_block=(128,),
        threads=(2,),
        repetitions=6,
        counters=True,
        ceilings=True,
        floors=True,
    )
    write_run(path, sweep)
    rows = _rows(path / "measurements.jsonl")
    for version in ("fast_auto", "fast_screen", "peer_torch"):
        of = {**dict.fromkeys(["threads", "threads_per_block", "samples_per_thread", "gpus"])}
        of |= {"point": f"{version}/E", "version": version, "family": version.split("_")[0]}
        of |= {"backend": "cuda", "n": 65_536, "k": 16, "dim": 32, "precision": "fp32"}
        for launch in range(2):
            for turn in range(3):
                newer = {"schema": 2, "launch": launch, "repetition": turn, "repetitions": None}
                newer |= {"noisy": turn == 1, "noise": {"reasons": ["other processes"] * turn}}
                newer |= {"inertia_excess": 1e-4, "max_mean_error": 1e-6, "energy_j": 0.5}
                newer |= {"waited_ms": 1.0, "data_part": "first 1 of 2 rows", "processes": None}
                newer |= {"chosen": "fast_screen/x" if version == "fast_auto" else None}
                ms = 0.01 + 0.001 * turn + 0.0001 * launch
                rows.append(measurement(of, iteration_ms=ms, floor_ms=0.001, **newer))
    write_lines(path / "measurements.jsonl", rows)
    event = {"point": "fast_auto/E", "version": "fast_auto", "kind": "kernel", "name": "assign"}
    event |= {"start_us": 1.0, "duration_us": 2.0}
    write_lines(path / "timeline.jsonl", [event, {**event, "kind": "api", "name": "cudaLaunch"}])
    spec = json.loads((path / "spec.resolved.json").read_text())
    spec |= {"data": {"generator": "uniform", "seed": 42}, "solve": {"seed": 1}}
    spec |= {"measure": {"max_noise": 0.02}}
    (path / "spec.resolved.json").write_text(json.dumps(spec))
    return path


def cases(good: Path) -> Iterator[tuple[str, Spoil]]:
    """What is done to a copy of the good run, and its name."""
    yield "nothing", lambda run: None
    for name, keys in DOCUMENTS.items():
        whole = json.loads((good / name).read_text())
        for text in TEXTS:
            yield f"{name} = {text[:20]!r}", _write(name, text)
        for key, special in keys.items():
            for value in (*VALUES, *special):
                changed = json.dumps({**whole, key: value}).encode()
                yield f"{name}: {key} = {str(value)[:30]!r}", _write(name, changed)
    for name in TABLES:
        rows = _rows(good / name)
        text = (good / name).read_bytes()
        for lines in LINES:
            yield f"{name} = {lines[:20]!r}", _write(name, lines)
        yield f"{name} cut", _write(name, text[: len(text) // 2])
        yield f"{name} twice", _write(name, text + text)
        yield f"{name} reversed", _write(name, b"".join(text.splitlines(keepends=True)[::-1]))
        yield f"{name} flipped bits", _flip(name, text)
        for key in dict.fromkeys(key for row in rows for key in row):
            without = [{k: v for k, v in row.items() if k != key} for row in rows]
            yield f"{name}: no {key}", _lines(name, without)
            for value in VALUES:
                said = f"{name}: {key} = {str(value)[:20]!r}"
                yield f"{said} in all", _lines(name, [{**row, key: value} for row in rows])
                last = [*rows[:-1], {**rows[-1], key: value}]
                yield f"{said} in one", _lines(name, last)
    for name in (*DOCUMENTS, *TABLES, "passes.jsonl", "figures"):
        yield f"no {name}", lambda run, name=name: _remove(run / name)
        yield f"{name} is a folder", lambda run, name=name: (_remove(run / name), _dir(run / name))
        yield f"{name} is a pipe", lambda run, name=name: _swap(run / name, os.mkfifo)
        for target in ("/dev/zero", "/nowhere", "/etc/passwd", "."):
            link = lambda path, target=target: os.symlink(target, path)  # noqa: E731
            yield (
                f"{name} links to {target}",
                lambda run, name=name, link=link: _swap(run / name, link),
            )


def _rows(file: Path) -> list[dict]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def _write(name: str, text: bytes) -> Spoil:
    return lambda run: (run / name).write_bytes(text)


def _lines(name: str, rows: list[dict]) -> Spoil:
    return lambda run: write_lines(run / name, rows)


def _flip(name: str, text: bytes) -> Spoil:
    choice, changed = random.Random(7), bytearray(text)
    for _ in range(40):
        changed[choice.randrange(len(changed))] ^= 1 << choice.randrange(8)
    return _write(name, bytes(changed))


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _dir(path: Path) -> None:
    path.mkdir()


def _swap(path: Path, make: Callable[[Path], object]) -> None:
    _remove(path)
    make(path)


def commands(run: Path, good: Path, out: Path) -> dict[str, list[str]]:
    """Every command on `run`, beside a good one where it takes several."""
    page = out / "page.md"
    blocks = ["table:BEGIN sweep", "table:END sweep"]
    for part in ("regimes", "choices", "counters"):
        blocks += [f"table:BEGIN sweep:{part}", f"table:END sweep:{part}"]
    page.write_text("\n".join(f"<!-- {block} -->" for block in blocks))
    return {
        "figures": ["figures", run, "--out", out / "figures"],
        "figures for a paper": [
            *("figures", run, "--only", "noise,speedup", "--class", "acmart", "--out", out / "p")
        ],
        "figures in place": ["figures", run, "--only", "noise"],
        "figures of two": ["figures", good, run, "--only", "speedup", "--out", out / "two"],
        "report": ["report", run, "-o", out / "report"],
        "compare": ["compare", good, run],
        "compare back": ["compare", run, good, "--across-machines"],
        "claims": ["claims", run],
        "table": ["table", "luigi", run],
        "readme-table": ["readme-table", run],
        "tables": ["tables", run, "--out", out / "tables"],
        "artifact": ["artifact", run, "--out", out / "artifact.tar.gz", "--format", "svg"],
        "history": ["history", good, run, "--out", out / "history"],
        "tables of a study": ["table", "luigi", run, "--latex"],
        "readme": ["readme", page, run],
        "regimes": ["regimes", run],
        "choices": ["choices", run],
        "tune": ["tune", run, "-o", out / "table.inc"],
        "profiler": ["profiler", run],
    }


SLOW = ("figures", "report", "artifact")


def crash(arguments: list) -> str | None:
    """Runs a command in this process; the place and kind of the exception that it ends in."""
    import matplotlib.pyplot as plt

    from analysis.__main__ import main

    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            status = main([str(argument) for argument in arguments])
    except SystemExit as end:
        status = end.code
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        own = [f for f in frames if "/analysis/" in f.filename and "/tests/" not in f.filename]
        at = f"{Path(own[-1].filename).name}:{own[-1].lineno}" if own else "?"
        return f"{type(error).__name__} at {at}: {str(error)[:90]!r}"
    finally:
        plt.close("all")
    if status not in (0, 1, 2):
        return f"exit status {status}"
    if status == 2 and not said.getvalue().strip():
        return "exit status 2 without a word"
    return None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--filter", default="", help="only cases whose name has this text")
    parser.add_argument("--sample", type=int, help="only so many of the cases, drawn with a seed")
    parser.add_argument("--part", default="1/1", help="I/N: the cases I, I + N, …, counted from 1")
    parser.add_argument("--quick", action="store_true", help=f"without {' and '.join(SLOW)}")
    options = parser.parse_args()
    begin, ran, made = time.monotonic(), 0, 0
    places: dict[str, list[str]] = {}
    kinds: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        good = write_good(Path(folder) / "good")
        chosen = [case for case in cases(good) if options.filter in case[0]]
        if options.sample and options.sample < len(chosen):
            chosen = random.Random(1).sample(chosen, options.sample)
        first, step = map(int, options.part.split("/"))
        chosen = chosen[first - 1 :: step]
        for name, spoil in chosen:
            made += 1
            run = Path(folder) / "run"
            shutil.rmtree(run, ignore_errors=True)
            shutil.copytree(good, run)
            spoil(run)
            for command, arguments in commands(run, good, Path(folder)).items():
                if options.quick and command in SLOW:
                    continue
                ran += 1
                if fault := crash(arguments):
                    kinds[command] += 1
                    place = fault.split(": ")[0]
                    places.setdefault(place, []).append(f"{command}: {name}: {fault}")
    print(
        f"{made:,} run directories, {ran:,} commands, {time.monotonic() - begin:,.0f} s: "
        f"{sum(kinds.values()):,} tracebacks at {len(places)} places"
    )
    for place, of in sorted(places.items(), key=lambda item: -len(item[1])):
        print(f"{len(of):6} {place}: such as {of[0]}")
    return 1 if places else 0


if __name__ == "__main__":
    sys.exit(main())
