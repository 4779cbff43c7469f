"""Files of the harness are compiled in batches (LLOYD_UNITY), and a new file shifts the batches. So
no two files of a library may give one name to different things, whichever batch they are in."""

import json
import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

BUILD = Path(os.environ.get("LLOYDBENCH_BUILD", Path(__file__).parents[1] / "build"))
LIBRARIES = ("lloyd_kernels_base", "lloyd_data", "lloyd_profiling", "lloyd_experiments")


def batches_of(library):
    """The entries of compile_commands.json for the batches of a library."""
    every = json.loads((BUILD / "compile_commands.json").read_text())
    return [entry for entry in every if f"/{library}.dir/Unity/" in entry["file"]]


@pytest.mark.parametrize("library", LIBRARIES)
def test_all_files_of_a_library_compile_as_one(library, tmp_path):
    batches = batches_of(library)
    if not batches:
        pytest.skip(f"{BUILD} was configured without LLOYD_UNITY")
    included = "\n".join(Path(entry["file"]).read_text() for entry in batches)
    assert len(set(re.findall(r'#include "(.*)"', included))) > len(batches)
    one = tmp_path / "one.cpp"
    one.write_text(included)
    command = shlex.split(batches[0]["command"])
    command[command.index("-o") : command.index("-o") + 2] = ["-fsyntax-only"]
    command = [str(one) if word == batches[0]["file"] else word for word in command]
    done = subprocess.run(
        command, cwd=batches[0]["directory"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
