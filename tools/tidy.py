"""Usage: tidy.py BUILD

Runs clang-tidy over all C++ sources except tests, with the commands that BUILD compiles them by. A
unity file is read as one: it has the findings of its parts, and the headers that they share are
read once.
"""

import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

FOLDERS = ("kernels", "experiments", "profiling", "data", "examples")


def parts_of(unit):
    """The sources of a translation unit: those that a unity file includes, or the unit itself."""
    if unit.parent.name != "Unity":
        return {unit}
    return {Path(part) for part in re.findall(r'#include "(.+\.cpp)"', unit.read_text())}


def main(build):
    root = Path(__file__).resolve().parent.parent
    wanted = {source for folder in FOLDERS for source in (root / folder).rglob("*.cpp")}
    commands = json.loads(Path(build, "compile_commands.json").read_text())
    units = {Path(command["file"]): None for command in commands}  # in order, each once
    units = {unit: parts_of(unit) for unit in units if unit.suffix in (".cpp", ".cxx")}
    units = {unit: parts for unit, parts in units.items() if parts & wanted}
    missing = wanted.difference(*units.values())
    if missing:
        print(f"{build} does not compile {', '.join(map(str, sorted(missing)))}", file=sys.stderr)
        return 1

    def read(unit):
        # A unity file consists of such includes.
        checks = "--checks=-bugprone-suspicious-include"
        command = ["clang-tidy", "--quiet", "-p", build, checks, unit]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    with ThreadPoolExecutor(int(os.environ.get("JOBS") or os.cpu_count())) as pool:
        results = list(pool.map(read, units))
    failed = [result for result in results if result.returncode != 0]
    for result in failed:
        print(result.stdout, file=sys.stderr)
    print(f"clang-tidy: {len(wanted)} sources in {len(units)} units, {len(failed)} with findings")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
