"""The command `lloydbench`: the program and the analysis under one name."""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys

from lloydbench import HOME, PREFIX

PROGRAM = PREFIX / "bin" / "run_experiment"

HELP = """\
usage: lloydbench COMMAND …

Sweeps over many versions of Lloyd's k-means, verified and measured.

  run SPEC [option…]  run the experiment, then draw its figures into the run directory

{analysis}

All other commands and options are those of run_experiment:

  lloydbench --list-versions      every version, and whether it can run here
  lloydbench --doctor             what this machine can do
  lloydbench SPEC --dry-run       the points of a spec
  run_experiment --help           all of them

Try: lloydbench run sweeps/quickstart.yaml
The specs that came with lloydbench are in {sweeps}.
"""


def _environment() -> dict[str, str]:
    """External versions run under this Python, which has their packages. The program opens CUPTI
    and cuBLAS of NVIDIA's wheels, which are neighbours of this package.
    """
    environment = {"LLOYDBENCH_PYTHON": sys.executable, **os.environ}
    folders = [os.environ.get("LD_LIBRARY_PATH"), *map(str, PREFIX.parent.glob("nvidia/cu*/lib"))]
    if path := ":".join(filter(None, folders)):
        environment["LD_LIBRARY_PATH"] = path
    return environment


def run_experiment(arguments: list[str] | None = None) -> None:
    """Becomes the program run_experiment."""
    arguments = sys.argv[1:] if arguments is None else arguments
    os.execve(PROGRAM, [str(PROGRAM), *arguments], _environment())


def _run_and_draw(arguments: list[str]) -> int:
    """Runs the experiment, then draws its figures, even if some of its points failed."""
    # run_experiment ends an interrupted run properly, so wait for it.
    signal.signal(signal.SIGINT, lambda *_: None)
    directory = None
    command = [str(PROGRAM), *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=_environment()) as process:
        for line in process.stdout:
            sys.stdout.buffer.write(line)
            sys.stdout.buffer.flush()
            # There is no such line if nothing ran (--dry-run) or only JSON was requested.
            if line.startswith(b"results: "):
                directory = os.fsdecode(line.removeprefix(b"results: ").rstrip(b"\n"))
    status = process.returncode
    if status < 0:  # killed by a signal; as a shell says it
        return 128 - status
    if directory is None or status > 1:
        return status
    return status or _analysis(["figures", directory])


def _analysis(arguments: list[str]) -> int:
    from analysis.__main__ import main

    return main(arguments, prog="lloydbench")


def _analysis_commands() -> dict[str, str]:
    """The commands of `python -m analysis` with what each does."""
    from analysis.options import parser

    actions = parser()._actions
    (commands,) = [each for each in actions if isinstance(each, argparse._SubParsersAction)]
    return {each.dest: each.help or "" for each in commands._choices_actions}


def main() -> int:
    sys.path.insert(0, str(HOME))  # before a neighbour of that name
    arguments = sys.argv[1:]
    first = arguments[0] if arguments else "--help"
    if first == "run":
        return _run_and_draw(arguments[1:])
    if first in ("--help", "-h", "help"):
        lines = [f"  {name:<18}  {text}" for name, text in _analysis_commands().items()]
        text = HELP.format(analysis="\n".join(lines), sweeps=HOME / "experiments" / "sweeps")
        print(text, end="")
        return 0 if arguments else 2
    if not first.startswith("-") and first in _analysis_commands():
        return _analysis(arguments)
    run_experiment(arguments)
    return 0


if __name__ == "__main__":
    sys.exit(main())
