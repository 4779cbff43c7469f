"""The notebook of examples/ runs from its first cell to its last, and is stored without outputs."""

import json
import os
import pathlib
import subprocess
import sys

import pytest
from recorded_runs import recorded_run

ROOT = pathlib.Path(__file__).resolve().parents[1]
NOTEBOOK = ROOT / "examples" / "notebook.ipynb"
CELLS = json.loads(NOTEBOOK.read_text())["cells"]


@pytest.mark.parametrize("run", ["k1000", "dims"])
def test_every_cell_runs_in_order(tmp_path, run):
    """A cell's last expression is evaluated and shown as text, as a notebook does."""
    (tmp_path / "analysis").symlink_to(ROOT / "analysis")
    code = [cell for cell in CELLS if cell["cell_type"] == "code"]
    script = tmp_path / "cells.py"
    sources = ["".join(cell["source"]) for cell in code]
    script.write_text(f"""import ast
here = {{}}
for source in {sources!r}:
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), here)
    if last:
        print(eval(compile(ast.Expression(last.value), "cell", "eval"), here))
""")
    environment = {**os.environ, "MPLBACKEND": "Agg", "RUN": str(recorded_run(run))}
    result = subprocess.run(
        [sys.executable, "-W", "error", script],
        **{"cwd": tmp_path, "env": environment, "capture_output": True, "text": True},
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert "speedup" in result.stdout
    assert "range / median" in result.stdout
    assert (tmp_path / "my_figure.svg").stat().st_size > 10_000


def test_it_is_stored_without_outputs():
    for cell in CELLS:
        if cell["cell_type"] == "code":
            assert cell["outputs"] == []
            assert cell["execution_count"] is None
