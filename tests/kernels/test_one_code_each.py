"""No version may run another's code under its own name."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BUILD = Path(os.environ.get("LLOYDBENCH_BUILD", ROOT / "build"))


@pytest.mark.skipif(shutil.which("nm") is None, reason="nm (binutils) is not installed")
def test_nothing_of_an_unnamed_namespace_is_shared_between_files():
    """The linker keeps one of all weak symbols of a name, and an unnamed namespace has no name.

    GCC makes such symbols of a template whose template argument is of an unnamed namespace. That is
    how cpu_openmp once ran cpu_sequential's loop.
    """
    symbols = subprocess.run(
        ["nm", "--defined-only", BUILD / "run_experiment"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "5lloyd" in symbols, "the program is stripped"
    shared = re.findall(r" [WVu] (\S*5lloyd\S*12_GLOBAL__N_1\S*)", symbols)
    assert not shared
