"""The rooms of analysis/: who may import whom."""

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "analysis"
ROOMS = ["model", "measures", "figures", "pages"]
"""Each room imports from itself and from those before it."""


def _modules() -> dict[str, Path]:
    files = PACKAGE.rglob("*.py")
    return {".".join(["analysis", *f.relative_to(PACKAGE).with_suffix("").parts]): f for f in files}


def _imports(file: Path, modules: dict[str, Path]) -> set[str]:
    """The modules of the package that a file imports, also within functions."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            whole = {f"{node.module}.{alias.name}" for alias in node.names}
            # `from package import module` needs the module, not the package's own names
            found |= (whole & {*modules}) or {node.module, f"{node.module}.__init__"} & {*modules}
    return found & {*modules}


MODULES = _modules()
GRAPH = {module: _imports(file, MODULES) for module, file in MODULES.items()}


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_only_what_stands_below_it(room):
    mine = {module for module in GRAPH if module.startswith(f"analysis.{room}.")}
    assert len(mine) > 3
    allowed = {f"analysis.{below}" for below in ROOMS[: ROOMS.index(room) + 1]}
    upwards = {
        f"{module} imports {other}"
        for module in mine
        for other in GRAPH[module]
        if ".".join(other.split(".")[:2]) not in allowed
    }
    assert upwards == set()


def test_there_is_no_circle_of_imports():
    # static_order raises CycleError, which names the circle
    order = list(TopologicalSorter(GRAPH).static_order())
    assert order.index("analysis.model.files") < order.index("analysis.pages.report")
    assert GRAPH["analysis.pages.report"] >= {"analysis.pages.html", "analysis.figures.__init__"}
