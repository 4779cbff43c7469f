from __future__ import annotations

from pathlib import Path

import pytest
from made_runs import Sweep, realistic_faults, write_run
from recorded_runs import recorded_run

from analysis.__main__ import main


@pytest.fixture
def make_run(tmp_path):
    """make_run(name, **Sweep fields) writes a run directory below tmp_path and returns its path."""

    def make(folder: str = "run", **values) -> Path:
        return write_run(tmp_path / folder, Sweep(**values))

    return make


@pytest.fixture(scope="session")
def report(tmp_path_factory):
    """Writes the report of a recorded run and of two own ones, one with faults; its folder."""
    folder = tmp_path_factory.mktemp("report")
    everything = {"counters": True, "ceilings": True, "floors": True}
    write_run(folder / "runs/k5", Sweep(name="k5", k=(5,), n=(10_000, 10_000_000), **everything))
    odd = {"name": "odd", "title": "A <script>alert(1)</script> & 'title'"}
    large = {"k": (1000,), "n": (10_000_000,), "faults": realistic_faults()}
    write_run(folder / "runs/odd", Sweep(**odd, **large))
    out = folder / "out"
    assert main(["report", str(recorded_run("k1000")), str(folder / "runs"), "-o", str(out)]) == 0
    return out


@pytest.fixture(scope="session")
def single_file(tmp_path_factory):
    """The same of the recorded run alone, as one file."""
    out = tmp_path_factory.mktemp("single")
    assert main(["report", str(recorded_run("k1000")), "-o", str(out), "--single-file"]) == 0
    return out / "report.html"
