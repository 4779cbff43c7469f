"""Tests run_experiment --doctor as a user runs it."""

import json
import os
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("LLOYDBENCH_BUILD", ROOT / "build")).resolve()


def doctor(*arguments, **variables):
    return subprocess.run(
        [BUILD / "run_experiment", "--doctor", *arguments],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
        env={**os.environ, **variables},
    )


def test_json_has_a_status_and_a_remedy_for_each_check():
    checks = json.loads(doctor("--json").stdout)
    names = [check["check"] for check in checks]
    assert len(set(names)) == len(names)
    asked = {"gpu", "counters", "profiler", "clocks", "mig", "exclusive", "cores", "pmu", "mpi"}
    assert asked | {"nsys", "ncu", "python"} <= set(names)
    assert {"driver", "toolkit"} & set(names)
    for check in checks:
        assert set(check) == {"check", "status", "detail", "remedy"}
        assert check["status"] in {"ok", "warn", "missing"}
        assert check["detail"].strip()
        if check["status"] != "ok":
            assert check["remedy"] or "NVML" in check["detail"], check


def test_a_tool_is_found_on_the_path_and_an_injected_profiler_is_seen(tmp_path):
    tool = tmp_path / "nsys"
    tool.write_text("#!/bin/sh\necho 'NVIDIA Nsight Systems version 2025.9.9'\n")
    tool.chmod(0o755)
    output = doctor(
        "--json", PATH=f"{tmp_path}:{os.environ['PATH']}", NVTX_INJECTION64_PATH="/nowhere/tool.so"
    ).stdout
    checks = {check["check"]: check for check in json.loads(output)}
    assert checks["nsys"]["status"] == "ok"
    assert "2025.9.9" in checks["nsys"]["detail"]
    assert checks["profiler"]["status"] == "warn"
    assert "NVTX_INJECTION64_PATH" in checks["profiler"]["detail"]


def test_cores_are_those_that_the_program_may_use():
    own = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(own)})
    try:
        checks = json.loads(doctor("--json").stdout)
    finally:
        os.sched_setaffinity(0, own)
    (cores,) = [check for check in checks if check["check"] == "cores"]
    online = os.sysconf("SC_NPROCESSORS_ONLN")
    assert re.match(rf"this program may use 1 of {online} cores?(;|$)", cores["detail"])


def test_python_is_the_one_that_external_versions_run_under(tmp_path):
    bare = tmp_path / "python"
    bare.write_text("#!/bin/sh\necho numpy pandas\n")
    bare.chmod(0o755)
    checks = json.loads(doctor("--json", LLOYDBENCH_PYTHON=str(bare)).stdout)
    (python,) = [check for check in checks if check["check"] == "python"]
    assert (python["status"], python["detail"]) == ("missing", f"{bare} lacks numpy pandas")
    checks = json.loads(doctor("--json", LLOYDBENCH_PYTHON="/no/such/python").stdout)
    (python,) = [check for check in checks if check["check"] == "python"]
    assert python["status"] == "missing"
    assert python["detail"] == "/no/such/python, which LLOYDBENCH_PYTHON names, does not run"


def test_the_table_has_a_line_for_each_check_and_no_colours_in_a_pipe():
    text = doctor().stdout
    assert "\033" not in text
    checks = json.loads(doctor("--json").stdout)
    for check in checks:
        start = f"{check['status']:<8} {check['check']:<12} "
        assert any(line.startswith(start) for line in text.splitlines()), check
