"""tools/skipped.py reads the reports of GoogleTest and pytest."""

import subprocess
import sys
from pathlib import Path

TOOL = Path(__file__).parents[2] / "tools" / "skipped.py"

GOOGLETEST = b"""<?xml version="1.0" encoding="UTF-8"?>
<testsuites><testsuite name="A">
<testcase name="one" value_param="\xff" status="run"/>
<testcase name="two"><skipped message="a/b_test.cpp:12&#x0A;no CUDA  device"/></testcase>
<testcase name="three"><skipped message="a/b_test.cpp:9&#x0A;no CUDA device"/></testcase>
</testsuite></testsuites>"""

PYTEST = b"""<testsuites><testsuite name="pytest">
<testcase name="four"><skipped type="pytest.skip" message="no Slurm">t.py:3: no Slurm</skipped>
</testcase><testcase name="five"/></testsuite></testsuites>"""


def said(folder: Path, *reports: bytes) -> str:
    files = [folder / f"{i}.xml" for i in range(len(reports))]
    for file, report in zip(files, reports, strict=True):
        file.write_bytes(report)
    command = [sys.executable, str(TOOL), *map(str, files)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_skips_are_counted_by_reason(tmp_path):
    text = said(tmp_path, GOOGLETEST, PYTEST)
    reasons = "2 because: no CUDA device; 1 because: no Slurm"
    assert text == f"Skipped 3 of 5 tests: {reasons}.\n"


def test_nothing_skipped_is_said(tmp_path):
    text = said(tmp_path, b"<testsuite><testcase name='one'/></testsuite>")
    assert text == "Nothing was skipped: all 1 tests ran.\n"
