#!/usr/bin/env python3
"""Follows README.md on a bare Debian 12, as a new user would, and says how long that took: from the
clone to a figure of the reader's own data. Needs what fresh-debian.sh needs.

Every command and every spec is taken from the README. Two things differ from what a user does: the
repository is cloned from the last commit here, because the README's address is a placeholder; and
the line that the README says takes half an hour is left out. `CUDA=0` in the environment builds
without CUDA.
"""

import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

# The reader's own data: two clusters of points.
POINTS = r"""awk 'BEGIN { srand(1); print "x,y,z"; for (i = 0; i < 3000; i++) {
  c = 5 * (i % 2); print c + rand() "," c + rand() "," c - rand() } }' >points.csv"""


def blocks(text, kind):
    return re.findall(rf"^```{kind}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def section(text, title):
    return re.split(r"^## ", text.split(f"\n## {title}\n")[1], flags=re.MULTILINE)[0]


def one(found):
    (only,) = found
    return only


def steps(readme):
    """The README as (title, commands) in the order in which one reads it."""
    start, own = section(readme, "Two commands"), section(readme, "Your own sweep")
    packages = one(re.findall(r"`(apt-get install [\w ]+)`", start))
    yield "packages", f"apt-get update -q && {packages.replace('install', 'install -y -q')}"
    clone, *runs = one(blocks(start, "sh")).splitlines()
    yield "clone", clone
    yield "set-up and build (not counted)", "make"
    for line in runs:
        if "half an hour" not in line:
            yield line.split("#")[0].strip(), line
    for name, text in zip(
        re.findall(r"Save this as `(\w+\.yaml)`", own), blocks(own, "yaml"), strict=True
    ):
        yield f"save {name}", f"cat >{name} <<'END'\n{text}END"
    yield "the specs of one's own", one(blocks(own, "sh"))
    yield "points.csv", POINTS
    command = one(re.findall(r"`(make run SPEC=my_data\.yaml)`", own))
    yield f"{command}: one's own data", command
    yield "the figures", "ls -l results/my_sweep/*/figures/*.svg results/my_data/*/figures/*.svg"


def script(readme):
    lines = ["set -euo pipefail", "export GIT_CONFIG_COUNT=1", "uncounted=0"]
    address = one(re.findall(r"git clone (\S+)", readme))
    lines.append("export GIT_CONFIG_KEY_0=url.$PWD/repository.git.insteadOf")
    lines.append(f"export GIT_CONFIG_VALUE_0={shlex.quote(address)}")
    for name in ("CUDA", "JOBS"):
        if name in os.environ:
            lines.append(f"export {name}={shlex.quote(os.environ[name])}")
    for title, commands in steps(readme):
        lines += [f"step={shlex.quote(title)} began=$SECONDS", 'echo "== $step"', commands]
        lines.append('echo "== $step: $((SECONDS - began)) s"')
        if "not counted" in title:
            lines.append("uncounted=$((SECONDS - began))")
    lines.append('echo "$((SECONDS - uncounted)) s, and $uncounted s for set-up and build"')
    return "\n".join(lines) + "\n"


def main():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    if sys.argv[1:] == ["--print"]:
        print(script(readme), end="")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        bare = Path(folder) / "repository.git"
        subprocess.run(["git", "clone", "--quiet", "--bare", ROOT, bare], check=True)
        command = [ROOT / "tools" / "fresh-debian.sh", folder, "bash", "-s"]
        return subprocess.run(command, input=script(readme), text=True, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
