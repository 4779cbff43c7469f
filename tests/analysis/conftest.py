from __future__ import annotations

from pathlib import Path

import pytest
from made_runs import Sweep, write_run


@pytest.fixture
def make_run(tmp_path):
    """make_run(name, **Sweep fields) writes a run directory below tmp_path and returns its path."""

    def make(folder: str = "run", **values) -> Path:
        return write_run(tmp_path / folder, Sweep(**values))

    return make
