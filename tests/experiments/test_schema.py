"""The JSON Schema of a spec (`run_experiment --schema`) agrees with the reader."""

import json
import os
import pathlib
import re
import subprocess
from typing import ClassVar

import pytest
import yaml
from jsonschema import Draft202012Validator

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("LLOYDBENCH_BUILD", ROOT / "build")).resolve()
PROGRAM = BUILD / "run_experiment"
SWEEPS = ROOT / "experiments" / "sweeps"
COMMITTED = SWEEPS / "spec.schema.json"
SCHEMA = json.loads(COMMITTED.read_text())
VALIDATOR = Draft202012Validator(SCHEMA)
PAGES = [
    ROOT / "README.md",
    *(page for folder in ("docs", "examples") for page in (ROOT / folder).glob("*.md")),
]


class Yaml12(yaml.SafeLoader):
    """Scalars as YAML 1.2 has them, which editors read. PyYAML itself reads YAML 1.1."""

    yaml_implicit_resolvers: ClassVar = {}


for tag, pattern, first in (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", "-+0123456789"),
    ("float", r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", "-+.0123456789"),
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
):
    Yaml12.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(f"^({pattern})$"), first)


def errors(text, loader=Yaml12):
    return [error.message for error in VALIDATOR.iter_errors(yaml.load(text, loader))]


def run(*arguments, **options):
    return subprocess.run(
        [PROGRAM, *arguments], capture_output=True, text=True, check=False, **options
    )


def test_the_committed_schema_is_the_programs():
    Draft202012Validator.check_schema(SCHEMA)
    printed = run("--schema")
    assert printed.returncode == 0
    assert printed.stdout == COMMITTED.read_text(), "`make docs` writes it again"


@pytest.mark.parametrize("loader", [Yaml12, yaml.SafeLoader], ids=["1.2", "1.1"])
@pytest.mark.parametrize("sweep", sorted(SWEEPS.glob("*.yaml")), ids=lambda path: path.stem)
def test_every_sweep_is_valid_and_names_the_schema(sweep, loader):
    text = sweep.read_text()
    assert errors(text, loader) == []
    named = re.match(r"# yaml-language-server: \$schema=(\S+)\n", text)
    assert (sweep.parent / named[1]).resolve() == COMMITTED


def specs_in_pages():
    for page in PAGES:
        for block in re.findall(r"^```yaml\n(.*?)^```", page.read_text(), re.M | re.S):
            if re.search(r"^versions:", block, re.MULTILINE):
                yield pytest.param(block, id=page.relative_to(ROOT).as_posix())


@pytest.mark.parametrize("text", specs_in_pages())
def test_every_spec_in_the_documentation_is_valid(text):
    assert errors(text) == []


def walk(schema, path=()):
    for name, key in schema.get("properties", {}).items():
        yield (*path, name), key
        yield from walk(key, (*path, name))


@pytest.mark.parametrize(
    ("path", "key"), [pytest.param(p, k, id=".".join(p)) for p, k in walk(SCHEMA)]
)
def test_every_key_says_what_it_is_and_keeps_its_own_rules(path, key):
    assert key["description"]
    assert key["x-type"]
    own = Draft202012Validator(key)
    for value in [*key.get("examples", []), *([key["default"]] if "default" in key else [])]:
        assert list(own.iter_errors(value)) == []
    assert path[0] == "axes" or key["examples"]


GOOD = {
    "name": "t",
    "versions": "cpu_sequential",
    "axes": {"n": 1000, "k": 5},
}


def with_keys(**keys):
    return json.dumps({**GOOD, **keys})


def reads(tmp_path, text):
    (tmp_path / "points.csv").write_text("x,y\n" + "1,2\n" * 9)
    (tmp_path / "centroids.csv").write_text("1,2\n")
    spec = tmp_path / "t.yaml"
    spec.write_text(text)
    # Nobody is asked for the external versions.
    quick = {**os.environ, "LLOYDBENCH_PYTHON": "/bin/false"}
    result = run("plan", spec, "--json", cwd=tmp_path, env=quick)
    assert result.returncode in (0, 2), result.stderr
    return result.returncode == 0


