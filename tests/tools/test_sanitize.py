"""tools/sanitize.sh with stand-ins for the GPU, for compute-sanitizer and for the tests."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "tools" / "sanitize.sh"
CASES = [
    "RaggedBlocks",
    "OnePoint",
    "EmptyClusters",
    "MoreClustersThanThreads",
    "StopsWhenLabelsRest",
]
VERSIONS = ["fast_grid", "multi_grid", "cpu_openmp", "fast_cpu_simd", "python_numpy"]
OTHERS = """Lloyd/MultiGpu.
  TakesFewPoints/multi_wgmma_fp16_TwoShared  # GetParam() = (1, 1)
  TakesFewPoints/multi_wgmma_fp16_TwoApart  # GetParam() = (1, 3)
StreamGrid.
  TakesAnyNumberOfPoints
Lloyd/StreamWgmma.
  TakesOnePointInTheLastChunk/fp16  # GetParam() = 2"""


def programs(folder: Path, passes: str = "true", summary: str = "ERROR SUMMARY: 0 errors") -> Path:
    """Writes the stand-ins. `passes` is a shell command that says whether the sanitizer passes."""

    def program(name: str, text: str) -> Path:
        file = folder / name
        file.write_text("#!/usr/bin/env bash\n" + text)
        file.chmod(0o755)
        return file

    program("nvidia-smi", "exit 0\n")
    program(
        "compute-sanitizer",
        f'echo "$*" >>{folder}/calls\necho "========= {summary}"\n'
        f'if {passes}; then shift 4; "$@"; else exit 9; fi\n',
    )
    # It lists all its tests, or those that the filter names, as gtest does.
    tests = [f"DISABLED_Solves/{v}_{c}" for v in VERSIONS for c in CASES]
    listed = "\n".join(f"  {test}  # GetParam() = ({i}, {i})" for i, test in enumerate(tests))
    return program(
        "tests",
        f"""
filter=; for a; do case $a in --gtest_filter=*) filter=:${{a#*=}}: ;; esac; done
if [[ $* == *--gtest_list_tests* ]]; then
  if [[ -z $filter ]]; then cat <<'END'
Lloyd/EveryVersion.
{listed}
{OTHERS}
END
  elif [[ $filter == *'*'* ]]; then cat <<'END'
Lloyd/EveryVersion.
{listed}
END
  else tr : '\\n' <<<"$filter" | grep . | sed 's/^[^.]*./  /'; fi
else echo '[       OK ] one'; fi
""",
    )


def sanitize(folder: Path, tests: Path, *options: str) -> subprocess.CompletedProcess[str]:
    path = f"{folder}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["bash", SCRIPT, tests, *options],
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )


def test_runs_the_gpu_versions_under_each_tool(tmp_path: Path) -> None:
    done = sanitize(tmp_path, programs(tmp_path), "2")
    assert done.returncode == 0, done.stdout + done.stderr
    calls = (tmp_path / "calls").read_text().splitlines()
    assert len(calls) == 2 * 4
    memcheck = next(call for call in calls if "--tool memcheck" in call)
    for case in CASES:
        assert f"DISABLED_Solves/fast_grid_{case}:" in memcheck
        assert f"DISABLED_Solves/multi_grid_{case}:" in memcheck
    assert not any(cpu in memcheck for cpu in ("cpu_openmp", "fast_cpu", "python"))
    several = ("_TwoShared:", "StreamGrid.TakesAnyNumberOfPoints", "TheLastChunk/fp16")
    assert all(test in memcheck for test in several)
    assert "_TwoApart" not in memcheck
    racecheck = next(call for call in calls if "--tool racecheck" in call)
    assert not any(test in racecheck for test in ("StopsWhen", *several))
    assert "racecheck: 2 of 7 tests ran" in done.stdout  # in 2 processes, one each


def test_fails_where_a_tool_finds_something(tmp_path: Path) -> None:
    tests = programs(tmp_path, "[[ $2 != racecheck ]]", "Invalid __shared__ read of size 4")
    done = sanitize(tmp_path, tests, "1")
    assert done.returncode == 1
    assert "== racecheck, process 0 of 1" in done.stderr
    assert "Invalid __shared__ read of size 4" in done.stderr
    assert "memcheck, process" not in done.stderr


def test_fails_where_all_tests_are_skipped(tmp_path: Path) -> None:
    tests = programs(tmp_path)
    tests.write_text(tests.read_text().replace("'[       OK ] one'", "'[  SKIPPED ] one'"))
    assert sanitize(tmp_path, tests, "1", "memcheck").returncode == 1


def test_refuses_tests_that_lack_what_it_looks_for(tmp_path: Path) -> None:
    tests = programs(tmp_path)
    tests.write_text(tests.read_text().replace("DISABLED_Solves/", "Renamed/"))
    done = sanitize(tmp_path, tests, "1")
    assert done.returncode == 2
    assert "of 5 tests for memcheck only 4 exist" in done.stderr
