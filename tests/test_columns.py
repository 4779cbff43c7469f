"""Lines of code end at column 100. test_architecture.py says the same about documents."""

import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[1]
ROOMS = (".ci", ".github", "analysis", "cmake", "data/sources", "docs", "examples", "experiments")
ROOMS += ("kernels", "profiling", "tests", "tools")
CODE = (".c", ".cpp", ".cu", ".cuh", ".h", ".inc", ".cmake", ".js", ".py", ".sh", ".yaml", ".yml")
NAMES = ("CMakeLists.txt", "Makefile", "run")


def code():
    """Our own code; the fuzzers' inputs are not."""
    files = [path for room in ("", "data") for path in (ROOT / room).iterdir() if path.is_file()]
    for room in ROOMS:
        files += [path for path in (ROOT / room).rglob("*") if path.is_file()]
    for path in sorted(files):
        if path.suffix in CODE or path.name in NAMES:
            name = path.relative_to(ROOT).as_posix()
            if not name.startswith("tests/fuzz/corpus/"):
                yield name, path.read_text()


def test_lines_of_code_end_at_column_100():
    files = dict(code())
    assert {"Makefile", ".ci/run", "kernels/core/version.h", "tests/test_columns.py"} <= set(files)
    long = [
        f"{name}:{number}"
        for name, text in files.items()
        for number, line in enumerate(text.splitlines(), 1)
        if len(line) > 100
    ]
    assert long == []
