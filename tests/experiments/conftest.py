"""Fixtures of the tests that run the program."""

import pytest
from run_program import PROGRAM

SPEC = """
name: {name}
versions: [{versions}]
baseline: {baseline}
axes:
  n: [{n}]
  k: [3]
  dim: [2]
  threads: [1]
data: {{generator: uniform, seed: 42}}
solve: {{iterations: {iterations}}}
measure:
  {{repetitions: 6, max_seconds: 0.1, max_noise: 0.9, timeout: {timeout}, launches: {launches}}}
"""


@pytest.fixture(scope="session", autouse=True)
def built():
    if not PROGRAM.exists():
        pytest.fail(f"{PROGRAM} is not built; run `make`")


@pytest.fixture
def spec(tmp_path):
    def write(
        versions="cpu_sequential", n="100, 200", timeout=60, iterations=5, name="small", launches=1
    ):
        path = tmp_path / f"{name}.yaml"
        path.write_text(
            SPEC.format(
                name=name,
                versions=versions,
                baseline=versions.split(",")[0],
                n=n,
                timeout=timeout,
                iterations=iterations,
                launches=launches,
            )
        )
        return path

    return write
