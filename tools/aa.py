"""A/A runs: how often `compare` finds a difference where there is none.

    tools/aa.py [--launches 1,3] [--repetitions 9] [--busy 0] [--points 100] [--out DIR]

For each number of launches, runs one spec of cheap CPU points twice, compares the two runs and
counts the points whose verdict is faster or slower, or perhaps so. `--busy B` keeps B loops running
meanwhile, as other users' programs would.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PROGRAM = Path(os.environ.get("LLOYDBENCH_BUILD", ROOT / "build")).resolve() / "run_experiment"
VERSIONS = 2

SPEC = """\
name: aa
versions: [cpu_sequential, cpu_openmp]
axes: {{n: [{sizes}], k: [8], dim: [2], threads: [1]}}
data: {{generator: uniform, seed: 42}}
solve: {{iterations: 5}}
measure: {{launches: {launches}, repetitions: {repetitions}, max_seconds: 0.2, max_noise: 0.02}}
"""


def spec_text(points: int, launches: int, repetitions: int) -> str:
    sizes = ", ".join(str(2000 + 40 * i) for i in range(max(1, points // VERSIONS)))
    return SPEC.format(sizes=sizes, launches=launches, repetitions=repetitions)


def compare(old: Path, new: Path) -> tuple[dict[str, int], str]:
    """The number of points with each verdict, and what `compare` printed."""
    result = subprocess.run(
        [sys.executable, "-m", "analysis", "compare", str(old), str(new)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    text = result.stdout + result.stderr
    if result.returncode not in (0, 1, 2) or not result.stdout:
        raise SystemExit(f"compare failed:\n{text}")
    verdicts = "(?:perhaps )?(?:slower|faster)|no difference found|too few samples"
    return {what: int(n) for n, what in re.findall(rf"(\d+) ({verdicts})", text)}, text


def measure(spec: Path, out: Path) -> float:
    start = time.monotonic()
    subprocess.run(
        [str(PROGRAM), str(spec), "--out", str(out), "--quiet"],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return time.monotonic() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--launches", default="1,3", help="comma list")
    parser.add_argument("--repetitions", type=int, default=9)
    parser.add_argument("--points", type=int, default=100)
    parser.add_argument("--busy", type=int, default=0, help="loops that run meanwhile")
    parser.add_argument("--out", type=Path, help="keep the runs there")
    options = parser.parse_args()
    folder = options.out or Path(tempfile.mkdtemp(prefix="aa-"))
    folder.mkdir(parents=True, exist_ok=True)
    busy = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(options.busy)
    ]
    try:
        print(f"{options.busy} busy loops; runs in {folder}")
        print("launches  points  differ  perhaps  seconds per run")
        for launches in map(int, options.launches.split(",")):
            spec = folder / f"aa-{launches}.yaml"
            spec.write_text(spec_text(options.points, launches, options.repetitions))
            runs = [folder / f"{launches}-{turn}" for turn in ("a", "b")]
            seconds = sum(measure(spec, run) for run in runs) / 2
            counts, text = compare(*runs)
            (folder / f"compare-{launches}.txt").write_text(text)
            differ, perhaps = (
                sum(counts.get(prefix + what, 0) for what in ("slower", "faster"))
                for prefix in ("", "perhaps ")
            )
            points = sum(counts.values())
            print(f"{launches:8}  {points:6}  {differ:6}  {perhaps:7}  {seconds:.0f}", flush=True)
    finally:
        for process in busy:
            process.kill()
            process.wait()


if __name__ == "__main__":
    main()
