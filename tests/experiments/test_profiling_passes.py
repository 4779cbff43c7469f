"""The passes after the times: counters and energy."""

import json
import os
import subprocess
import time

import pytest
from run_program import FAULTY, PROGRAM, profiling_passes, rows, run


def profiled_spec(spec, versions, timeout=60):
    path = spec(versions=versions, n="100", timeout=timeout)
    path.write_text(path.read_text() + "profile: {cpu: [cycles, instructions]}\n")
    return path


LATER = {
    "faulty_crashes_later": ("failed", "killed by signal 11"),
    "faulty_hangs_later": ("timeout", "not done within 2 s"),
}


@pytest.mark.parametrize("version", LATER)
def test_a_profiling_pass_that_misbehaves_costs_no_timing(spec, tmp_path, version):
    out = tmp_path / "out"
    environment = {**os.environ, "LLOYDBENCH_TEST_FIRST": str(tmp_path / "first")}
    path = profiled_spec(spec, version, timeout=2)
    result = run(path, "--out", out, program=FAULTY, env=environment)
    assert result.returncode == 0, result.stderr
    assert {row["status"] for row in rows(out)} == {"ok"}
    status, reason = LATER[version]
    counted = rows(out, "counters.jsonl")
    assert [row["metric"] for row in counted] == ["cycles", "instructions"]
    for row in (*counted, *profiling_passes(out)):
        assert (row["status"], row["pass"], row["version"]) == (status, "cpu", version)
        assert reason in row["reason"]
    assert all(row["value"] is None for row in counted)
    assert f"{version}, cpu of 1 point: {status}" in result.stderr
    assert f"not profiled: {version} (cpu) n:100/" in result.stderr
    assert f"\nNot profiled:\n\n* {version} (cpu) n:100/" in (out / "summary.md").read_text()

    # A failure stays, as a failed point does, unless it is to be tried again.
    before = {file.name: file.read_bytes() for file in out.glob("*.jsonl")}
    assert run("--resume", out, program=FAULTY, env=environment).returncode == 0
    assert {file.name: file.read_bytes() for file in out.glob("*.jsonl")} == before
    (tmp_path / "first").unlink()
    again = run("--resume", out, "--retry-failed", program=FAULTY, env=environment)
    assert again.returncode == 0, again.stderr
    assert (out / "measurements.jsonl").read_bytes() == before["measurements.jsonl"]
    assert len(profiling_passes(out)) == 1
    assert status not in {row["status"] for row in rows(out, "counters.jsonl")}


def test_resume_profiles_what_was_only_timed(spec, tmp_path):
    out = tmp_path / "out"
    path = profiled_spec(spec, "cpu_sequential")
    assert run(path, "--out", out).returncode == 0
    counted, timed = rows(out, "counters.jsonl"), rows(out)
    # As if the run had been killed between the rows of the pass and the note that it is complete.
    kept = [row for row in rows(out, "passes.jsonl") if row["pass"] == "timing"]
    (out / "passes.jsonl").write_text("".join(json.dumps(row) + "\n" for row in kept))
    result = run("--resume", out)
    assert result.returncode == 0, result.stderr
    assert rows(out) == timed
    assert [row["metric"] for row in rows(out, "counters.jsonl")] == [
        row["metric"] for row in counted
    ]
    assert len(profiling_passes(out)) == 1


def test_what_is_not_ok_is_not_profiled(spec, tmp_path):
    out = tmp_path / "out"
    run(profiled_spec(spec, "cpu_sequential,faulty_wrong"), "--out", out, program=FAULTY)
    assert {row["version"] for row in rows(out, "counters.jsonl")} == {"cpu_sequential"}


def test_energy_is_null_with_a_reason_or_that_of_a_solve(spec, tmp_path):
    path = spec(n="100", timeout=60)
    powercap = tmp_path / "powercap"
    zone = powercap / "intel-rapl:0"
    zone.mkdir(parents=True)
    (zone / "max_energy_range_uj").write_text("262143328850\n")
    (zone / "energy_uj").write_text("1000000\n")
    environment = {**os.environ, "LLOYDBENCH_POWERCAP": str(powercap)}

    out = tmp_path / "short"
    assert run(path, "--out", out, env=environment).returncode == 0
    for row in rows(out):
        assert row["energy_j"] is None
        assert "measure.max_seconds is below 20" in row["null_reasons"]["energy_j"]

    path.write_text(path.read_text().replace("max_seconds: 0.1", "max_seconds: 20"))
    out = tmp_path / "still"
    assert run(path, "--out", out, env=environment).returncode == 0
    assert {row["null_reasons"]["energy_j"] for row in rows(out)} == {"the counter did not move"}

    out = tmp_path / "counted"
    process = subprocess.Popen(
        [PROGRAM, path, "--out", out, "--quiet"], env=environment, stdout=subprocess.DEVNULL
    )
    used = 1_000_000
    while process.poll() is None:
        used += 5000
        (zone / "energy_uj.new").write_text(f"{used}\n")
        (zone / "energy_uj.new").rename(zone / "energy_uj")
        time.sleep(0.01)
    assert process.returncode == 0
    measured = rows(out)
    assert len({row["energy_j"] for row in measured}) == 1
    assert 0 < measured[0]["energy_j"] < used / 1e6
    assert all("energy_j" not in row["null_reasons"] for row in measured)
    (told,) = profiling_passes(out)
    assert (told["pass"], told["status"], told["energy_j"]) == (
        "energy",
        "ok",
        measured[0]["energy_j"],
    )
    before = {file.name: file.read_bytes() for file in out.glob("*.jsonl")}
    assert run("--resume", out, env=environment).returncode == 0
    assert {file.name: file.read_bytes() for file in out.glob("*.jsonl")} == before