@pytest.mark.parametrize(
    "text",
    [
        with_keys(),
        "name: t\nversions: cpu_sequential\naxes: {n: 1e3, k: 5}\n",
        "name: t\nversions: cpu_sequential\naxes: {n: [1_000, 2e3], k: 5, precision: fp64}\n",
        with_keys(axes={"n": [10, 20], "k": [1, 2]}, zip=["n", "k"]),
        with_keys(axes={"n": [10, 20], "k": [1, 2]}, zip=[["n", "k"]]),
        with_keys(exclude={"n": "<5"}),
        with_keys(exclude=[{"version": ["cpu_*"], "n": "> 1e6", "precision": "fp*"}, {"k": [7]}]),
        with_keys(figures={"speedup": {"x": "k"}}),
        with_keys(figures=["dims", {"speedup": {"x": "k"}, "tpb": {"x": "n"}}]),
        with_keys(figures=[], profile={"counters": "l1", "cpu": ["cycles"]}),
        with_keys(data={"generator": "blobs", "centers": 3, "sigma": "1_0.5", "range": [-1, 1]}),
        with_keys(data={"file": "points.csv"}, axes={"k": 2}),
        with_keys(data={"file": "points.csv", "columns": ["y", 0]}, axes={"k": 2}),
        with_keys(data={"file": "points.csv", "index_column": "x", "decimal": "."}, axes={"k": 2}),
        with_keys(data=[{"generator": "normal"}], solve={"restarts": 3}),
        with_keys(
            data=[{"name": "a", "generator": "blobs"}, {"name": "b", "file": "points.csv"}],
            axes={"n": 9, "k": 1, "data": ["b", "a"]},
            exclude={"data": "a", "k": 7},
        ),
        with_keys(
            data=[{"name": name, "file": "points.csv", "header": True} for name in "ab"],
            axes={"k": 1, "data": "b"},
        ),
        with_keys(solve={"init": "file", "init_file": "centroids.csv"}, axes={"n": 9, "k": 1}),
        with_keys(solve={"tolerance": 0, "min_changes": 5, "seed": 2**64 - 1}),
        with_keys(measure={"max_noise": 1e-3, "l2": "cold", "launches": 3, "verify": False}),
        with_keys(measure={"verify": {"sample": 20_000}}),
        with_keys(title=2026, baseline="cpu_sequential"),
    ],
)
def test_what_the_reader_accepts_is_valid(tmp_path, text):
    assert reads(tmp_path, text)
    assert errors(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        "name: t\n",
        json.dumps({key: value for key, value in GOOD.items() if key != "axes"}),
        with_keys(nmae="t"),
        with_keys(name="K 1000"),
        with_keys(name="x" * 65),
        with_keys(versions=[]),
        with_keys(versions={"a": 1}),
        with_keys(axes={"k": 5}),
        with_keys(axes={"n": 1000}),
        with_keys(axes={"n": 1000, "k": 5, "tbp": 4}),
        with_keys(axes={"n": 0, "k": 5}),
        with_keys(axes={"n": [], "k": 5}),
        with_keys(axes={"n": [[1]], "k": 5}),
        with_keys(axes={"n": 1.5, "k": 5}),
        with_keys(axes={"n": "many", "k": 5}),
        with_keys(axes={"n": 1000, "k": 5, "threads_per_block": 1025}),
        with_keys(axes={"n": 1000, "k": 5, "precision": "double"}),
        with_keys(axes={"k": 5}, data={"generator": "uniform"}),
        with_keys(axes={"n": 9}, data={"file": "points.csv"}),
        with_keys(zip="n"),
        with_keys(zip=["n"]),
        with_keys(zip=["n", "q"]),
        with_keys(zip=[["n", "k"], "dim"]),
        with_keys(exclude=[{}]),
        with_keys(exclude=[{"m": 5}]),
        with_keys(exclude=[{"n": "=> 5"}]),
        with_keys(figures="speed"),
        with_keys(figures={"speed": {"x": "k"}}),
        with_keys(figures={"speedup": {"x": "kk"}}),
        with_keys(figures=[{"speedup": {}}]),
        with_keys(figures=[{"roofline": {"x": "k"}}]),
        with_keys(profile={"counters": "ocupancy"}),
        with_keys(profile={"cpu": "flops"}),
        with_keys(profile={"nvtx": 1}),
        with_keys(data=None),
        with_keys(data={}),
        with_keys(data={"seed": 7}),
        with_keys(data=[]),
        with_keys(data=[{"generator": "uniform"}, {"name": "b", "generator": "normal"}]),
        with_keys(data=[{"name": "a", "generator": "uniform"}, "b"]),
        with_keys(data={"name": "a b", "generator": "uniform"}),
        with_keys(
            data=[{"name": "a", "generator": "normal"}, {"name": "b", "file": "points.csv"}],
            axes={"k": 1},
        ),
        with_keys(solve={"restarts": 0}),
        with_keys(data={"generator": "uniform", "file": "points.csv"}),
        with_keys(data={"generator": "uniform", "centers": 3}),
        with_keys(data={"generator": "uniform", "header": True}),
        with_keys(data={"generator": "gauss"}),
        with_keys(data={"generator": "uniform", "seed": -1}),
        with_keys(data={"generator": "uniform", "range": [1]}),
        with_keys(data={"generator": "blobs", "centers": 0}),
        with_keys(data={"generator": "blobs", "sigma": -1}),
        with_keys(data={"file": "points.csv", "seed": 4}, axes={"k": 2}),
        with_keys(data={"file": "points.csv", "delimiter": "~"}, axes={"k": 2}),
        with_keys(data={"file": "points.csv", "decimal": ";"}, axes={"k": 2}),
        with_keys(data={"file": "points.csv", "columns": []}, axes={"k": 2}),
        with_keys(data={"file": "points.csv", "index_column": -1}, axes={"k": 2}),
        with_keys(data={"file": "points.csv", "format": "cvs"}, axes={"k": 2}),
        with_keys(solve={"iterations": 0}),
        with_keys(solve={"tolerance": -1}),
        with_keys(solve={"init": "file"}),
        with_keys(solve={"init_file": "centroids.csv"}),
        with_keys(solve={"init": "random"}),
        with_keys(measure={"repetitions": 0}),
        with_keys(measure={"max_noise": 0}),
        with_keys(measure={"l2": "hot"}),
        with_keys(measure={"verify": 1}),
        with_keys(measure={"verify": {}}),
        with_keys(measure={"verify": {"sample": 0}}),
        with_keys(measure={"verify": {"points": 5}}),
    ],
)
def test_what_the_reader_refuses_is_invalid(tmp_path, text):
    assert not reads(tmp_path, text)
    assert errors(text) != []
