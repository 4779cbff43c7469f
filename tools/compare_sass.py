#!/usr/bin/env python3
"""Compare the machine code of every kernel in two builds, to see whether a change affects kernels.

    tools/compare_sass.py OLD NEW [--arch sm_90a]

OLD and NEW are programs, libraries or object files with CUDA code, such as build/run_experiment
before and after a change. Kernels are matched by demangled name, so they may move to another file.
Addresses, encodings and the offsets of constants that the linker places are ignored.
Prints the kernels that differ, are new, gone or renamed (the same code under another name).
Exit status: 0 when every kernel of OLD is in NEW with the same code, 1 when not, 2 on an error.
Needs cuobjdump and nvdisasm of the CUDA toolkit (or the wheels nvidia-cuda-cuobjdump and
nvidia-cuda-nvdisasm) and c++filt of binutils, and no GPU."""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import NoReturn

ADDRESS = re.compile(r"/\*[0-9a-fx ]+\*/")
PLACED_BY_LINKER = re.compile(r"c\[0x4\]\[0x[0-9a-f]+\]")
Kernels = dict[tuple[str, str], Counter[str]]


def fail(why: str) -> NoReturn:
    """Ends the program with the status of an error; 1 says that code differs."""
    print(why, file=sys.stderr)
    sys.exit(2)


def tool(name: str) -> str:
    """The toolkit's program `name`: from PATH, else beside the nvcc that the build uses, else of a
    wheel beside this Python."""
    if found := shutil.which(name):
        return found
    script = Path(__file__).with_name("find-cuda.sh")
    nvcc = subprocess.run([script], capture_output=True, text=True, check=False).stdout.strip()
    if nvcc and (beside := Path(nvcc).with_name(name)).exists():
        return str(beside)
    wheels = Path(sys.prefix).glob(f"lib/python*/site-packages/nvidia/*/bin/{name}")
    if (found := next(wheels, None)) is not None:
        return str(found)
    fail(
        f"{name} is not on PATH, nor beside nvcc. A full CUDA toolkit has it; so has the wheel\n"
        f"nvidia-cuda-{name}: .venv/bin/pip install nvidia-cuda-cuobjdump nvidia-cuda-nvdisasm"
    )


def parse(text: str) -> list[tuple[str, str, str]]:
    """(architecture, mangled name, code) of each function in the output of `cuobjdump -sass`."""
    functions = []
    architecture = name = ""
    lines: list[str] = []

    def finish() -> None:
        if name:
            functions.append((architecture, name, "\n".join(lines)))

    for line in text.splitlines():
        if found := re.match(r"\s*code for (sm_\w+)", line):
            finish()
            architecture, name, lines = found[1], "", []
        elif line.startswith("Fatbin "):  # the next architecture's header, with the file's path
            finish()
            name, lines = "", []
        elif found := re.match(r"\s*Function : (\S+)", line):
            finish()
            name, lines = found[1], []
        elif name and (code := ADDRESS.sub("", line).strip()) and not code.startswith("."):
            lines.append(PLACED_BY_LINKER.sub("c[0x4][…]", re.sub(r"\s+", " ", code)))
    finish()
    return functions


def demangle(names: list[str]) -> list[str]:
    """Readable names, in which anonymous namespaces do not name their file."""
    done = subprocess.run(
        ["c++filt"], input="\n".join(names), capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()


def kernels(file: Path, architecture: str) -> Kernels:
    """The kernels of a file: (architecture, name) → how often each code has that name."""
    done = subprocess.run(
        [tool("cuobjdump"), "-sass", file], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        fail(f"{file}: cuobjdump: {done.stderr.strip() or done.stdout.strip()}")
    functions = [f for f in parse(done.stdout) if architecture in ("", f[0])]
    if not functions:
        fail(f"{file}: has no CUDA machine code{f' for {architecture}' if architecture else ''}")
    found: Kernels = {}
    for (arch, _, code), name in zip(functions, demangle([f[1] for f in functions]), strict=True):
        found.setdefault((arch, name), Counter())[code] += 1
    return found


def differences(old: Kernels, new: Kernels) -> list[str]:
    """A line for each kernel that differs, is gone, new or renamed."""
    lines = []
    for arch, name in sorted(old.keys() & new.keys()):
        before, after = old[arch, name], new[arch, name]
        if before != after:
            count = f"{size(before)} -> {size(after)} instructions"
            lines.append(f"differs  {arch}  {name}  ({count})")
    added = {key: new[key] for key in sorted(new.keys() - old.keys())}
    for arch, name in sorted(old.keys() - new.keys()):
        same = next(
            (k for k, code in added.items() if k[0] == arch and code == old[arch, name]), None
        )
        if same:
            del added[same]
            lines.append(f"renamed  {arch}  {name}  ->  {same[1]}")
        else:
            lines.append(f"gone     {arch}  {name}")
    return lines + [f"new      {arch}  {name}" for arch, name in added]


def size(codes: Counter[str]) -> int:
    """The number of instructions."""
    return sum(count * (code.count("\n") + 1) for code, count in codes.items())


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--arch", default="", help="only this architecture, such as sm_90a")
    arguments = parser.parse_args()
    for file in (arguments.old, arguments.new):
        if not file.is_file():
            print(f"{file}: there is no such file", file=sys.stderr)
            return 2
    old, new = (kernels(file, arguments.arch) for file in (arguments.old, arguments.new))
    lines = differences(old, new)
    for line in lines:
        print(line)
    same = sum(1 for key in old if new.get(key) == old[key])
    print(f"{same} of {len(old)} kernels have the same code")
    return 0 if all(line.startswith(("renamed", "new")) for line in lines) else 1


if __name__ == "__main__":
    sys.exit(main())
