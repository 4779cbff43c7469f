"""tools/compare_sass.py, on listings in the form of cuobjdump's."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[2] / "tools" / "compare_sass.py"
# an unnamed namespace: the compiler puts a hash and the file's name into the symbol
HERE, THERE = (
    "_ZN34_GLOBAL__N__89ba931c_4_k_cu__Z1gPf1fEv",
    "_ZN38_GLOBAL__N__12345678_8_other_cu__Z1gPf1fEv",
)


def listing(*functions: tuple[str, str], arch: str = "sm_90a", address: int = 0) -> str:
    """What `cuobjdump -sass` prints of functions (symbol, instruction)."""
    lines = [f"\tcode for {arch}"]
    for name, instruction in functions:
        lines += [
            f"\t\tFunction : {name}",
            '\t.headerflags\t@"EF_CUDA_SM90"',
            f"        /*{address:04x}*/   {instruction} ;   /* 0x00000a00ff01{address:04x} */",
            f"                                              /* 0x000fe20000000{address:03x} */",
        ]
    return "\n".join(lines)


def compare(folder: Path, old: str, new: str) -> tuple[int, str]:
    """Exit status and output; a stand-in for cuobjdump prints the listing that it is given."""
    fake = folder / "cuobjdump"
    fake.write_text('#!/bin/sh\ncat "$2"\n')
    fake.chmod(0o755)
    for name, text in (("old", old), ("new", new)):
        (folder / name).write_text(text)
    done = subprocess.run(
        [sys.executable, TOOL, folder / "old", folder / "new"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"},
    )
    return done.returncode, done.stdout


def test_a_move_to_another_file_and_address_is_no_difference(tmp_path):
    old = listing((HERE, "LDC R1, c[0x4][0x10]"))
    new = listing((THERE, "LDC R1, c[0x4][0x20]"), address=0x40)
    assert compare(tmp_path, old, new) == (0, "1 of 1 kernels have the same code\n")


def test_the_path_between_two_architectures_is_no_difference(tmp_path):
    """After the code of one architecture, cuobjdump names the file that the next is from."""

    def both(path: str) -> str:
        header = f"Fatbin elf code:\n================\narch = sm_90\nidentifier = {path}\n"
        code = ("_Z1gPf", "FADD R1, R2, R3")
        return listing(code, arch="sm_80") + f"\n\n{header}\n" + listing(code, arch="sm_90")

    assert compare(tmp_path, both("old/g.cu"), both("new/g.cu"))[0] == 0


def test_another_instruction_is_a_difference(tmp_path):
    status, said = compare(
        tmp_path, listing(("_Z1gPf", "FADD R1, R2, R3")), listing(("_Z1gPf", "FMUL R1, R2, R3"))
    )
    assert status == 1
    assert "differs  sm_90a  g(float*)  (1 -> 1 instructions)" in said


@pytest.mark.parametrize(
    ("new", "status", "word"),
    [
        (listing(("_Z1hPf", "FADD R1, R2, R3")), 0, "renamed"),
        (listing(("_Z1hPf", "FMUL R1, R2, R3")), 1, "gone"),
        (listing(("_Z1gPf", "FADD R1, R2, R3"), ("_Z1hPf", "NOP")), 0, "new"),
        (listing(("_Z1gPf", "FADD R1, R2, R3"), arch="sm_80"), 1, "gone"),
    ],
)
def test_other_sets_of_kernels(tmp_path, new, status, word):
    found, said = compare(tmp_path, listing(("_Z1gPf", "FADD R1, R2, R3")), new)
    assert found == status
    assert said.startswith(word)


def test_a_file_without_kernels_is_an_error(tmp_path):
    status, _ = compare(tmp_path, listing(("_Z1gPf", "NOP")), "")
    assert status not in (0, None)
    done = subprocess.run(
        [sys.executable, TOOL, tmp_path / "none", tmp_path / "old"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "there is no such file" in done.stderr
