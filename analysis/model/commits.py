"""When commits were made: a run knows its commit, and a repository the time."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from analysis.model.files import RunError

SOURCE = Path(__file__).resolve().parents[2]
_HASH = re.compile(r"[0-9a-f]{7,64}")


def commit_times(commits: list[str], repository: Path | None) -> dict[str, int]:
    """Seconds since 1970 of each of `commits` that the repository knows; without one, the source
    tree's. Raises RunError when a repository was named and is none."""
    where = repository or SOURCE
    if repository and _git(where, "rev-parse", "--git-dir") is None:
        raise RunError(f"--repository: {where} is not a git repository, or there is no git")
    times = {}
    for commit in commits:
        if not _HASH.fullmatch(commit):  # a stranger's file may hold anything
            continue
        found = _git(where, "log", "-1", "--format=%ct", commit, "--")
        if found and found.strip().isdigit():
            times[commit] = int(found)
    return times


def _git(where: Path, *arguments: str) -> str | None:
    command = ["git", "-C", str(where), *arguments]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None
