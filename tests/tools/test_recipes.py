"""The container recipes, which the tests cannot build."""

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGING = ROOT / "tools" / "packaging"
CONTAINERFILE = (PACKAGING / "Containerfile").read_text()
DEFINITION = (PACKAGING / "lloydbench.def").read_text()


def installed(recipe):
    (names,) = re.findall(
        r"apt-get install -y --no-install-recommends (.*?)(?: \\)?$", recipe, re.M
    )
    return names.split()


def test_both_containers_have_the_same_base_and_packages():
    (image,) = re.findall("^FROM docker.io/library/(.*)$", CONTAINERFILE, re.MULTILINE)
    assert re.findall("^From: (.*)$", DEFINITION, re.MULTILINE) == [image]
    assert installed(CONTAINERFILE) == installed(DEFINITION)


def test_commands_of_the_recipes_are_valid_shell():
    sections = re.split(r"^%(\w+)\n", DEFINITION, flags=re.MULTILINE)[1:]
    scripts = dict(zip(sections[::2], sections[1::2], strict=True))
    runs = re.findall(r"^RUN (.*?[^\\])\n(?=[A-Z#\n])", CONTAINERFILE, re.MULTILINE | re.DOTALL)
    assert len(runs) == 2
    for script in [
        *runs,
        *(scripts[name] for name in ("post", "environment", "runscript", "test")),
    ]:
        subprocess.run(["sh", "-n", "-c", script], check=True)
