"""A clone for tests that follow a page's commands."""

import os
import pathlib
import shutil
import subprocess
import sys
from dataclasses import dataclass

import pytest

# What versions find by trial in the tests' runs is not for the user's cache.
os.environ.setdefault("LLOYDBENCH_TRIALS", "")

ROOT = pathlib.Path(__file__).resolve().parents[1]
# The files that take longest (`pytest --durations=0`), the longest first.
LONG_FILES = [
    ROOT / "tests" / name
    for name in (
        "crash/test_crash_points.py",
        "experiments/test_cheats.py",
        "analysis/test_report.py",
        "experiments/test_restarts.py",
        "experiments/test_mpi.py",
        "experiments/test_hostile.py",
        "profiling/test_cpu_counters.py",
        "test_examples.py",
        "test_comparing_page.py",
        "test_paper_page.py",
        "analysis/test_figures.py",
        "experiments/test_slurm.py",
    )
]
BUILD = pathlib.Path(os.environ.get("LLOYDBENCH_BUILD", ROOT / "build")).resolve()


def pytest_collection_modifyitems(config, items):
    """In one of several processes (tools/test.sh), long files begin first. Otherwise one of them
    may begin last, and all other processes wait for it."""
    missing = [file for file in LONG_FILES if not file.exists()]
    assert not missing, f"tests/conftest.py lists {missing}"
    if hasattr(config, "workerinput"):
        places = {file: place for place, file in enumerate(LONG_FILES)}
        items.sort(key=lambda item: places.get(item.path, len(places)))


@dataclass(frozen=True)
class Clone:
    folder: pathlib.Path

    def follow(self, commands):
        """What the commands print. All of them have to succeed."""
        # of the `make` that runs the tests
        outer = ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "SPEC")
        kept = {name: value for name, value in os.environ.items() if name not in outer}
        result = subprocess.run(
            ["sh", "-ec", commands],
            cwd=self.folder,
            capture_output=True,
            text=True,
            env={**kept, "LLOYDBENCH_CEILINGS": str(self.folder / "ceilings")},
            check=False,
        )
        assert result.returncode == 0, result.stdout + result.stderr
        return result.stdout


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    """A clone that is set up and built, so that `make` has nothing left to install or compile."""
    clone = tmp_path_factory.mktemp("clone") / "lloydbench"
    for folder in ("tools", "build", ".venv/bin"):
        (clone / folder).mkdir(parents=True)
    shutil.copy(ROOT / "Makefile", clone)
    shutil.copy(ROOT / "tools" / "run.sh", clone / "tools")
    for folder in ("analysis", "data", "experiments", "kernels"):
        (clone / folder).symlink_to(ROOT / folder)
    (clone / "build" / "run_experiment").symlink_to(BUILD / "run_experiment")
    shutil.copy(ROOT / "requirements.txt", clone)
    scripts = [clone / "tools" / f"{name}.sh" for name in ("build", "setup-system", "setup-cuda")]
    for script in (*scripts, clone / "tools" / "setup-python.sh"):
        script.write_text("#!/bin/sh\n")
        script.chmod(0o755)
    python = clone / ".venv" / "bin" / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    (clone / ".venv" / ".stamp").touch()  # newer than what it depends on
    return Clone(clone)
